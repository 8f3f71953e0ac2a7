"""`mlflow run . -e smoke`: five items of each task on each model that can run here.

Those that come along run in a process, and every model whose image is built and
whose weights are present in its image: whether it loads, hears and answers in a
form that can be read. The whole road but the tracking, in a folder that is thrown
away; one table. Exit code 0 only if every item was answered: something to put in a CI.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from containers.runtime.card import read_card
from experiments.options import OptionError, read_options
from experiments.settings import ROOT, models, settings_from, tasks

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation
    from experiments.table import Coverage

# They need nothing but this clone.
MODELS = ("null", "baseline")
ITEMS = 5
# The metric shown of each task; all of them are computed.
HEADLINE = {"distress": "mae", "manipulation": "accuracy"}


@dataclass(frozen=True)
class Outcome:
    """What one model made of one task, and how long it took.

    Attributes:
        hears: what the canary found, in words; "" where no audio was asked about.
    """

    model: str
    runner: str
    task: str
    evaluation: Evaluation
    seconds: float
    hears: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, which has no options; returns its exit code."""
    try:
        read_options({}, arguments, "smoke", __doc__)
    except OptionError as error:
        print(f"smoke: {error}", file=sys.stderr)
        return 2
    from experiments.parent import Stopped, end_on_signal, end_with_parent
    from experiments.runners import RunnerError

    end_on_signal()
    end_with_parent()
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    failures: list[str] = []
    with TemporaryDirectory(prefix="undertone-smoke-") as folder:
        for model, runner in ways():
            for task in tasks():
                try:
                    outcomes.append(outcome(model, task, Path(folder) / runner, runner))
                except RunnerError as error:
                    failures.append(str(error))
                except (Stopped, KeyboardInterrupt):
                    return 130
    code = _report(outcomes, time.perf_counter() - started)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else code


def ways() -> Iterator[tuple[str, str]]:
    """Model and runner of everything that can be tried here."""
    from experiments.runners import docker
    from experiments.weights import present, weights_folder

    for model in MODELS:
        yield model, "process"
    for model in models():
        card = read_card(ROOT / "containers" / model / "model.toml")
        if present(card, weights_folder()) and docker.why_not(card) is None:
            yield model, "docker"


def outcome(model: str, task: str, output: Path, runner: str) -> Outcome:
    """Evaluate a model on the first items of a task's demo set.

    Raises:
        RunnerError: the model did not get through.
    """
    from experiments.evaluation import carry_out, prepare
    from experiments.run_folder import held
    from experiments.runners import RunnerError

    started = time.perf_counter()
    words = {"model": model, "task": task, "limit": str(ITEMS), "runner": runner}
    plan = prepare(settings_from({**words, "output": str(output), "resamples": "200"}))
    log = plan.folder.log
    try:
        with held(plan.folder):
            evaluation = carry_out(plan, log=log)
    except RunnerError as error:
        # The folder is thrown away, and the log with it.
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        raise RunnerError(f"{said}{error}") from error
    seconds = time.perf_counter() - started
    return Outcome(model, runner, task, evaluation, seconds, _hears(plan.folder.work))


def _hears(work: Path) -> str:
    """The least of the canary's changes, in spreads of the logits, from the runtime's summary."""
    try:
        hearing = json.loads(work.read_bytes())["summary"].get("hearing")
    except (OSError, ValueError, KeyError):
        return ""
    return f"yes ({min(hearing['changes'].values()):.2g})" if hearing else ""


def parse_rate(row: Coverage) -> str:
    """Share of the texts that could be read as an answer; "-" where there was no text."""
    texts = row.n + row.counts["unparsed"]
    return f"{row.n / texts:.0%}" if texts else "-"


def is_clean(row: Coverage) -> bool:
    """Whether every item of a condition has an answer that needed no excuse."""
    return row.n == row.n_total > 0 and not any(row.counts.values())


def _report(outcomes: list[Outcome], seconds: float) -> int:
    from experiments.table import COVERAGE_HEADER, Grid, coverage, coverage_cells, print_grid

    header: tuple[str, ...] = (
        "task",
        "model",
        "runner",
        "hears",
        "condition",
        "metric",
        "value",
        "parsed",
    )
    header = (*header, *COVERAGE_HEADER, "seconds")
    rows, clean = [], True
    for found in outcomes:
        for row in coverage(found.evaluation.predictions):
            clean &= is_clean(row)
            named = (found.task, found.model, found.runner, found.hears, row.condition)
            figures = (*_headline(found, row.condition), parse_rate(row), *coverage_cells(row))
            rows.append((*named, *figures, f"{found.seconds:.1f}"))
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
