"""Which MLflow runs a comparison rests on, and that they may be compared.

Takes the store and what was asked for, gives runs with their predictions: of every model and
condition the latest complete run, or the runs that were named. Runs on other data or with
other prompts are refused, with the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.modality import CONDITIONS
from experiments.comparison.document import counted, listed

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from containers.runtime.card import Card

Key = tuple[str, str]

REPORT_TAG = "report"
"""On a run of this command, so that it is never itself gathered."""

PREDICTIONS = "predictions.parquet"
# What makes two runs of one model two rows of a table; the first that differ name them.
IDENTITY = ("revision", "precision", "card", "image", "runner", "endpoint", "served_model", "seed")


class GatheringError(ValueError):
    """Runs that are not there or may not be compared; the message says what to do."""


@dataclass(frozen=True)
class FoundRun:
    """An MLflow run of `evaluate`: its undertone parameters without their prefix, the address of
    its artifacts."""

    id: str
    name: str
    model: str
    started: int
    artifacts: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(self.parameters.get("conditions", "").split(","))

    @property
    def is_whole(self) -> bool:
        return self.parameters.get("limit", "all") == "all"

    @property
    def dataset(self) -> str:
        return self.parameters.get("dataset", "")

    @property
    def dataset_hash(self) -> str:
        return self.parameters["dataset_hash"]


def card_of(model: str) -> Card | None:
    """The card of a model that was run; None where it has none, or none that can be read."""
    from containers.runtime.card import CardError, read_card
    from experiments.settings import ROOT

    path = ROOT / "containers" / model / "model.toml"
    try:
        return read_card(path) if path.is_file() else None
    except CardError:
        return None


@dataclass(frozen=True)
class Gathered:
    """Runs that may be compared.

    Attributes:
        predictions: (row name, condition) -> its rows, item ids as text.
        variants: the same for conditions beyond AO, AT and TO.
        runs: row name -> the runs behind it.
        behind: (row name, condition) -> the run it was read from.
        work: run id -> what the model's process said of its work, where it did.
        notes: what a reader should know of the choice.
    """

    task: str
    dataset: str
    dataset_hash: str
    synthetic: bool
    predictions: Mapping[Key, pd.DataFrame]
    variants: Mapping[Key, pd.DataFrame]
    runs: Mapping[str, tuple[FoundRun, ...]]
    behind: Mapping[Key, FoundRun]
    work: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def gather(
    client: MlflowClient,
    task: str,
    *,
    ids: Sequence[str] = (),
    dataset: str = "",
    allow: Sequence[str] = (),
) -> Gathered:
    """Find, check and read.

    Args:
        ids: run ids or their beginnings; empty for the latest complete run of every model and
            condition.
        dataset: its name; empty where the store knows one only.
        allow: "prompts" lets runs differ in prompts and task settings.

    Raises:
        GatheringError: nothing to compare, or runs that may not be compared.
    """
    every = [run for run in found_runs(client, task) if not dataset or run.dataset == dataset]
    chosen = _named(every, ids, task) if ids else _latest(_of_one_dataset(every, task, dataset))
    _assert_shared(chosen, "dataset hash", lambda run: run.dataset_hash)
    if "prompts" not in allow:
        _assert_shared(chosen, "prompts", partial(_parameter, "prompts"))
        for setting in _settings(task):
            _assert_shared(chosen, setting, partial(_parameter, setting))
    further = ("prompts", *_settings(task)) if allow else ()
    names = _row_names(chosen, (*IDENTITY, *further))
    cells, behind, work = _read(task, chosen, names, ids)
    first = chosen[0]
    return Gathered(
        task=task,
        dataset=first.dataset,
        dataset_hash=first.dataset_hash,
        synthetic=first.tags.get("synthetic") == "true",
        predictions={key: rows for key, rows in cells.items() if key[1] in CONDITIONS},
        variants={key: rows for key, rows in cells.items() if key[1] not in CONDITIONS},
        runs={
            name: tuple(run for run in chosen if names[run.id] == name)
            for name in dict.fromkeys(names[run.id] for run in chosen)
        },
        behind=behind,
        work=work,
        notes=tuple(_notes(chosen, names)),
    )


def found_runs(client: MlflowClient, task: str) -> list[FoundRun]:
    """Finished runs of `evaluate` for the task, in every experiment, newest first."""
    experiments = [e.experiment_id for e in client.search_experiments()]
    wanted = f"tags.task = '{task}' and attributes.status = 'FINISHED'"
    found: list[FoundRun] = []
    token = None
    while True:
        page = client.search_runs(
            experiments,
            wanted,
            max_results=1000,
            order_by=["attributes.start_time DESC"],
            page_token=token,
        )
        found += [run for run in map(_found, page) if run]
        token = page.token
        if not token:
            return found


def _found(run: Any) -> FoundRun | None:
    said = {
        name.removeprefix("undertone."): value
        for name, value in run.data.params.items()
        if name.startswith("undertone.")
    }
    tags = run.data.tags
    if REPORT_TAG in tags or "model" not in tags or "dataset_hash" not in said:
        return None
    info = run.info
    return FoundRun(
        info.run_id,
        info.run_name or info.run_id,
        tags["model"],
        info.start_time,
        info.artifact_uri,
        said,
        tags,
        run.data.metrics,
    )


def _named(every: Sequence[FoundRun], ids: Sequence[str], task: str) -> list[FoundRun]:
    chosen: list[FoundRun] = []
    for said in ids:
        matching = [run for run in every if run.id.startswith(said)]
        if not matching:
            raise GatheringError(
                f"runs: no finished evaluate run of task {task} has the id {said!r}; "
                "mlflow runs list --experiment-id ... shows them."
            )
        if len(matching) > 1:
            raise GatheringError(f"runs: {len(matching)} runs begin with {said!r}; give it whole.")
        if matching[0] not in chosen:
            chosen.append(matching[0])
    return chosen


def _of_one_dataset(every: Sequence[FoundRun], task: str, dataset: str) -> list[FoundRun]:
    """The complete runs, which are all on one dataset or a choice is asked for."""
    whole = [run for run in every if run.is_whole]
    on = f" on {dataset}" if dataset else ""
    if not whole:
        parts = f" ({len(every)} with a limit; name them with -P runs=ID,ID)" if every else ""
        raise GatheringError(
            f"There is no complete evaluate run of task {task}{on} in this store{parts}. "
            f"Run mlflow run . -e evaluate -P task={task} first, or point MLFLOW_TRACKING_URI at "
            "the store that has some."
        )
    names = sorted({run.dataset for run in whole})
    if len(names) > 1:
        runs_of = Counter(run.dataset for run in whole)
        counts = ", ".join(f"{name} ({counted(runs_of[name], 'run')})" for name in names)
        raise GatheringError(
            f"dataset: task {task} has complete runs on {len(names)} datasets, {counts}; "
            f"say which, as -P dataset={names[0]}."
        )
    return whole


def _latest(newest_first: Sequence[FoundRun]) -> list[FoundRun]:
    """The runs that are the latest of their model in one condition or more."""
    seen: set[tuple[str, str]] = set()
    chosen = []
    for run in newest_first:
        cells = {(run.model, condition) for condition in run.conditions}
        if cells - seen:
            chosen.append(run)
        seen |= cells
    return chosen


def _assert_shared(runs: Sequence[FoundRun], what: str, value: Callable[[FoundRun], str]) -> None:
    by_value: dict[str, list[FoundRun]] = {}
    for run in runs:
        by_value.setdefault(value(run), []).append(run)
    if len(by_value) == 1:
        return
    groups = sorted(by_value.items(), key=lambda entry: -len(entry[1]))
    shown = _difference(groups) if what == "prompts" else [said[:80] for said, _ in groups]
    parts = "; ".join(
        f"{text or 'none'}: {listed(sorted({run.model for run in members}))} "
        f"(runs={','.join(run.id[:8] for run in members)})"
        for text, (_, members) in zip(shown, groups, strict=True)
    )
    also = ", or -P allow=prompts to compare across them" if what != "dataset hash" else ""
    raise GatheringError(
        f"These runs differ in {what} and cannot be compared: {parts}. Name those that belong "
        f"together with -P runs=ID,ID{also}."
    )


def _difference(groups: Sequence[tuple[str, list[FoundRun]]]) -> list[str]:
    """Of each group's templates, those that another group does not have in the same version."""
    templates = [set(filter(None, said.split(","))) for said, _ in groups]
    shared = set.intersection(*templates)
    return [listed(sorted(of_group - shared)) for of_group in templates]


def _parameter(name: str, run: FoundRun) -> str:
    return run.parameters.get(name, "")


def _settings(task: str) -> tuple[str, ...]:
    from core.tasks import task as module

    chosen = module(task)
    # Exemplars decide which items are left, and unequal items are refused by name.
    no_matter = {"exemplars", *chosen.BESIDE}
    return tuple(name for name in chosen.SETTINGS if name not in no_matter)


def _row_names(runs: Sequence[FoundRun], identity: Sequence[str]) -> dict[str, str]:
    """Run id -> the row of the tables it belongs to: the model, and what sets it apart."""
    names: dict[str, str] = {}
    for model in dict.fromkeys(run.model for run in runs):
        of_model = [run for run in runs if run.model == model]
        differs = [
            key for key in identity if len({run.parameters.get(key, "") for run in of_model}) > 1
        ]
        for run in of_model:
            said = [f"{key} {_short(run.parameters.get(key, 'none'))}" for key in differs]
            names[run.id] = f"{model} ({', '.join(said)})" if said else model
    return names


def _short(value: str) -> str:
    return value if len(value) <= 16 else f"{value[:12]}…"


def _read(
    task: str,
    runs: Sequence[FoundRun],
    names: Mapping[str, str],
    named: Sequence[str],
) -> tuple[dict[Key, pd.DataFrame], dict[Key, FoundRun], dict[str, Mapping[str, Any]]]:
    from experiments.comparison.reading import predictions_of, variants_of, work_of

    cells: dict[Key, pd.DataFrame] = {}
    behind: dict[Key, FoundRun] = {}
    work: dict[str, Mapping[str, Any]] = {}
    with TemporaryDirectory(prefix="undertone-") as folder:
        for run in runs:
            asked = predictions_of(run, task, Path(folder)) | variants_of(run, Path(folder))
            for condition, rows in asked.items():
                key = (names[run.id], condition)
                if key not in cells:
                    cells[key], behind[key] = rows, run
                elif named:
                    raise GatheringError(
                        f"runs: {behind[key].id[:8]} and {run.id[:8]} both hold {key[0]} in "
                        f"{condition}, with the same settings; name one of them."
                    )
            if said := work_of(run, Path(folder)):
                work[run.id] = said
    return cells, behind, work


def _notes(runs: Sequence[FoundRun], names: Mapping[str, str]) -> Iterable[str]:
    if limited := [run for run in runs if not run.is_whole]:
        yield (
            f"Runs with a limit: {listed(run.id[:8] for run in limited)}. Their figures are of "
            "the first items only."
        )
    by_row: dict[str, list[FoundRun]] = {}
    for run in runs:
        by_row.setdefault(names[run.id], []).append(run)
    for name, of_row in by_row.items():
        if len(of_row) > 1:
            yield f"{name}: conditions come from {len(of_row)} runs with the same settings."
