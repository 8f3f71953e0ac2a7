"""The figures that are no rows of dots: matrices, stacked bars, curves, points on a plane, the
critical-difference diagram. Each takes a tidy frame, which is also its CSV, and gives an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.stats.critical_difference import CriticalDifference
from experiments.comparison.drawing import (
    INK,
    LINES,
    MUTED,
    OTHERS,
    PUBLISHED,
    WIDTH,
    canvas,
    shortened,
    style,
    svg,
)

MOST_CURVES = 7
"""Curves that can be told apart; the other models' are drawn thin and grey."""


def stacked(
    frame: pd.DataFrame,
    parts: Sequence[str],
    x_label: str,
    shades: Sequence[str],
    hatches: Sequence[str],
    *,
    most: float | None = None,
) -> str:
    """Horizontal bars of parts that add up, a panel a condition.

    Args:
        frame: columns row, panel, part, share; rows in order.
        most: right end of the axis; None for the longest bar.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    rows, panels = (list(dict.fromkeys(frame[c])) for c in ("row", "panel"))
    height, drawn = 0.75 + 0.2 * len(rows) + 0.3, 0.0
    with canvas(WIDTH, height, 1, max(len(panels), 1), sharey=True, sharex=True) as (figure, axes):
        for place, panel in zip(axes[0], panels, strict=True):
            # One collection a part: a patch each would take most of a report's time.
            y = np.arange(len(rows))
            table = (
                frame[frame["panel"] == panel]
                .pivot_table(index="row", columns="part", values="share", sort=False)
                .reindex(index=rows, columns=list(parts))
                .fillna(0.0)
            )
            left = np.zeros(len(rows))
            for part, shade, hatch in zip(parts, shades, hatches, strict=True):
                share = table[part].to_numpy(dtype=np.float64)
                right, top, bottom = left + share, y + 0.39, y - 0.39
                corners = np.stack([left, bottom, right, bottom, right, top, left, top], 1)
                bars = PolyCollection(
                    corners.reshape(-1, 4, 2)[share > 0],
                    facecolor=shade,
                    hatch=hatch,
                    edgecolor=INK,
                    lw=0.35,
                )
                place.add_collection(bars)
                left = left + share
            drawn = max(drawn, float(left.max(initial=0.0)))
            place.set_title(panel)
        axes[0, 0].set_yticks(range(len(rows)), [shortened(row) for row in rows])
        axes[0, 0].set_ylim(len(rows) - 0.4, -0.6)
        axes[0, 0].set_xlim(0, most or max(drawn, 1e-6) * 1.05)
        handles = [
            Patch(facecolor=shade, hatch=hatch, edgecolor=INK, lw=0.35, label=part)
            for part, shade, hatch in zip(parts, shades, hatches, strict=True)
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=min(len(parts), 7))
        figure.supxlabel(x_label, fontsize=8.5)
        return svg(figure)


def plane(
    frame: pd.DataFrame,
    x_label: str,
    y_label: str,
    *,
    zero: bool = False,
    log_x: bool = False,
) -> str:
    """Named points with intervals on both axes.

    Args:
        frame: columns row, series, x, y, and where there are any x_low, x_high, y_low, y_high.
        zero: lines at 0, with the four quadrants between them.
    """
    with canvas(WIDTH * 0.8, WIDTH * 0.62) as (figure, axes):
        place = axes[0, 0]
        for number, series in enumerate(dict.fromkeys(frame["series"])):
            drawn = frame[frame["series"] == series]
            look = style(str(series), number)
            x, y = (drawn[c].to_numpy(dtype=np.float64) for c in "xy")
            for across, ends in ((True, ("x_low", "x_high")), (False, ("y_low", "y_high"))):
                if set(ends) <= set(drawn.columns):
                    low, high = (drawn[c].to_numpy(dtype=np.float64) for c in ends)
                    lines = place.hlines if across else place.vlines
                    lines(y if across else x, low, high, color=look.colour, lw=0.9, alpha=0.75)
            place.plot(
                x,
                y,
                look.marker,
                color=look.colour,
                mfc=look.colour if look.filled else "white",
                ms=9 if look is PUBLISHED else 5.5,
                mew=1.1,
                ls="none",
                label=series,
                zorder=4,
            )
        if zero:
            place.axhline(0, color=INK, lw=0.8)
            place.axvline(0, color=INK, lw=0.8)
        if log_x:
            from matplotlib.ticker import FuncFormatter, NullFormatter

            place.set_xscale("log")
            # The usual labels are formulas, which are not parsed here.
            place.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            place.xaxis.set_minor_formatter(NullFormatter())
        place.grid(True)
        place.set_xlabel(x_label)
        place.set_ylabel(y_label)
        if frame["series"].nunique() > 1:
            figure.legend(loc="outside upper left", ncols=4)
        # Where points lie is known once the axes have their place and their limits.
        figure.draw_without_rendering()
        _name_points(place, frame)
        return svg(figure)


# Of a name's letters, in points: enough to see whether two names would lie on one another.
LETTER, LINE = 4.1, 8.5


def _name_points(axes: Any, frame: pd.DataFrame) -> None:
    """Each model's name at its first point, where it covers neither a name nor a point.

    A name that finds no such place is left out: the CSV has it.
    """
    named = frame.dropna(subset=["x", "y"]).drop_duplicates("row")
    to_points = 72 / axes.figure.dpi
    at = axes.transData.transform(named[["x", "y"]].to_numpy(dtype=np.float64)) * to_points
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in at]
    for (x, y), row in zip(at, named.to_dict("records"), strict=True):
        label = shortened(str(row["row"]), 24)
        wide = LETTER * len(label)
        for right, up in ((6, -3), (-6 - wide, -3), (6, 5), (6, -11), (-6 - wide, 5)):
            box = (x + right, y + up, x + right + wide, y + up + LINE)
            if not any(_overlap(box, other) for other in taken):
                taken.append(box)
                axes.annotate(
                    label,
                    (row["x"], row["y"]),
                    xytext=(right, up),
                    textcoords="offset points",
                    fontsize=7,
                    color=INK,
                    zorder=5,
                )
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
    return not apart


def curves(frame: pd.DataFrame, points: pd.DataFrame, x_label: str, y_label: str) -> str:
    """A curve a model, a panel a condition, with named points; the first models stand out.

    Args:
        frame: columns row, panel, x, y, in the order drawn, rows best first.
        points: columns row, panel, x, y; a row of "published ..." is drawn as a star.
    """
    rows, panels = (list(dict.fromkeys(frame[c])) for c in ("row", "panel"))
    size = (WIDTH, WIDTH / max(len(panels), 2) + 0.9)
    with canvas(*size, 1, max(len(panels), 1), sharex=True, sharey=True) as (figure, axes):
        for place, panel in zip(axes[0], panels, strict=True):
            place.plot([0, 1], [0, 1], color=MUTED, lw=0.7)
            # Grey ones first, so that they lie below.
            for number, row in reversed(list(enumerate(rows))):
                of_row = frame[(frame["row"] == row) & (frame["panel"] == panel)]
                point = points[(points["row"] == row) & (points["panel"] == panel)]
                stands_out = number < MOST_CURVES
                look = OTHERS[number % len(OTHERS)]
                colour = look.colour if stands_out else "#c4c4c4"
                line = LINES[number % len(LINES)] if stands_out else "-"
                place.plot(of_row["x"], of_row["y"], color=colour, ls=line, lw=1.2)
                place.plot(
                    point["x"],
                    point["y"],
                    look.marker if stands_out else ".",
                    color=colour,
                    mfc=colour if look.filled else "white",
                    ms=5,
                    ls="none",
                )
            star = points[points["row"].str.startswith("published") & (points["panel"] == panel)]
            place.plot(star["x"], star["y"], "*", color="black", mfc="white", ms=11, ls="none")
            place.set_title(panel)
            place.set_aspect("equal")
            place.set_xlabel(x_label)
        axes[0, 0].set_ylabel(y_label)
        handles = _curve_handles(rows, points)
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        return svg(figure)


def _curve_handles(rows: Sequence[str], points: pd.DataFrame) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = []
    for number, row in enumerate(rows[:MOST_CURVES]):
        look = OTHERS[number % len(OTHERS)]
        fill = look.colour if look.filled else "white"
        line = LINES[number % len(LINES)]
        handles.append(
            Line2D(
                [],
                [],
                color=look.colour,
                ls=line,
                marker=look.marker,
                mfc=fill,
                ms=4,
                label=shortened(row),
            )
        )
    if len(rows) > MOST_CURVES:
        handles.append(Line2D([], [], color="#c4c4c4", label=f"{len(rows) - MOST_CURVES} others"))
    for row in dict.fromkeys(points["row"][points["row"].str.startswith("published")]):
        handles.append(
            Line2D([], [], color="black", marker="*", mfc="white", ms=9, ls="none", label=row)
        )
    return handles


def spans(frame: pd.DataFrame, x_label: str, y_label: str) -> str:
    """One upright span a unit, lowest to highest with a dot at the mean, a panel a condition.

    Args:
        frame: columns unit, panel, lowest, mean, highest; units in order.
    """
    panels = list(dict.fromkeys(frame["panel"]))
    size = (WIDTH, 0.5 + 1.35 * max(len(panels), 1))
    with canvas(*size, max(len(panels), 1), 1, sharex=True, sharey=True) as (figure, axes):
        for place, panel in zip(axes[:, 0], panels, strict=True):
            drawn = frame[frame["panel"] == panel]
            look = style(str(panel))
            x = np.arange(len(drawn))
            place.vlines(x, drawn["lowest"], drawn["highest"], color=look.colour, lw=1.4, alpha=0.6)
            place.plot(x, drawn["mean"], look.marker, color=INK, ms=2.6, ls="none")
            place.set_title(panel)
            place.grid(axis="y")
        axes[-1, 0].set_xticks([])
        axes[-1, 0].set_xlabel(x_label)
        figure.supylabel(y_label, fontsize=8.5)
        return svg(figure)


def critical_difference_diagram(found: CriticalDifference, names: Sequence[str], unit: str) -> str:
    """Mean ranks on a line, 1 at the left; bars join models that do not differ."""
    order = np.argsort(found.mean_ranks, kind="stable")
    half = math.ceil(len(order) / 2)
    lines = max(len(found.groups), 1)
    depth = 1.0 + 0.34 * lines
    with canvas(WIDTH, 0.9 + 0.16 * lines + 0.21 * half) as (figure, axes):
        place = axes[0, 0]
        lowest, highest = 1.0, float(max(len(names), 2))
        room = (highest - lowest) * 0.04
        place.hlines(0, lowest, highest, color=INK, lw=1)
        for tick in range(1, len(names) + 1, max(1, len(names) // 15)):
            place.vlines(tick, -0.18, 0, color=INK, lw=0.8)
            place.text(tick, -0.28, str(tick), ha="center", va="bottom", fontsize=7.5)
        for number, at in enumerate(order):
            rank = float(found.mean_ranks[at])
            on_left = number < half
            level = number if on_left else len(order) - 1 - number
            y = depth + level * 0.5
            edge = lowest - room if on_left else highest + room
            place.plot([rank, rank, edge], [0, y, y], color=MUTED, lw=0.7)
            place.text(
                edge + (-room / 2 if on_left else room / 2),
                y,
                f"{shortened(names[at])}  {rank:.2f}",
                va="center",
                fontsize=7.5,
                ha="right" if on_left else "left",
            )
        for number, group in enumerate(found.groups):
            ranks = [float(found.mean_ranks[at]) for at in group]
            y = 0.42 + 0.34 * number
            place.hlines(y, min(ranks) - room / 4, max(ranks) + room / 4, color=INK, lw=3.2)
        if not math.isnan(found.difference):
            place.hlines(-1.25, lowest, lowest + found.difference, color=INK, lw=1.6)
            said = f"critical difference {found.difference:.2f}, {found.blocks} {unit}"
            place.text(lowest, -1.4, said, fontsize=7.5, va="bottom")
        span = highest - lowest
        place.set_xlim(lowest - 0.42 * span, highest + 0.42 * span)
        place.set_ylim(depth + half * 0.5, -2.0)
        place.set_axis_off()
        return svg(figure)
