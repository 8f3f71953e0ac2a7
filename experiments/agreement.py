"""`mlflow run . -e agreement`: how far human raters agree, from a CSV of their ratings.

Reads and checks the table, prints the agreement of the group and of every pair,
the consensus and how it compares with a reference label, and logs the same to
MLflow. The statistics are `validation`'s; what is shown is `agreement_report`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_file, read_options, whole
from experiments.settings import MOST_RESAMPLES

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
    try:
        asked = settings_from(
            read_options(OPTIONS, arguments, "agreement", "How far human raters agree.")
        )
        study = _measured(asked)
    except OptionError as error:
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
        OptionError: for the first value that is wrong.
    """
    return AgreementSettings(
        ratings=existing_file("ratings", words["ratings"]),
        scale=words["scale"],
        levels=words["levels"],
        group=words["group"],
        reference=words["reference"],
        resamples=whole("resamples", words["resamples"], MOST_RESAMPLES),
        seed=whole("seed", words["seed"]),
    )


def _measured(asked: AgreementSettings) -> Study:
    from experiments.agreement_report import study_of
    from validation.ratings import RatingsError, of_group, read_ratings
    from validation.scale import ScaleError, scale_named

    try:
        scale = scale_named(asked.scale, asked.levels)
        everyone = read_ratings(asked.ratings, scale, reference=asked.reference)
        group = of_group(everyone, asked.group)
    except (RatingsError, ScaleError) as error:
        raise OptionError(str(error)) from error
    return study_of(everyone, group, resamples=asked.resamples, seed=asked.seed)


def _log(asked: AgreementSettings, study: Study) -> None:
    from hashlib import sha256
    from tempfile import TemporaryDirectory

    from experiments import agreement_files, agreement_report
    from experiments.experiment_names import of_ratings
    from experiments.tracking import Record, how_to_look, tracked_run, write

    content = sha256(asked.ratings.read_bytes()).hexdigest()
    parameters = {name: str(getattr(asked, name)) for name in OPTIONS if name != "ratings"}
    name = of_ratings("agreement", asked.ratings)
    with TemporaryDirectory() as folder, tracked_run(name) as run:
        agreement_files.save_files(study, Path(folder))
        record = Record(
            name=f"{study.group_name} {asked.scale}",
            parameters={f"undertone.{name}": value for name, value in parameters.items()},
            tags={"undertone.raters": ", ".join(study.group.raters)},
            metrics=agreement_report.metrics(study),
            note=agreement_report.note(study),
            files=Path(folder),
            tables=agreement_files.tables(study),
            headline=agreement_report.HEADLINE,
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
