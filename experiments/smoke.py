"""`mlflow run . -e smoke`: five items of each task on each model that comes along.

The whole road but the tracking, in a folder that is thrown away; one table.
Exit code 0 only if every item was answered: something to put in a CI.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from experiments.settings import settings_from, tasks

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation
    from experiments.table import Coverage

MODELS = ("null", "baseline")
ITEMS = 5
# The metric shown of each task; all of them are computed.
HEADLINE = {"distress": "mae", "manipulation": "accuracy"}


@dataclass(frozen=True)
class Outcome:
    """What one model made of one task, and how long it took."""

    model: str
    task: str
    evaluation: Evaluation
    seconds: float


def main() -> int:
    """Run the command; returns its exit code."""
    from experiments.parent import Stopped, end_on_signal, end_with_parent
    from experiments.runners import RunnerError

    end_on_signal()
    end_with_parent()
    started = time.perf_counter()
    with TemporaryDirectory(prefix="undertone-smoke-") as folder:
        try:
            outcomes = [outcome(model, task, Path(folder)) for task in tasks() for model in MODELS]
        except RunnerError as error:
            print(error, file=sys.stderr)
            return 1
        except (Stopped, KeyboardInterrupt):
            return 130
    return _report(outcomes, time.perf_counter() - started)


def outcome(model: str, task: str, output: Path) -> Outcome:
    """Evaluate a model on the first items of a task's demo set.

    Raises:
        RunnerError: the model did not get through.
    """
    from experiments.evaluation import carry_out, prepare
    from experiments.run_folder import held
    from experiments.runners import RunnerError

    started = time.perf_counter()
    words = {"model": model, "task": task, "limit": str(ITEMS), "runner": "process"}
    plan = prepare(settings_from({**words, "output": str(output), "resamples": "200"}))
    log = plan.folder.path / "model.log"
    try:
        with held(plan.folder):
            evaluation = carry_out(plan, log=log)
    except RunnerError as error:
        # The folder is thrown away, and the log with it.
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        raise RunnerError(f"{said}{error}") from error
    return Outcome(model, task, evaluation, time.perf_counter() - started)


def is_clean(row: Coverage) -> bool:
    """Whether every item of a condition has an answer that needed no excuse."""
    return row.n == row.n_total > 0 and not any(row.counts.values())


def _report(outcomes: list[Outcome], seconds: float) -> int:
    from experiments.table import COVERAGE_HEADER, Grid, coverage, coverage_cells, print_grid

    header = ("task", "model", "condition", "metric", "value", *COVERAGE_HEADER, "seconds")
    rows, clean = [], True
    for found in outcomes:
        for row in coverage(found.evaluation.predictions):
            clean &= is_clean(row)
            named = (found.task, found.model, row.condition, *_headline(found, row.condition))
            rows.append((*named, *coverage_cells(row), f"{found.seconds:.1f}"))
    print_grid(Grid(header, tuple(rows)), f"smoke: {ITEMS} items each, {seconds:.1f} s", sys.stdout)
    if not clean:
        print("Some items were not answered: see the counts above.", file=sys.stderr)
    return 0 if clean else 1


def _headline(found: Outcome, condition: str) -> tuple[str, str]:
    from experiments.table import with_interval

    of_condition = [e for e in found.evaluation.estimates if e.condition == condition]
    wanted = HEADLINE.get(found.task)
    chosen = next((e for e in of_condition if e.metric == wanted), None) or next(iter(of_condition))
    return chosen.metric, with_interval(chosen)


if __name__ == "__main__":
    sys.exit(main())
