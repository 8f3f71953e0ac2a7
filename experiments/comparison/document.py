"""The parts of a report: exhibits (a table or a figure, with its numbers) in sections.

An exhibit holds its numbers as a data frame, which becomes its CSV, and how it is looked at: a
laid-out table or an SVG. What a section has to say of things that could not be shown stands in
its notes. How parts become files is `writing`'s.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from experiments.table import frame_grid

CONDITION_TITLES = {"AO": "Audio only", "AT": "Audio + transcript", "TO": "Transcript only"}
ALPHA = 0.05
"""A test below it is marked, in bold or with a star."""


@dataclass(frozen=True)
class Cell:
    """One cell of a laid-out table.

    Attributes:
        text: as shown, not yet escaped for anything.
        mark: set behind it, raised: a star for significance.
    """

    text: str
    bold: bool = False
    underline: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Head:
    """A column head that spans columns."""

    text: str
    span: int = 1


@dataclass(frozen=True)
class Layout:
    """A table as it is looked at: one or two lines of heads, rows of cells.

    Attributes:
        words: how many of the first columns hold words; the others are right-aligned.
        steep: heads of the last line stand upright, where they are many and long.
    """

    heads: tuple[tuple[Head, ...], ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1
    steep: bool = False


@dataclass(frozen=True)
class Exhibit:
    """One table or figure.

    Attributes:
        name: of its files; letters, digits and underscores.
        numbers: what it shows, in full precision.
        layout: of a table.
        svg: of a figure.
        folded: whether a reader opens it first (appendix material).
    """

    name: str
    title: str
    caption: str
    numbers: pd.DataFrame
    layout: Layout | None = None
    svg: str = ""
    folded: bool = False


@dataclass
class Section:
    """A part of the report with a heading; `notes` say what is not there, and why."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    exhibits: list[Exhibit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def table(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    *,
    words: int = 1,
    folded: bool = False,
    numbers: pd.DataFrame | None = None,
) -> Exhibit:
    """An exhibit of a frame as it is; "X low" and "X high" become the interval beside "X".

    Args:
        numbers: what the CSV holds, where that is more than is laid out.
    """
    grid = frame_grid(frame)
    layout = Layout(
        (tuple(Head(name) for name in grid.header),),
        tuple(tuple(Cell(text) for text in row) for row in grid.rows),
        words,
    )
    whole = frame if numbers is None else numbers
    return Exhibit(name, title, caption, whole, layout=layout, folded=folded)


def by_cell(metrics: pd.DataFrame) -> dict[tuple[str, str, str], dict[Hashable, Any]]:
    """The rows of a frame of metrics by (model, condition, metric)."""
    rows = metrics.to_dict("records")
    return {(row["model"], row["condition"], row["metric"]): row for row in rows}


def undefined_notes(metrics: pd.DataFrame) -> list[str]:
    """A sentence for each metric and reason it is undefined for: whose it is."""
    undefined = metrics[metrics["value"].isna()]
    notes = []
    for (metric, reason), rows in undefined.groupby(["metric", "reason"], sort=False):
        who = ", ".join(f"{row['model']} {row['condition']}" for row in rows.to_dict("records"))
        notes.append(f"{metric} is undefined for {who}: {reason}.")
    return notes


LONG = 40
"""Rows above which a table is folded away."""


def is_long(rows: Sequence[Any]) -> bool:
    """Whether a table would bury what comes after it."""
    return len(rows) > LONG


def figure(value: float, digits: int = 2) -> str:
    """A number as the report shows it; an en dash where it is undefined."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """`0.83 [0.71, 0.95]`, without the bracket where there is no interval."""
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        return figure(value, digits)
    ends = f"[{figure(low, digits)},\N{NO-BREAK SPACE}{figure(high, digits)}]"
    return f"{figure(value, digits)}\N{NO-BREAK SPACE}{ends}"


def percent(share: float) -> str:
    """Not rounded up to all: 1,801 of 1,802 is no 100 %."""
    if math.isnan(share):
        return "–"
    shown = f"{100 * share:.1f}"
    return f"{'>99.9' if shown == '100.0' and share < 1 else shown} %"


def significant(value: float) -> str:
    """Three significant digits, for figures of any size."""
    if math.isnan(value):
        return "–"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def p_value(p: float) -> str:
    """A p-value: never 0."""
    if math.isnan(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def counted(number: int, noun: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Iterable[Any], most: int = 6) -> str:
    """Names with commas, the first few of many."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def best(values: Sequence[float], *, smaller: bool) -> set[int]:
    """Places of the best of the values as printed to three decimals; all that tie for it."""
    shown = [round(value, 3) for value in values]
    defined = [value for value in shown if not math.isnan(value)]
    if not defined:
        return set()
    first = min(defined) if smaller else max(defined)
    return {place for place, value in enumerate(shown) if value == first}
