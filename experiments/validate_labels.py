"""`mlflow run . -e validate_labels`: study 1's labels held against experts' ratings.

From a CSV of ratings, or the filled sheets of ratings_export: the experts' agreement, each
of them and their median beside the labels, and, given predictions, whether models rank
alike on the experts' turns.
Prints all of it and logs it to MLflow. The statistics are `validation`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import (
    OptionError,
    dataset_folder,
    existing_file,
    existing_folder,
    one_of,
    read_options,
    truth,
    whole,
)
from experiments.settings import CONDITIONS, MOST_RESAMPLES

if TYPE_CHECKING:
    from core.dataset import Dataset
    from experiments.dataset_versions import Version
    from experiments.validation_report import Validation
    from validation.experts import ModelError
    from validation.ratings import Ratings

OPTIONS: dict[str, tuple[str, str]] = {
    "ratings": (
        "",
        "CSV: a column an expert, or columns item, rater and rating, levels 1-5; or the folder "
        "with filled sheets of ratings_export",
    ),
    "key": ("", "of filled sheets: private/key.json; empty: the one in that folder"),
    "skip_invalid": ("false", "of filled sheets: true leaves faulty cells out and lists them"),
    "data": ("", "dataset folder whose labels are judged, or demo; empty: a column of the ratings"),
    "reference": ("", "column with the labels, where no dataset is given; empty: named like one"),
    "predictions": ("", "folder of a dataset's runs, a folder a model in it; empty: no ranking"),
    "condition": ("AO", "of the predictions: AO, AT or TO"),
    "resamples": ("1000", "bootstrap resamples of turns behind each interval; 0 for none"),
    "seed": ("0", "of every random draw"),
}


@dataclass(frozen=True)
class Asked:
    """What to validate; each field as in `OPTIONS`.

    Attributes:
        source: what `ratings` was given as.
        rated: which dataset filled sheets are of; None for a CSV, which has no key.
    """

    ratings: Path
    source: Path
    rated: Version | None
    data: Path | None
    reference: str
    predictions: Path | None
    condition: str
    resamples: int
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and log the validation; 2 for a value that is wrong, 1 for a store that is."""
    try:
        asked = settings_from(read_options(OPTIONS, arguments, "validate_labels", __doc__))
        found = _validated(asked)
    except OptionError as error:
        print(f"validate_labels: {error}", file=sys.stderr)
        return 2
    from experiments.tracking import TrackingError
    from experiments.validation_report import print_validation

    print_validation(found, sys.stdout)
    try:
        _log(asked, found)
    except TrackingError as error:
        print(f"validate_labels: {error}", file=sys.stderr)
        return 1
    return 0


def settings_from(words: Mapping[str, str]) -> Asked:
    """Check the words behind each option and give them their types.

    Raises:
        OptionError: for the first value that is wrong.
    """
    data, predictions = words["data"], words["predictions"]
    if data and words["reference"]:
        raise OptionError("data and reference: give one of them, both say what the labels are.")
    path, rated = _ratings_file(words)
    return Asked(
        ratings=path,
        rated=rated,
        source=Path(words["ratings"]).expanduser(),
        data=dataset_folder("data", data, "distress") if data else None,
        reference=words["reference"],
        predictions=_runs_folder(predictions) if predictions else None,
        condition=one_of("condition", words["condition"], CONDITIONS),
        resamples=whole("resamples", words["resamples"], MOST_RESAMPLES),
        seed=whole("seed", words["seed"]),
    )


def _runs_folder(said: str) -> Path:
    """The folder with a folder a model in it; the usual slips are told what it is called."""
    parts = [Path(part.strip()).expanduser() for part in said.split(",")]
    runs = [part for part in parts if (part / "predictions.parquet").is_file()]
    if runs and not predictions_in(runs[0]):
        raise OptionError(
            f"predictions: expected one folder that holds the models' folders, found {said!r}; "
            f"give {runs[0].parent}."
        )
    return existing_folder("predictions", said)


def _ratings_file(words: Mapping[str, str]) -> tuple[Path, Version | None]:
    """The CSV, made of filled sheets where a folder is given, and what their key is of."""
    if not Path(words["ratings"]).expanduser().is_dir() or not words["ratings"]:
        for name in ("key", "skip_invalid"):
            if words[name] != OPTIONS[name][0]:
                raise OptionError(f"{name}: only a folder of filled sheets takes it.")
        return existing_file("ratings", words["ratings"]), None
    from experiments.dataset_versions import Version
    from experiments.filled_ratings import read_filled

    key = existing_file("key", words["key"]) if words["key"] else None
    skip = truth("skip_invalid", words["skip_invalid"])
    filled = read_filled(Path(words["ratings"]).expanduser(), key, skip_invalid=skip)
    print("\n".join(filled.notes))
    return filled.path, Version("the key of the sheets", filled.key.dataset_hash or None)


def _validated(asked: Asked) -> Validation:
    from experiments.dataset_versions import Version, assert_one_version, of_run
    from experiments.validation_report import validation_of
    from validation.ratings import RatingsError, read_ratings
    from validation.scale import scale_named

    column = "none" if asked.data else asked.reference
    try:
        ratings = read_ratings(asked.ratings, scale_named("ordinal"), reference=column)
    except RatingsError as error:
        raise OptionError(str(error)) from error
    versions = [asked.rated] if asked.rated else []
    if asked.data:
        dataset = labelled(asked.data)
        versions.append(Version(f"the dataset {asked.data}", dataset.hash))
    if asked.predictions:
        versions += [of_run(path.parent) for path in predictions_in(asked.predictions)]
    for line in assert_one_version(versions):
        print(line)
    if asked.data:
        ratings = with_labels(ratings, dataset)
    if ratings.reference is None:
        raise OptionError(
            f"reference: {ratings.source} has no column named like the labels; name it with "
            "reference=..., or the dataset with data=..."
        )
    if len(ratings.raters) < 2:
        raise OptionError(f"ratings: expected two or more experts, found {len(ratings.raters)}.")
    errors = read_models(asked.predictions, asked.condition, ratings) if asked.predictions else []
    return validation_of(
        ratings, errors, asked.condition, resamples=asked.resamples, seed=asked.seed
    )


def labelled(folder: Path) -> Dataset:
    """A dataset of turns, its sound unread.

    Raises:
        OptionError: no such dataset.
    """
    from core.dataset import DatasetError
    from validation import schemas
    from validation.datasets import checked_dataset

    try:
        return checked_dataset(folder, "distress", schemas.turns(audio=False))
    except DatasetError as error:
        raise OptionError(str(error)) from error


def with_labels(ratings: Ratings, dataset: Dataset) -> Ratings:
    """The ratings with the labels of a dataset of turns as their reference.

    Raises:
        OptionError: a rated turn that it does not hold.
    """
    from dataclasses import replace

    import numpy as np

    items = dataset.items
    label_of = dict(zip(items["item_id"], items["label"].astype(float), strict=True))
    foreign = [item for item in ratings.items if item not in label_of]
    if foreign:
        raise OptionError(
            f"ratings: {len(foreign)} rated turns, such as {foreign[0]}, are not in "
            f"{dataset.name}; give the dataset that the experts heard."
        )
    labels = np.array([label_of[item] for item in ratings.items], dtype=float)
    return replace(ratings, reference=labels, reference_name=f"label of {dataset.name}")


def predictions_in(folder: Path) -> list[Path]:
    """The predictions of each model under a folder, by name."""
    return sorted(folder.glob("*/predictions.parquet"))


def read_models(folder: Path, condition: str, ratings: Ratings) -> list[ModelError]:
    """The error of each model that has predictions in a folder.

    Raises:
        OptionError: none there, a table that is not one of study 1's predictions, two models
            that were asked about different turns, or one scored by other labels.
    """
    from core.parquet import read_frame
    from experiments.dataset_versions import assert_same_labels
    from validation import schemas
    from validation.consensus import median_labels
    from validation.experts import model_error

    medians = dict(zip(ratings.items, median_labels(ratings.values), strict=True))
    assert ratings.reference is not None
    labels = dict(zip(ratings.items, ratings.reference.tolist(), strict=True))
    found: list[ModelError] = []
    turns: set[str] | None = None
    for path in predictions_in(folder):
        try:
            table = read_frame(path)
            table = schemas.validated(table, schemas.predictions("12345"), str(path))
        except (OSError, ValueError) as error:
            raise OptionError(f"predictions: {error}") from error
        table = table[table["condition"] == condition]
        asked = set(table["item_id"])
        if turns is not None and asked != turns:
            raise OptionError(
                f"predictions: {path.parent.name} was asked about {len(asked)} turns in "
                f"{condition}, {found[-1].model} about others ({len(turns)}); evaluate both on "
                "the same dataset."
            )
        turns = asked
        gold = dict(zip(table["item_id"], table["gold"].astype(float), strict=True))
        assert_same_labels(path.parent.name, gold, labels)
        answers = table["prediction"].astype("Float64").astype(float)
        found.append(
            model_error(
                path.parent.name,
                dict(zip(table["item_id"], answers, strict=True)),
                gold,
                medians,
            )
        )
    if not found:
        raise OptionError(
            f"predictions: {folder} holds no <model>/predictions.parquet; a run with limit= is no "
            "whole one and has none there."
        )
    if not any(each.n_experts for each in found):
        raise OptionError(
            f"predictions: no turn of {folder} in {condition} was rated by the experts and "
            "answered; give the runs of the dataset that they heard."
        )
    return found


def _log(asked: Asked, found: Validation) -> None:
    from hashlib import sha256
    from tempfile import TemporaryDirectory

    from experiments import agreement_files, validation_report
    from experiments.experiment_names import of_ratings
    from experiments.tracking import Record, how_to_look, tracked_run, write

    content = sha256(asked.ratings.read_bytes()).hexdigest()
    left_out = ("ratings", "key", "skip_invalid")
    parameters = {name: str(getattr(asked, name) or "") for name in OPTIONS if name not in left_out}
    study = found.study
    name = of_ratings("validate_labels", asked.source)
    with TemporaryDirectory() as folder, tracked_run(name) as run:
        agreement_files.save_files(study, Path(folder))
        record = Record(
            name=f"{len(study.everyone.raters)} experts, {len(study.everyone.items)} turns",
            parameters={f"undertone.{option}": value for option, value in parameters.items()},
            tags={"undertone.raters": ", ".join(study.everyone.raters)},
            metrics=validation_report.metrics(found),
            note=validation_report.note(found),
            files=Path(folder),
            tables={**agreement_files.tables(study), **validation_report.tables(found)},
            headline=validation_report.HEADLINE,
            dataset={
                "name": asked.ratings.name,
                # MLflow takes 36 characters of a digest.
                "digest": content[:32],
                "source": asked.ratings.name,
                "profile": f'{{"items": {len(study.everyone.items)}}}',
            },
        )
        write(run, record)
    print(f"look:  {how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)}")


if __name__ == "__main__":
    sys.exit(main())
