"""One evaluation, from a dataset folder to estimates: the road each run takes.

Every step reads one file and leaves one file in the run's folder, so a run that
was ended at any moment goes on from what it had, to the same figures.
MLflow is not known here.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card, read_card
from core.protocol import Response, digest, read_responses, write_requests
from experiments.run_folder import RunFolder, run_folder, write_json
from experiments.runners import Job, Runner, Site, runner
from experiments.settings import ROOT, Settings, SettingsError

if TYPE_CHECKING:
    import pandas as pd

    from core.audio import Source
    from core.dataset import Dataset
    from core.metrics.estimate import Estimate
    from core.prompts import Template
    from core.tasks import PlannedRequest, Task

# A failure may be the machine's fault, so it is asked again; everything else is an answer.
FAILED = ("audio_error", "model_error", "timeout")
# Stands for the clip an item does not have; never sent to a model.
NO_CLIP = "no-clip.wav"


@dataclass(frozen=True)
class Plan:
    """What an evaluation rests on, read and checked: nothing was loaded or written yet."""

    settings: Settings
    card: Card
    runner_name: str
    runner: Runner
    image: str
    precision: str
    dataset: Dataset
    task: Task
    folder: RunFolder

    @property
    def model_digest(self) -> str:
        """The model as it will run: what its answers may be kept under."""
        return digest({"card": self.card.digest, "image": self.image, "precision": self.precision})

    @property
    def weights(self) -> Path:
        """The model's folder of weights, under UNDERTONE_WEIGHTS or weights/ of this clone."""
        return Path(os.environ.get("UNDERTONE_WEIGHTS") or ROOT / "weights") / self.card.name


@dataclass
class Evaluation:
    """What came out."""

    plan: Plan
    items: pd.DataFrame
    planned: Sequence[PlannedRequest]
    predictions: pd.DataFrame
    estimates: Sequence[Estimate]
    templates: Sequence[Template]
    reused: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def prepare(settings: Settings) -> Plan:
    """Read and check everything a run rests on.

    Raises:
        SettingsError: a value that does not fit the model, the task or the dataset.
        RunnerError: nothing here can run the model.
        core.dataset.DatasetError, validation errors: a faulty dataset, row by row.
    """
    from core.dataset import read_dataset
    from core.tasks import task

    card = read_card(settings.card_path)
    precision = _precision(settings.precision, card)
    runner_name, module = runner(settings.runner, card, _site(settings))
    chosen = task(settings.task)
    if absent := [c for c in settings.conditions if c not in chosen.CONDITIONS]:
        raise SettingsError(
            f"conditions: {chosen.NAME} has no {', '.join(absent)}; it has "
            f"{', '.join(chosen.CONDITIONS)}."
        )
    dataset = read_dataset(settings.data, settings.task)
    dataset = _validated(dataset, chosen, audio=_hears(settings.conditions))
    folder = run_folder(settings.output, settings.task, dataset.name, dataset.hash, settings.model)
    image = module.image(card, _site(settings))
    return Plan(settings, card, runner_name, module, image, precision, dataset, chosen, folder)


def carry_out(plan: Plan, log: Path | None = None) -> Evaluation:
    """Ask what was not asked yet, and work out everything from all answers.

    The caller holds the folder's lock (`run_folder.held`).

    Args:
        log: file for what the model's process says; None shows it on the terminal.

    Raises:
        RunnerError: the model did not get through; its answers so far are kept.
    """
    clock = Clock()
    items = plan.dataset.items.head(plan.settings.limit or len(plan.dataset.items))
    planned, undecodable = _planned(plan, items)
    askable = [entry for entry in planned if entry.request.id not in undecodable]
    write_requests(plan.folder.requests, [entry.request for entry in askable])
    clock.lap("prepare")
    reused = len(_answered(plan, askable))
    if reused < len(askable):
        plan.runner.run(_job(plan, log))
    clock.lap("model")
    responses = {**read_responses(plan.folder.responses), **undecodable}
    predictions = plan.task.predict(planned, responses, items)
    predictions = _checked(predictions, plan.task, plan.folder.predictions)
    _write_table(predictions, plan.folder.predictions)
    settings = plan.settings
    estimates = plan.task.score(predictions, resamples=settings.resamples, seed=settings.seed)
    write_json(plan.folder.metrics, [_as_json(estimate) for estimate in estimates])
    clock.lap("score")
    return Evaluation(
        plan=plan,
        items=items,
        planned=planned,
        predictions=predictions,
        estimates=estimates,
        templates=plan.task.prompts({}),
        reused=reused,
        seconds=clock.laps,
    )


class Clock:
    """Seconds each step took, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._since
        self._since = now


def _precision(said: str, card: Card) -> str:
    known = card.capabilities.precisions
    if said == "auto":
        return known[0]
    if said not in known:
        raise SettingsError(f"precision: {card.name} has no {said!r}; it has {', '.join(known)}.")
    return said


def _validated(dataset: Dataset, task: Task, *, audio: bool) -> Dataset:
    from validation import schemas

    schema = {"turns": schemas.turns, "dialogues": schemas.dialogues}[task.MANIFEST](audio=audio)
    items = schemas.validated(dataset.items, schema, str(dataset.manifest))
    return replace(dataset, items=items)


def _checked(predictions: pd.DataFrame, task: Task, path: Path) -> pd.DataFrame:
    from validation import schemas

    return schemas.validated(predictions, schemas.predictions(task.LABELS), str(path))


def _planned(plan: Plan, items: pd.DataFrame) -> tuple[list[PlannedRequest], dict[str, Response]]:
    """All requests, and the failures of those whose clip cannot be decoded.

    An item without a clip is planned like any other, so that it has its row and
    its reason in the predictions; its requests are only never sent.
    """
    clips, reasons = _clips(plan, items) if _hears(plan.settings.conditions) else ({}, {})
    audio = {**clips, **dict.fromkeys(reasons, NO_CLIP)}
    planned: list[PlannedRequest] = []
    for condition in plan.settings.conditions:
        planned += plan.task.plan(
            items,
            condition,
            seed=plan.settings.seed,
            settings={},
            audio=audio,
            model_digest=plan.model_digest,
        )
    undecodable = {
        entry.request.id: Response(entry.request.id, "audio_error", reason=reasons[entry.item_id])
        for entry in planned
        if any(part.get("audio") == NO_CLIP for part in entry.request.parts)
    }
    return planned, undecodable


def _hears(conditions: Sequence[str]) -> bool:
    return any(condition != "TO" for condition in conditions)


def _clips(plan: Plan, items: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Item id -> clip name, and item id -> reason for those that have none."""
    from core.audio import AudioError, prepare_clips

    named = items[items["audio"].notna()]
    sources = [_source(plan.dataset.folder, row) for row in named.to_dict("records")]
    prepared = dict(zip(named["item_id"], prepare_clips(sources, plan.folder.audio), strict=True))
    clips = {k: v.name for k, v in prepared.items() if not isinstance(v, AudioError)}
    reasons = {k: str(v) for k, v in prepared.items() if isinstance(v, AudioError)}
    silent = items.loc[items["audio"].isna(), "item_id"]
    return clips, {**reasons, **dict.fromkeys(silent, "the manifest names no audio for it.")}


def _source(folder: Path, row: dict[Hashable, Any]) -> Source:
    """The file of a row, or the span of it that the row names."""
    from core.audio import Source
    from core.manifest import is_nothing

    start_s, end_s = row.get("start_s"), row.get("end_s")
    return Source(
        folder / row["audio"],
        None if is_nothing(start_s) else start_s,
        None if is_nothing(end_s) else end_s,
    )


def _answered(plan: Plan, askable: Sequence[PlannedRequest]) -> set[str]:
    known = read_responses(plan.folder.responses)
    final = {key for key, answer in known.items() if answer.status not in FAILED}
    return {entry.request.id for entry in askable} & final


def _job(plan: Plan, log: Path | None) -> Job:
    return Job(
        card=plan.card,
        card_path=plan.settings.card_path,
        weights=plan.weights,
        requests=plan.folder.requests,
        responses=plan.folder.responses,
        audio=plan.folder.audio,
        precision=plan.precision,
        device_map=plan.settings.device_map,
        offline=plan.settings.offline,
        log=log,
        gpus=plan.settings.gpus,
        site=_site(plan.settings),
    )


def _site(settings: Settings) -> Site:
    return Site(settings.endpoint, settings.served_model, settings.offline)


def _write_table(table: pd.DataFrame, path: Path) -> None:
    part = path.with_name(path.name + ".part")
    table.to_parquet(part, index=False)
    part.replace(path)


def _as_json(estimate: Estimate) -> dict[str, Any]:
    # JSON has no NaN: undefined is null, with its reason beside it.
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(estimate).items()
    }
