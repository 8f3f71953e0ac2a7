"""One evaluation, from a dataset folder to estimates: the road each run takes.

Every step reads one file and leaves one file in the run's folder, so a run that
was ended at any moment goes on from what it had, to the same figures.
MLflow is not known here.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card, read_card
from core.protocol import Response, digest, read_responses, write_requests
from experiments.run_folder import RunFolder, run_folder, write_json
from experiments.runners import Job, Runner, runner
from experiments.settings import ROOT, Settings, SettingsError

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from core.metrics.estimate import Estimate
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
        return digest(
            {"card": self.card.digest, "image": self.image, "precision": self.precision}
        )

    @property
    def weights(self) -> Path:
        """The model's folder of weights, under UNDERTONE_WEIGHTS or weights/ of this clone."""
        return Path(os.environ.get("UNDERTONE_WEIGHTS") or ROOT / "weights") / self.card.name


@dataclass
class Evaluation:
    """What came out."""

    plan: Plan
    planned: Sequence[PlannedRequest]
    predictions: pd.DataFrame
    estimates: Sequence[Estimate]
    reused: int = 0
    summary: dict[str, Any] = field(default_factory=dict)
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
    runner_name, module = runner(settings.runner, card)
    chosen = task(settings.task)
    if absent := [c for c in settings.conditions if c not in chosen.CONDITIONS]:
        raise SettingsError(
            f"conditions: {chosen.NAME} has no {', '.join(absent)}; it has "
            f"{', '.join(chosen.CONDITIONS)}."
        )
    dataset = _validated(read_dataset(settings.data, settings.task), chosen, settings)
    folder = run_folder(
        settings.output, settings.task, dataset.name, dataset.hash, settings.model
    )
    image = module.image(card)
    return Plan(
        settings, card, runner_name, module, image, precision, dataset, chosen, folder
    )


def carry_out(plan: Plan, log: Path | None = None) -> Evaluation:
    """Ask what was not asked yet, and work out everything from all answers.

    The caller holds the folder's lock (`run_folder.held`).

    Args:
        log: file for what the model's process says; None shows it on the terminal.

    Raises:
        RunnerError: the model did not get through; its answers so far are kept.
    """
    clock = time.perf_counter
    marks = [clock()]
    planned, undecodable = _planned(plan)
    askable = [entry for entry in planned if entry.request.id not in undecodable]
    write_requests(plan.folder.requests, [entry.request for entry in askable])
    marks.append(clock())
    answered = _final(read_responses(plan.folder.responses))
    reused = sum(entry.request.id in answered for entry in askable)
    summary = {}
    if reused < len(askable):
        summary = plan.runner.run(_job(plan, log)) or {}
    marks.append(clock())
    responses = {**read_responses(plan.folder.responses), **undecodable}
    predictions = _predictions(plan, planned, responses)
    estimates = plan.task.score(
        predictions, resamples=plan.settings.resamples, seed=plan.settings.seed
    )
    write_json(plan.folder.metrics, [_as_json(estimate) for estimate in estimates])
    marks.append(clock())
    steps = ("prepare", "model", "score")
    seconds = {name: marks[i + 1] - marks[i] for i, name in enumerate(steps)}
    return Evaluation(plan, planned, predictions, estimates, reused, summary, seconds)


def _precision(said: str, card: Card) -> str:
    known = card.capabilities.precisions
    if said == "auto":
        return known[0]
    if said not in known:
        raise SettingsError(
            f"precision: {card.name} has no {said!r}; it has {', '.join(known)}."
        )
    return said
