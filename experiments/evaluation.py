"""One evaluation, from a dataset folder to estimates: the road each run takes.

Every step reads one file and leaves one file in the run's folder, so a run that
was ended at any moment goes on from what it had, to the same figures.
MLflow is not known here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card, read_card
from core.protocol import digest
from core.replacing import replacing
from experiments.rounds import Chunk, ask
from experiments.run_description import write_description
from experiments.run_folder import RunFolder, run_folder, write_json
from experiments.runners import Job, Runner, Site, runner
from experiments.settings import Settings, SettingsError
from experiments.study_tables import write_tables
from experiments.ways import read
from experiments.weights import weights_folder

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from core.exemplars import Selection
    from core.metrics.estimate import Estimate
    from core.prompts import Template
    from core.tasks import Table, Task
    from core.variants import Variant


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
    selection: Selection

    @property
    def model_digest(self) -> str:
        """The model as it will run: what its answers may be kept under."""
        return digest({"card": self.card.digest, "image": self.image, "precision": self.precision})

    @property
    def task_settings(self) -> dict[str, str]:
        """The task's options that decide the conditions' answers, defaults where not given."""
        from core.tasks import checked_settings

        every = checked_settings(self.task.NAME, self.task.SETTINGS, self.settings.of_task)
        return {name: said for name, said in every.items() if name not in self.task.BESIDE}

    @property
    def beside(self) -> dict[str, str]:
        """The options that were given for variants and sections of their own."""
        given = self.settings.of_task.items()
        return {name: said for name, said in given if said and name in self.task.BESIDE}

    @property
    def variants(self) -> tuple[Variant, ...]:
        """What the task's flags ask for beside the conditions."""
        return self.task.variants(self.settings.of_task, self.settings.conditions)

    @property
    def weights(self) -> Path:
        """The model's folder of weights, under UNDERTONE_WEIGHTS or weights/ of this clone."""
        return weights_folder() / self.card.name


@dataclass
class Evaluation:
    """What came out; `requests` says how many were planned, `reused` how many had answers.

    `unsettled` are those that failed and are tried again later. `estimates` are of the
    conditions, `variants` of what differs between a variant and its own.
    """

    plan: Plan
    items: pd.DataFrame
    requests: int
    predictions: pd.DataFrame
    estimates: Sequence[Estimate]
    templates: Sequence[Template]
    tables: Sequence[Table] = ()
    variants: Sequence[Estimate] = ()
    notes: Sequence[str] = ()
    reused: int = 0
    unsettled: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def prepare(settings: Settings) -> Plan:
    """Read and check everything a run rests on.

    Raises:
        SettingsError: a value that does not fit the model, the task or the dataset.
        RunnerError: nothing here can run the model.
        core.tasks.TaskError: settings of the task that do not fit, exemplars that are not there.
        core.dataset.DatasetError: a faulty dataset, row by row.
    """
    from core.tasks import task

    card = read_card(settings.card_path)
    precision = precision_of(settings.precision, card)
    runner_name, module = runner(settings.runner, card, site_of(settings))
    chosen = task(settings.task)
    if absent := [c for c in settings.conditions if c not in chosen.CONDITIONS]:
        raise SettingsError(
            f"conditions: {chosen.NAME} has no {', '.join(absent)}; it has "
            f"{', '.join(chosen.CONDITIONS)}."
        )
    _check_writes(card, chosen, settings)
    dataset = _dataset(settings, chosen)
    selection = chosen.select(dataset.items, seed=settings.seed, settings=settings.of_task)
    few = settings.limit or 0
    folder = run_folder(
        settings.output,
        settings.task,
        dataset.name,
        dataset.hash,
        settings.model,
        # One that leaves nothing out is a whole run.
        limit=few if few < len(selection.evaluated) else 0,
    )
    image = module.image(card, site_of(settings))
    return Plan(
        settings=settings,
        card=card,
        runner_name=runner_name,
        runner=module,
        image=image,
        precision=precision,
        dataset=dataset,
        task=chosen,
        folder=folder,
        selection=selection,
    )


def carry_out(plan: Plan, log: Path | None = None) -> Evaluation:
    """Ask what was not asked yet, and work out everything from all answers.

    The caller holds the folder's lock (`run_folder.held`).

    Args:
        log: file for what the model's process says; None shows it on the terminal.

    Raises:
        RunnerError: the model did not get through; its answers so far are kept.
    """
    clock = Clock()
    items = plan.selection.evaluated
    items = items.head(plan.settings.limit or len(items))
    answers = ask(plan, items, lambda: _run(plan, log, clock), partial(_read, plan))
    clock.lap("prepare")
    predictions, of_variants = map(_in_order, zip(*answers.taken(), strict=True))
    settings = plan.settings
    predictions = _checked(predictions, plan, plan.folder.predictions)
    _write_table(predictions, plan.folder.predictions)
    of_variants = _kept_variants(of_variants, plan)
    estimates = plan.task.score(predictions, resamples=settings.resamples, seed=settings.seed)
    write_json(plan.folder.metrics, [_as_json(estimate) for estimate in estimates])
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    beyond = plan.task.beyond(predictions, of_variants, items, settings=settings.of_task, **drawn)
    tables = [*plan.task.report(predictions, **drawn), *beyond.tables]
    write_tables(tables, plan.folder.tables)
    clock.lap("score")
    evaluation = Evaluation(
        plan=plan,
        items=items,
        requests=answers.requests,
        predictions=predictions,
        estimates=estimates,
        templates=plan.task.prompts(settings.of_task),
        tables=tables,
        variants=beyond.estimates,
        notes=[
            *plan.task.notes(
                settings.of_task,
                plan.selection,
                settings.conditions,
                plan.card.capabilities.clips_per_prompt,
            ),
            *_nothing_to_rate(items, answers.clips.silent, settings.conditions),
            # Of one change in two conditions the same is to be said.
            *dict.fromkeys(note for way in answers.ways for note in way.notes),
            *beyond.notes,
        ],
        reused=answers.reused,
        unsettled=answers.unsettled,
        seconds=clock.laps,
    )
    write_description(evaluation)
    return evaluation


def _read(plan: Plan, chunk: Chunk) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A chunk's predictions, of the conditions and of the variants."""
    return read(plan, chunk.items, chunk.ways, chunk.planned, chunk.responses)


def _in_order(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One condition after the other, each in the order of the items."""
    import pandas as pd

    table = pd.concat(parts, ignore_index=True)
    place = {name: number for number, name in enumerate(dict.fromkeys(table["condition"]))}
    order = table["condition"].map(place).to_numpy().argsort(kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _kept_variants(predictions: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """The variants' predictions, checked and in a file of their own; no file where none is."""
    path = plan.folder.variants
    if not plan.variants:
        path.unlink(missing_ok=True)
        return predictions
    predictions = _checked(predictions, plan, path)
    _write_table(predictions, path)
    return predictions


NAMED = 5


def _nothing_to_rate(
    items: pd.DataFrame, silent: Sequence[str], conditions: Sequence[str]
) -> list[str]:
    """Notes on items that are asked about and hold nothing: their answers are in the figures."""
    wordless = list(items.loc[items["transcript"].str.strip() == "", "item_id"])
    told = []
    for what, ids, where in (
        ("silent throughout", silent, {"AO", "AT"}),
        ("without a word in the transcript", wordless, {"AT", "TO"}),
    ):
        if ids and where & set(conditions):
            named = ", ".join(map(str, ids[:NAMED])) + (", ..." if len(ids) > NAMED else "")
            told.append(
                f"{len(ids)} of {len(items)} items {what}, and counted like any other: {named}"
            )
    return told


def _run(plan: Plan, log: Path | None, clock: Clock) -> None:
    clock.lap("prepare")
    plan.runner.run(_job(plan, log))
    clock.lap("model")


class Clock:
    """Seconds each step took, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        # A step may be taken more than once: a model is asked in rounds.
        self.laps[name] = self.laps.get(name, 0.0) + now - self._since
        self._since = now


def precision_of(said: str, card: Card) -> str:
    """The precision a word stands for, `auto` for the card's first.

    Raises:
        SettingsError: one that the card does not have.
    """
    known = card.capabilities.precisions
    if said == "auto":
        return known[0]
    if said not in known:
        raise SettingsError(f"precision: {card.name} has no {said!r}; it has {', '.join(known)}.")
    return said


def _check_writes(card: Card, task: Task, settings: Settings) -> None:
    for option, values in task.WRITTEN.items():
        said = settings.of_task.get(option)
        if said in values and not card.capabilities.writes:
            raise SettingsError(
                f"{option}: {said} has a model answer in words of its own, and {card.name} writes "
                "none; choose another model, or another value."
            )


def _dataset(settings: Settings, task: Task) -> Dataset:
    from validation import schemas
    from validation.datasets import checked_dataset

    schema = {"turns": schemas.turns, "dialogues": schemas.dialogues}[task.MANIFEST]
    audio = _hears(settings.conditions)
    return checked_dataset(settings.data, settings.task, schema(audio=audio))


def _checked(predictions: pd.DataFrame, plan: Plan, path: Path) -> pd.DataFrame:
    from validation import schemas

    named = [variant.name for variant in plan.variants] if path == plan.folder.variants else None
    task = plan.task
    schema = schemas.predictions(task.LABELS, extra=task.COLUMNS, variants=named)
    return schemas.validated(predictions, schema, str(path))


def _hears(conditions: Sequence[str]) -> bool:
    return any(condition != "TO" for condition in conditions)


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
        site=site_of(plan.settings),
    )


def site_of(settings: Settings) -> Site:
    """What the settings say to a runner of where a model is asked."""
    return Site(
        settings.endpoint,
        settings.served_model,
        settings.offline,
        settings.address,
        settings.node_runner,
        settings.store,
    )


def _write_table(table: pd.DataFrame, path: Path) -> None:
    with replacing(path) as stream:
        table.to_parquet(stream, index=False)


def _as_json(estimate: Estimate) -> dict[str, Any]:
    # JSON has no NaN: undefined is null, with its reason beside it.
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(estimate).items()
    }
