"""The runs a folder of outputs holds, gathered by task and dataset: what can be laid side by side.

Reads run.json and predictions.parquet of each run folder; MLflow is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from core.modality import CONDITIONS
from core.predictions import labels_of
from experiments.run_description import RunDescription, RunDescriptionError, read_description

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset

# <output>/<task>/<dataset>/<model>/, and what lies in a folder of its own below, as limit-5/.
_PLACES = ("*/*/*/run.json", "*/*/*/*/run.json")


@dataclass(frozen=True)
class KeptRun:
    """A run folder whose tables were read.

    Attributes:
        name: the model's; with the folder's name behind where it is not the whole run.
        predictions: see `validation.schemas.predictions`.
    """

    name: str
    folder: Path
    description: RunDescription
    predictions: pd.DataFrame


@dataclass(frozen=True)
class RunSet:
    """Runs of one task on one version of one dataset.

    Attributes:
        labels: of the answers, in order.
        data: folder of the dataset as the latest run has it.
    """

    task: str
    dataset: str
    hash: str
    runs: tuple[KeptRun, ...]
    labels: tuple[str, ...]
    data: Path

    @property
    def key(self) -> str:
        """A name for addresses; equal for the same task and version of the dataset."""
        return f"{self.task}-{self.hash[:8]}"

    @property
    def about(self) -> RunDescription:
        """The description of the run that was written last."""
        return max((run.description for run in self.runs), key=lambda said: said.written)

    @property
    def ordinal(self) -> bool:
        """Whether labels are numbers, so that answers can be far off and not only wrong."""
        return all(label.isdecimal() for label in self.labels)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of all runs in table order, each with its variants (AT.silence) behind it."""
        found = dict.fromkeys(c for run in self.runs for c in run.predictions["condition"].unique())
        return tuple(sorted(found, key=_place))


def _place(condition: str) -> tuple[int, str]:
    usual, own = CONDITIONS, condition.partition(".")[0]
    return (usual.index(own) if own in usual else len(usual), condition)


def described_folders(output: Path) -> list[Path]:
    """Run folders that say what they hold, by name."""
    return sorted({path.parent for place in _PLACES for path in output.glob(place)})


def undescribed_folders(output: Path) -> list[Path]:
    """Run folders from before there was a run.json: nobody can say what they hold."""
    found = {p.parent for place in _PLACES for p in output.glob(place.replace("run.json", _TABLE))}
    return sorted(found - set(described_folders(output)))


_TABLE = "predictions.parquet"
_VARIANTS = "variants.parquet"


def read_run(folder: Path, *, variants: bool = False) -> KeptRun:
    """One run folder.

    Args:
        variants: whether the answers to variants of a condition are among the predictions.

    Raises:
        RunDescriptionError: its run.json or its predictions cannot be read.
    """
    import pandas as pd

    said = read_description(folder / "run.json")
    try:
        predictions = pd.read_parquet(folder / _TABLE)
        name = str(said.parameters["model"])
        if predictions.empty or "condition" not in predictions:
            raise ValueError("a table without predictions")
        if variants and (folder / _VARIANTS).is_file():
            parts = [predictions, pd.read_parquet(folder / _VARIANTS)]
            predictions = pd.concat(parts, ignore_index=True)
    except (OSError, ValueError, KeyError) as error:
        raise RunDescriptionError(
            f"{folder / _TABLE}: expected a run's predictions, found {error}. Run the same "
            "`evaluate` again: its answers are kept."
        ) from error
    return KeptRun(
        name=name if folder.name == name else f"{name} · {folder.name}",
        folder=folder,
        description=said,
        predictions=predictions,
    )


def gathered(runs: Sequence[KeptRun]) -> list[RunSet]:
    """The runs by task and dataset, largest datasets first."""
    by_set: dict[tuple[str, str], list[KeptRun]] = {}
    for run in runs:
        said = run.description
        by_set.setdefault((said.parameters["task"], said.dataset["hash"]), []).append(run)
    sets = [_gathered(task, hash_, of_set) for (task, hash_), of_set in by_set.items()]
    return sorted(sets, key=lambda s: -max(len(run.predictions) for run in s.runs))


def _gathered(task: str, hash_: str, runs: list[KeptRun]) -> RunSet:
    latest = max(runs, key=lambda run: run.description.written)
    columns = latest.predictions.columns
    return RunSet(
        task=task,
        dataset=str(latest.description.dataset["name"]),
        hash=hash_,
        runs=tuple(runs),
        labels=tuple(labels_of(columns)),
        data=Path(latest.description.dataset["folder"]),
    )


def dataset_of(runs: RunSet, other: Path | None = None) -> tuple[Dataset | None, list[str]]:
    """The dataset the runs were about, and what a reader must know of it.

    Args:
        other: where it lies now; goes before the folder the run had it in, unless it holds
            another dataset (of several sets of runs, one has moved).

    Returns:
        None where it cannot be read, with the reason.
    """
    if other is None:
        return _dataset_in(runs.data, runs)
    found, notes = _dataset_in(other, runs)
    if found is None or found.name != runs.dataset:
        recorded, differs = _dataset_in(runs.data, runs)
        if recorded is not None and not differs:
            return recorded, []
    return found, notes


def _dataset_in(folder: Path, runs: RunSet) -> tuple[Dataset | None, list[str]]:
    from core.dataset import DatasetError, read_dataset

    try:
        dataset = read_dataset(folder, runs.task)
    except DatasetError as error:
        return None, [
            f"No words and no sound: the dataset cannot be read. {error} Give the folder it lies "
            "in now with -P data=."
        ]
    if dataset.hash != runs.hash:
        return dataset, [
            f"{folder} is another version of this dataset: words and sound shown here may not be "
            "those the models were given."
        ]
    return dataset, []
