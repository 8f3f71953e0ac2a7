"""`mlflow run . -e agreement`: how far human raters agree, from a CSV of their ratings.

Reads and checks the table, prints the agreement of the group and of every pair,
the consensus and how it compares with a reference label, and logs the same to
MLflow. The statistics are `validation`'s; what is shown is `agreement_report`'s.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from experiments.agreement_report import Study

OPTIONS: dict[str, tuple[str, str]] = {
    "ratings": ("", "CSV: a column a rater, or columns item, rater and rating"),
    "scale": ("nominal", "nominal (0/1 or NO/YES), ordinal (1-5) or interval (1 to 5)"),
    "levels": ("", 'another scale than these: "1-7", or labels with commas, lowest first'),
    "group": ("", "raters to measure, such as BFGH or ann,bob; empty for all"),
    "reference": ("", 'column to compare the consensus with; empty: one named like it; or "none"'),
    "resamples": ("1000", "bootstrap resamples of items behind each interval; 0 for none"),
    "seed": ("0", "of every random draw"),
}


class AgreementSettingsError(ValueError):
    """A value that cannot be meant; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class AgreementSettings:
    """What to measure; each field as in `OPTIONS`."""

    ratings: Path
    scale: str
    levels: str
    group: str
    reference: str
    resamples: int
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and log the agreement; 2 for a value that is wrong, 1 for a store that is."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        asked = settings_from(_words(words))
        study = _measured(asked)
    except AgreementSettingsError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 2
    from experiments.agreement_report import print_study
    from experiments.tracking import TrackingError

    print_study(study, sys.stdout)
    try:
        _log(asked, study)
    except TrackingError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 1
    return 0


def settings_from(words: Mapping[str, str]) -> AgreementSettings:
    """Check the words behind each option and give them their types.

    Raises:
        AgreementSettingsError: for the first value that is wrong.
    """
    said = {name: words.get(name, default).strip() for name, (default, _) in OPTIONS.items()}
    if not said["ratings"]:
        raise AgreementSettingsError("ratings: expected a CSV of ratings, found nothing.")
    path = Path(said["ratings"]).expanduser()
    if not path.is_file():
        raise AgreementSettingsError(f"ratings: there is no file {path}.")
    return AgreementSettings(
        path,
        said["scale"],
        said["levels"],
        said["group"],
        said["reference"],
        _whole("resamples", said["resamples"]),
        _whole("seed", said["seed"]),
    )


def _measured(asked: AgreementSettings) -> Study:
    from experiments.agreement_report import study_of
    from validation.ratings import RatingsError, of_group, read_ratings, scale_named

    try:
        scale = scale_named(asked.scale, asked.levels)
        everyone = read_ratings(asked.ratings, scale, reference=asked.reference)
        group = of_group(everyone, asked.group)
    except RatingsError as error:
        raise AgreementSettingsError(str(error)) from error
    return study_of(everyone, group, resamples=asked.resamples, seed=asked.seed)


def _log(asked: AgreementSettings, study: Study) -> None:
    from hashlib import sha256
    from tempfile import TemporaryDirectory

    from experiments import agreement_files, agreement_report
    from experiments.tracking import Record, tracked_run, write

    content = sha256(asked.ratings.read_bytes()).hexdigest()
    parameters = {name: str(getattr(asked, name)) for name in OPTIONS if name != "ratings"}
    with TemporaryDirectory() as folder, tracked_run(f"agreement/{asked.ratings.stem}") as run:
        agreement_files.save_files(study, Path(folder))
        record = Record(
            name=f"{study.group_name} {asked.scale}",
            parameters={f"undertone.{name}": value for name, value in parameters.items()},
            tags={"undertone.raters": ", ".join(study.group.raters)},
            metrics=agreement_report.metrics(study),
            note=agreement_report.note(study),
            files=Path(folder),
            tables=agreement_files.tables(study),
            dataset={
                "name": asked.ratings.name,
                # MLflow takes 36 characters of a digest.
                "digest": content[:32],
                "source": asked.ratings.name,
                "profile": f'{{"items": {len(study.everyone.items)}}}',
            },
        )
        write(run, record)


def _words(arguments: Sequence[str]) -> dict[str, str]:
    parser = _Parser(
        prog="agreement", description="How far human raters agree.", allow_abbrev=False
    )
    for name, (default, meaning) in OPTIONS.items():
        parser.add_argument(
            f"--{name}", default=default, metavar="VALUE", help=f"{meaning} [{default}]"
        )
    return dict(vars(parser.parse_args(list(arguments))))


def _whole(name: str, said: str) -> int:
    if not said.isascii() or not said.isdigit():
        raise AgreementSettingsError(
            f"{name}: expected a whole number of 0 or more, found {said!r}."
        )
    return int(said)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise AgreementSettingsError(f"{message}; see --help.")


if __name__ == "__main__":
    sys.exit(main())
