"""`mlflow run . -e compare`: models and conditions side by side, as a report.

Gathers the latest complete run of every model and condition from MLflow, checks that they may
be compared, and writes one HTML page, its tables and its figures, also as a run of its own.

Exit codes: 0 done; 1 the store was in the way; 2 a value is wrong, or the runs may not be
compared.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_file, one_of, read_options, whole
from experiments.settings import MOST_RESAMPLES, tasks

if TYPE_CHECKING:
    from experiments.comparison.asked import Asked
    from experiments.comparison.gathering import Gathered
    from experiments.comparison.report import Report
    from experiments.tracking import Record

OPTIONS: dict[str, tuple[str, str]] = {
    "task": ("distress", "distress or manipulation"),
    "runs": ("", "MLflow run ids with commas between; empty: the latest complete of every model"),
    "dataset": ("", "a dataset's name; needed where the store holds runs on several"),
    "allow": ("", "prompts: compare runs with other prompts or task settings, named in the tables"),
    "published": ("auto", "the paper's figures beside: auto on the paper's data, true or false"),
    "ratings": ("", "for task manipulation: CSVs of human ratings, commas between"),
    "resamples": ("1000", "bootstrap resamples behind each interval"),
    "seed": ("0", "of every random draw"),
    "output": ("outputs", "folder the report goes under"),
}


@dataclass(frozen=True)
class CompareSettings:
    """What to compare; each field as in `OPTIONS`."""

    task: str
    runs: tuple[str, ...]
    dataset: str
    allow: tuple[str, ...]
    published: str
    ratings: tuple[Path, ...]
    resamples: int
    seed: int
    output: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report, print where it is; the exit code is in the module's docstring."""
    from experiments.parent import end_on_signal, end_with_parent

    try:
        words = read_options(OPTIONS, arguments, "compare", "Models side by side, as a report.")
        settings = settings_from(words)
    except OptionError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    from core.stats.paired import UnequalItemsError
    from experiments.comparison.gathering import GatheringError
    from experiments.tracking import TrackingError
    from validation.ratings import RatingsError
    from validation.schemas import TableError

    end_on_signal()
    end_with_parent()
    try:
        run(settings, words)
    except (GatheringError, UnequalItemsError, RatingsError, TableError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    except TrackingError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"compare: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def settings_from(words: Mapping[str, str]) -> CompareSettings:
    """Check the words behind each option and give them their types.

    Raises:
        OptionError: for the first value that is wrong.
    """
    return CompareSettings(
        task=one_of("task", words["task"], tasks()),
        runs=tuple(filter(None, (part.strip() for part in words["runs"].split(",")))),
        dataset=words["dataset"],
        allow=(one_of("allow", words["allow"], ("prompts",)),) if words["allow"] else (),
        published=one_of("published", words["published"], ("auto", "true", "false")),
        ratings=tuple(
            existing_file("ratings", part.strip()) for part in words["ratings"].split(",") if part
        ),
        resamples=_resamples(words["resamples"]),
        seed=whole("seed", words["seed"]),
        output=Path(words["output"]).expanduser(),
    )


def _resamples(said: str) -> int:
    if found := whole("resamples", said, MOST_RESAMPLES):
        return found
    raise OptionError("resamples: expected 1 or more, found 0.")


def run(settings: CompareSettings, words: Mapping[str, str]) -> None:
    """Gather, work out, write, log; nothing is opened in MLflow before the runs were checked."""
    from experiments.comparison.gathering import gather
    from experiments.comparison.report import report_of
    from experiments.comparison.writing import write_report
    from experiments.experiment_names import of_command
    from experiments.tracking import how_to_look, open_store, tracked_run, write

    client, _ = open_store()
    gathered = gather(
        client,
        settings.task,
        ids=settings.runs,
        dataset=settings.dataset,
        allow=settings.allow,
    )
    asked = _asked(settings, gathered)
    report = report_of(gathered, asked, settings.ratings)
    folder = _folder(settings, gathered)
    page = write_report(report.sections, report.title, report.lines, folder)
    with tracked_run(of_command("compare", words)) as tracked:
        write(tracked, _record(settings, gathered, report, folder))
    print(report.title)
    for line in report.lines:
        print(line)
    print(f"report: {page}")
    print(f"look:   {how_to_look(tracked.uri, tracked.experiment_id, leaderboard=False)}")


def _asked(settings: CompareSettings, gathered: Gathered) -> Asked:
    from core.published import published
    from experiments.comparison.asked import Asked

    paper = published(settings.task)
    on_its_data = paper is not None and gathered.dataset in paper.datasets
    shown = settings.published == "true" or (settings.published == "auto" and on_its_data)
    return Asked(settings.resamples, settings.seed, paper if shown else None)


def _folder(settings: CompareSettings, gathered: Gathered) -> Path:
    from experiments.run_folder import safe_name

    name = safe_name(gathered.dataset, gathered.dataset_hash)
    folder = settings.output.resolve() / "compare" / settings.task / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _record(settings: CompareSettings, gathered: Gathered, report: Report, folder: Path) -> Record:
    from experiments.comparison.gathering import REPORT_TAG
    from experiments.tracking import MOST_METRICS, Record

    of_headline = report.metrics[report.metrics["metric"] == report.headline]
    metrics = {
        f"{report.headline}_{row['condition']}/{_metric_name(row['model'])}": float(row["value"])
        for row in of_headline.to_dict("records")
    }
    runs = [run.id for runs in gathered.runs.values() for run in runs]
    return Record(
        name=f"compare · {settings.task} · {_counted(len(report.cells.models))}",
        parameters={
            "undertone.compared_runs": ",".join(runs),
            "undertone.compared_dataset": gathered.dataset,
            "undertone.compared_hash": gathered.dataset_hash,
            "undertone.resamples": str(settings.resamples),
            "undertone.seed": str(settings.seed),
            "undertone.output": str(folder),
        },
        tags={
            REPORT_TAG: "compare",
            "task": settings.task,
            "dataset": gathered.dataset,
            "synthetic": str(gathered.synthetic).lower(),
        },
        metrics=metrics if len(metrics) <= MOST_METRICS else {},
        note=_note(report),
        files=folder,
        dataset={
            "name": gathered.dataset,
            "digest": gathered.dataset_hash[:32],
            "source": gathered.dataset,
            "profile": f'{{"items": {len(report.cells.aligned.item_ids)}}}',
        },
    )


def _counted(models: int) -> str:
    return "1 model" if models == 1 else f"{models} models"


# Of the 8,000 characters a description may have; a table cut in the middle helps nobody.
ROOM = 7_500


def _note(report: Report) -> str:
    """The run's description: what was compared, and the first table if there is room for it."""
    from experiments.comparison.writing import markdown

    said = "\n\n".join([*report.lines, "The report is artifact `report.html`."])
    first = next((e for s in report.sections for e in s.exhibits if e.layout), None)
    shown = markdown(first) if first else ""
    return f"{said}\n\n{shown}" if len(said) + len(shown) < ROOM else said


def _metric_name(model: str) -> str:
    import re

    return re.sub(r"[^A-Za-z0-9_. -]+", "_", model)


if __name__ == "__main__":
    sys.exit(main())
