"""Whether sheets, dataset and runs are of one version: else a model is scored by other labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.options import OptionError

SHOWN = 5


@dataclass(frozen=True)
class Version:
    """What says which dataset it is of.

    Attributes:
        what: such as "the sheets' key".
        hash: of the dataset; None where it is not said.
    """

    what: str
    hash: str | None


def of_run(folder: Path) -> Version:
    """What a run folder says its predictions are of.

    Raises:
        OptionError: a run.json that is none.
    """
    from experiments.run_description import RunDescriptionError, read_description

    path = folder / "run.json"
    if not path.exists():
        return Version(f"the run {folder.name}", None)
    try:
        said = read_description(path).dataset
    except RunDescriptionError as error:
        raise OptionError(f"predictions: {error}") from error
    found = said.get("hash") if isinstance(said, Mapping) else None
    return Version(f"the run {folder.name}", str(found) if found else None)


def assert_one_version(versions: Sequence[Version]) -> list[str]:
    """A sentence for each that does not say its version, where there is another to agree with.

    Raises:
        OptionError: two that differ, with both hashes.
    """
    known = [each for each in versions if each.hash]
    if unlike := [each for each in known if each.hash != known[0].hash]:
        others = "; ".join(f"{each.what} of {each.hash}" for each in unlike[:SHOWN])
        more = f" and {len(unlike) - SHOWN} more" if len(unlike) > SHOWN else ""
        raise OptionError(
            f"dataset: expected one version, found {known[0].what} of {known[0].hash}, but "
            f"{others}{more}; give the dataset that the experts heard and runs on the same."
        )
    if len(versions) < 2:
        return []
    return [
        f"{each.what} does not say which version of the dataset it is of: not checked."
        for each in versions
        if not each.hash
    ]


def assert_same_labels(model: str, gold: Mapping[str, float], labels: Mapping[str, float]) -> None:
    """Whether a model is scored by the labels that the experts are held against.

    Args:
        gold: turn -> label as the run has it.
        labels: rated turn -> label, NaN where there is none.

    Raises:
        OptionError: turns whose labels differ.
    """
    unlike = [
        f"{turn} ({label:g}, in the run {gold[turn]:g})"
        for turn, label in labels.items()
        if turn in gold and not math.isnan(label) and gold[turn] != label
    ]
    if unlike:
        more = f" and {len(unlike) - SHOWN} more" if len(unlike) > SHOWN else ""
        raise OptionError(
            f"predictions: {model} was scored by other labels than the experts are, on "
            f"{len(unlike)} turns: {', '.join(unlike[:SHOWN])}{more}; evaluate it on the dataset "
            "whose labels are judged."
        )
