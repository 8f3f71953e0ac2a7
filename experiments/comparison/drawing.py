"""How every figure of a report looks: one palette, one font, one way to become an SVG.

Colours are Okabe and Ito's, and each comes with a marker, a hatch and a line style, so that a
figure says the same in grey. Texts from outside are drawn as they are: "$" starts no formula.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, RULE = "#222222", "#6b6b6b", "#d9d9d9"


@dataclass(frozen=True)
class Style:
    """What tells a series from the others, in colour and in grey."""

    colour: str
    marker: str
    line: str
    hatch: str
    filled: bool = True


STYLES = {
    "AO": Style("#0072B2", "o", "-", ""),
    "AT": Style("#D55E00", "s", "--", "////"),
    "TO": Style("#009E73", "^", ":", "\\\\", filled=False),
}
PUBLISHED = Style("#000000", "*", "-.", "", filled=False)
# For what is no condition, in this order.
OTHERS = (
    Style("#0072B2", "o", "-", ""),
    Style("#E69F00", "s", "--", "////", filled=False),
    Style("#009E73", "^", ":", "\\\\", filled=False),
    Style("#CC79A7", "D", "-.", "xxxx"),
    Style("#56B4E9", "v", "-", "---", filled=False),
    Style("#D55E00", "P", "-", "++++"),
    Style("#000000", "X", "--", "|||"),
)
LINES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))

# Any: the stubs spell out every key.
RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "undertone",
    # A model's name may hold a dollar sign, and a broken formula would end the report.
    "text.parse_math": False,
}

WIDTH = 8.6
"""Inches of a full-width figure: the report's text column."""


def style(series: str, number: int = 0) -> Style:
    """The style of a series: a condition's own, else by its place."""
    if series.startswith("published"):
        return PUBLISHED
    return STYLES.get(series, OTHERS[number % len(OTHERS)])


@contextmanager
def canvas(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> Iterator[tuple[Figure, np.ndarray[Any, Any]]]:
    """A figure and its (rows, columns) axes, in the report's style."""
    # Not pyplot: it keeps every figure alive and asks for a display.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, np.asarray(figure.subplots(rows, columns, squeeze=False, **shared))


def svg(figure: Figure) -> str:
    """The figure as one SVG document, the same bytes for the same figure."""
    out = io.StringIO()
    # Without a date, or equal figures would differ.
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def dots(
    frame: pd.DataFrame,
    x_label: str,
    *,
    zero: float | None = None,
    bars: bool = False,
    columns: int = 5,
    limits: tuple[float, float] | None = None,
    whole: bool = False,
    same_x: bool = False,
) -> str:
    """Values with intervals: rows down, a panel beside a panel, series in each row.

    Args:
        frame: columns row, panel, series, value, low, high; each in order of first appearance.
        zero: where a line marks no difference.
        bars: draw bars from 0 in the place of dots.
        columns: panels in a line.
        limits: of the x axis.
        whole: ticks at whole numbers, for ranks.
        same_x: one x axis for all panels, where they are the same quantity.
    """
    rows = list(dict.fromkeys(frame["row"]))
    panels = list(dict.fromkeys(frame["panel"]))
    series = list(dict.fromkeys(frame["series"]))
    across = min(columns, len(panels)) or 1
    down = math.ceil(len(panels) / across) or 1
    tall = max(len(rows), 1) * (0.13 + 0.11 * len(series))
    size = (WIDTH, down * (tall + 0.55) + 0.45)
    with canvas(*size, down, across, sharex=same_x) as (figure, axes):
        places = axes.ravel()
        for place, panel in zip(places, panels, strict=False):
            of_panel = frame[frame["panel"] == panel]
            for number, label in enumerate(series):
                _draw_series(
                    place, of_panel[of_panel["series"] == label], rows, number, len(series), bars
                )
            place.set_title(panel)
            place.grid(axis="x")
            place.set_ylim(len(rows) - 0.5, -0.5)
            # Shared rows would make their ticks once a panel, which takes most of the time.
            place.set_yticks([])
            if zero is not None:
                place.axvline(zero, color=INK, lw=0.8)
            if limits:
                place.set_xlim(*limits)
            if whole:
                place.xaxis.get_major_locator().set_params(integer=True)
        for place in places[len(panels) :]:
            place.set_axis_off()
        for place in axes[:, 0]:
            place.set_yticks(range(len(rows)), [shortened(row) for row in rows])
        figure.supxlabel(x_label, fontsize=8.5)
        if len(series) > 1:
            handles = [handle(label, n, bars) for n, label in enumerate(series)]
            figure.legend(handles=handles, loc="outside upper left", ncols=len(series))
        return svg(figure)


def _draw_series(
    axes: Any, drawn: pd.DataFrame, rows: Sequence[str], number: int, of: int, bars: bool
) -> None:
    look = style(str(drawn["series"].iloc[0]) if len(drawn) else "", number)
    place = {row: at for at, row in enumerate(rows)}
    offset = (number - (of - 1) / 2) * 0.75 / of
    y = np.array([place[row] + offset for row in drawn["row"]], dtype=np.float64)
    x, low, high = (drawn[c].to_numpy(dtype=np.float64) for c in ("value", "low", "high"))
    has_ends = ~np.isnan(low) & ~np.isnan(high)
    dark = INK if bars else look.colour
    axes.hlines(y[has_ends], low[has_ends], high[has_ends], color=dark, lw=1.3, zorder=3)
    if bars:
        axes.barh(
            y,
            x,
            0.7 / of,
            color=look.colour if look.filled else "white",
            edgecolor=look.colour if not look.filled else INK,
            hatch=look.hatch,
            lw=0.7,
        )
        return
    axes.plot(
        x,
        y,
        look.marker,
        color=look.colour,
        ms=7 if look is PUBLISHED else 4.2,
        mfc=look.colour if look.filled else "white",
        mew=1.1,
        ls="none",
        zorder=4,
    )


def handle(label: str, number: int, bars: bool = False) -> Any:
    """A legend's entry of a series."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look = style(label, number)
    fill = look.colour if look.filled else "white"
    if bars:
        return Patch(facecolor=fill, edgecolor=INK, hatch=look.hatch, label=label)
    return Line2D(
        [],
        [],
        color=look.colour,
        marker=look.marker,
        mfc=fill,
        mew=1.1,
        lw=1.3,
        ls="none" if look is PUBLISHED else "-",
        ms=5,
        label=label,
    )


LONGEST_LABEL = 34


def shortened(label: str, most: int = LONGEST_LABEL) -> str:
    """A name that leaves room for the figure beside it, and holds no line break."""
    flat = " ".join(label.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
