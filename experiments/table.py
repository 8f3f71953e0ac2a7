"""The table a reader wants first: condition by metric with intervals, and what was not answered.

One grid of words, shown in the terminal, in the MLflow run's description and
in a smoke run. The denominators stand beside the metrics: never one without the other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from core.metrics.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

# Shown beside every metric, each as a count of items.
FAILURES = ("refused", "unparsed", "truncated", "audio_error", "model_error", "timeout")


@dataclass(frozen=True)
class Grid:
    """Words in rows and columns."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Coverage:
    """How many items of a condition were answered, and what became of the others."""

    condition: str
    n_total: int
    n: int
    counts: dict[str, int]

    @property
    def share(self) -> float:
        return self.n / self.n_total if self.n_total else math.nan


def coverage(predictions: pd.DataFrame) -> list[Coverage]:
    """One `Coverage` a condition, in the order of the table.

    An item counts as answered where it has a prediction.
    """
    found = []
    for condition, rows in predictions.groupby("condition", sort=False):
        counts = rows["status"].value_counts()
        found.append(
            Coverage(
                condition=str(condition),
                n_total=len(rows),
                n=int(rows["prediction"].notna().sum()),
                counts={status: int(counts.get(status, 0)) for status in FAILURES},
            )
        )
    return found


def metrics_grid(estimates: Sequence[Estimate], answered: Sequence[Coverage]) -> Grid:
    """Metrics down, conditions across, and below how much of the set they rest on.

    Conditions are few and metrics many: this way round it fits a terminal of 80 columns.
    """
    conditions = [row.condition for row in answered]
    metrics = list(dict.fromkeys(e.metric for e in estimates if e.condition in conditions))
    by_cell = {(e.metric, e.condition): e for e in estimates}
    rows = [
        (metric, *(with_interval(by_cell.get((metric, condition))) for condition in conditions))
        for metric in metrics
    ]
    rows += zip(COVERAGE_HEADER, *(coverage_cells(row) for row in answered), strict=True)
    return Grid(("", *conditions), tuple(rows))


def comparisons_grid(estimates: Sequence[Estimate], answered: Sequence[Coverage]) -> Grid:
    """Pairs of conditions down, what was computed of them across; no rows where there are none."""
    conditions = {row.condition for row in answered}
    pairs = [e for e in estimates if e.condition not in conditions]
    by_cell = {(shown_metric(e, conditions), e.condition): e for e in pairs}
    metrics = list(dict.fromkeys(metric for metric, _ in by_cell))
    rows = []
    for pair in dict.fromkeys(e.condition for e in pairs):
        cells = [with_interval(by_cell.get((metric, pair))) for metric in metrics]
        of_pair = [e for e in pairs if e.condition == pair]
        rows.append((pair, *cells, f"{max(e.n for e in of_pair)}/{of_pair[0].n_total}"))
    return Grid(("pair", *metrics, "answered in both"), tuple(rows))


def shown_metric(estimate: Estimate, conditions: Collection[str]) -> str:
    """The metric's name; `mae_difference` for what two conditions differ by.

    A p-value belongs to a pair by itself and keeps its name.
    """
    is_difference = estimate.condition not in conditions and not estimate.metric.endswith("_p")
    return f"{estimate.metric}_difference" if is_difference else estimate.metric


COVERAGE_HEADER = ("answered", "coverage", "refused", "unparsed", "truncated", "failed")


def coverage_cells(row: Coverage) -> tuple[str, ...]:
    """The words under `COVERAGE_HEADER`."""
    failed = sum(row.counts[status] for status in ("audio_error", "model_error", "timeout"))
    return (
        f"{row.n}/{row.n_total}",
        "undefined" if math.isnan(row.share) else f"{row.share:.0%}",
        str(row.counts["refused"]),
        str(row.counts["unparsed"]),
        str(row.counts["truncated"]),
        str(failed),
    )


def with_interval(estimate: Estimate | None) -> str:
    """`0.83 [0.71, 0.95]`; a dash where nothing was computed, a reason-worthy NaN as undefined."""
    if estimate is None:
        return "-"
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return _figure(estimate.value)
    # A narrow terminal may break the line before the interval, not inside.
    interval = f"[{_figure(estimate.low)},\N{NO-BREAK SPACE}{_figure(estimate.high)}]"
    return f"{_figure(estimate.value)} {interval}"


def frame_grid(frame: pd.DataFrame) -> Grid:
    """A table of a study; columns "X low" and "X high" become the interval beside X."""
    names = [str(name) for name in frame.columns]
    ends = {f"{name} {end}" for name in names for end in ("low", "high")}
    shown = [name for name in names if name not in ends]
    rows = [tuple(_frame_cell(row, name) for name in shown) for row in frame.to_dict("records")]
    return Grid(tuple(shown), tuple(rows))


def _frame_cell(row: Mapping[Hashable, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    if math.isnan(value):
        return "undefined"
    low, high = row.get(f"{name} low", math.nan), row.get(f"{name} high", math.nan)
    digits = 2 if name == "%" else 3
    if math.isnan(low) or math.isnan(high):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f},\N{NO-BREAK SPACE}{high:.{digits}f}]"


def undefined_reasons(estimates: Sequence[Estimate]) -> list[str]:
    """One line for each figure that is undefined: which, and why."""
    return [
        f"{e.metric}/{e.condition} is undefined: {e.reason or 'no reason given'}"
        for e in estimates
        if math.isnan(e.value)
    ]


def narrower_bases(estimates: Sequence[Estimate], answered: Sequence[Coverage]) -> list[str]:
    """One line for each metric that rests on fewer items than were answered: on how many."""
    of_condition = {row.condition: row.n for row in answered}
    found: dict[str, list[str]] = {}
    for e in estimates:
        if e.n < of_condition.get(e.condition, 0) and not math.isnan(e.value):
            found.setdefault(e.metric, []).append(f"{e.n} of {e.n_total} in {e.condition}")
    return [f"{metric} rests on {', '.join(bases)}" for metric, bases in found.items()]


def print_grid(grid: Grid, title: str, stream: TextIO) -> None:
    """Show a title and below it a grid: in a terminal wrapped to its width, in a file as text."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, name in enumerate(grid.header):
        table.add_column(name, justify="left" if number == 0 else "right")
    unicode = "utf" in (getattr(stream, "encoding", None) or "utf").lower()
    for row in grid.rows:
        table.add_row(*(row if unicode else (c.replace("\N{NO-BREAK SPACE}", " ") for c in row)))
    # A log has no width of its own; wide enough that no cell of ours is folded.
    width = None if stream.isatty() else 200
    console = Console(file=stream, width=width, highlight=False, markup=False)
    # A table's own title would be folded to the width of the table.
    console.print(title, soft_wrap=True)
    console.print(table)


def markdown(grid: Grid) -> str:
    """The same grid for the run's description."""
    lines = ["| " + " | ".join(grid.header) + " |", "|" + " --- |" * len(grid.header)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in grid.rows
    ]
    return "\n".join(lines)


def _figure(value: float) -> str:
    # A p-value of 0.0003 must not read as zero.
    return f"{value:.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.1g}"
