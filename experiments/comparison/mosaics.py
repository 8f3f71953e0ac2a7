"""Small multiples drawn on one plane: confusion matrices and reliability diagrams of many models.

Thirty models make ninety matrices. An axes for each would take longer than all of the
statistics, so they are laid out here, as one image, few collections and their words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.comparison.drawing import (
    INK,
    MUTED,
    RULE,
    WIDTH,
    canvas,
    handle,
    shortened,
    style,
    svg,
)

Float = NDArray[np.float64]

MOST_COUNTED = 600
"""Cells of all matrices together, up to which each shows its count."""


COUNTED_ACROSS, ACROSS = 40, 58
"""Cells across the page, with counts in them and without."""


def confusions(frame: pd.DataFrame, labels: Sequence[str]) -> str:
    """A small matrix for each model and condition: shares of each gold label, darker is more.

    Args:
        frame: columns model, condition, gold, predicted, count, share; of every cell one row for
            each pair of labels, in the labels' order.
    """
    models, conditions = (list(dict.fromkeys(frame[c])) for c in ("model", "condition"))
    k = len(labels)
    counted = len(frame) <= MOST_COUNTED
    across = (COUNTED_ACROSS if counted else ACROSS) // (len(conditions) * (k + 1) + 1)
    per_line = max(1, min(len(models), across))
    lines = math.ceil(len(models) / per_line)
    # In cells of a matrix: one between matrices, two between models, three above for the names.
    block, tall = len(conditions) * (k + 1) + 1, k + 3
    height = 0.35 + lines * tall * WIDTH / (per_line * block + 1)
    cells = dict(list(frame.groupby(["model", "condition"], sort=False)))
    corners = []
    with canvas(WIDTH, min(height, 60)) as (figure, axes):
        place = axes[0, 0]
        shares = np.full((lines * tall, per_line * block), np.nan)
        for number, model in enumerate(models):
            line, column = divmod(number, per_line)
            top, left = line * tall + 2, column * block
            place.text(left, top - 1.15, shortened(model), fontsize=8, color=INK)
            for at, condition in enumerate(conditions):
                if (model, condition) not in cells:
                    continue
                rows, x = cells[model, condition], left + at * (k + 1)
                table = rows["share"].to_numpy(dtype=np.float64).reshape(k, k)
                shares[top : top + k, x : x + k] = np.nan_to_num(table)
                corners.append((x, top))
                place.text(x + k / 2, top - 0.2, condition, ha="center", fontsize=6.5, color=MUTED)
                if counted:
                    _counts(place, rows["count"].to_numpy().reshape(k, k), table, x, top)
        _label(place, labels, 0, 2)
        _frames(place, corners, k)
        place.imshow(
            shares,
            cmap="Blues",
            vmin=0,
            vmax=1,
            interpolation="nearest",
            extent=(0, shares.shape[1], shares.shape[0], 0),
        )
        place.set_xlim(-1.2, per_line * block - 1)
        place.set_ylim(lines * tall - 0.4, -0.2)
        place.set_axis_off()
        figure.supxlabel("predicted label (rows: gold label)", fontsize=8.5)
        return svg(figure)


def _counts(axes: Any, counts: NDArray[Any], shares: Float, left: int, top: int) -> None:
    for (gold, said), count in np.ndenumerate(counts):
        axes.text(
            left + said + 0.5,
            top + gold + 0.5,
            str(count),
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if shares[gold, said] > 0.55 else INK,
        )


def _label(axes: Any, labels: Sequence[str], left: int, top: int) -> None:
    """Names of the labels, at one matrix: all others have the same."""
    for at, label in enumerate(labels):
        axes.text(left - 0.15, top + at + 0.5, label, ha="right", va="center", fontsize=6)
        axes.text(
            left + at + 0.5, top + len(labels) + 0.15, label, ha="center", va="top", fontsize=6
        )


def _frames(axes: Any, corners: Sequence[tuple[int, int]], k: int) -> None:
    from matplotlib.collections import LineCollection

    around = np.array([(0, 0), (k, 0), (k, k), (0, k), (0, 0)], dtype=np.float64)
    squares = [around + np.array(corner) for corner in corners]
    axes.add_collection(LineCollection(squares, color=MUTED, lw=0.6))


def reliability_diagrams(frame: pd.DataFrame, x_label: str, y_label: str) -> str:
    """A reliability diagram a model, a line a condition, the diagonal where they should be.

    Args:
        frame: columns model, condition, confidence, observed.
    """
    models, conditions = (list(dict.fromkeys(frame[c])) for c in ("model", "condition"))
    across = min(6, max(len(models), 1))
    down = math.ceil(len(models) / across) or 1
    # Unit squares, a quarter between them, and room above for the name.
    step_x, step_y = 1.25, 1.42
    corner = {
        model: (number % across * step_x, -(number // across) * step_y)
        for number, model in enumerate(models)
    }
    unit = WIDTH / (6 * step_x)
    with canvas(max(0.55 + across * step_x * unit, 4.2), 0.6 + down * step_y * unit) as (
        figure,
        axes,
    ):
        place = axes[0, 0]
        _squares(place, list(corner.values()))
        for number, condition in enumerate(conditions):
            look = style(condition, number)
            x, y = _apart(frame[frame["condition"] == condition], corner)
            place.plot(
                x,
                y,
                marker=look.marker,
                ms=2.8,
                color=look.colour,
                ls=look.line,
                lw=1,
                mfc=look.colour if look.filled else "white",
                mew=0.8,
            )
        for model, (left, bottom) in corner.items():
            place.text(left, bottom + 1.06, shortened(model, 22), fontsize=7.5, color=INK)
        left, bottom = 0.0, corner[models[-1]][1]
        for tick in (0, 0.5, 1):
            place.text(left - 0.05, bottom + tick, f"{tick:g}", ha="right", va="center", fontsize=7)
            place.text(left + tick, bottom - 0.05, f"{tick:g}", ha="center", va="top", fontsize=7)
        place.set_xlim(-0.2, across * step_x - 0.2)
        place.set_ylim(-(down - 1) * step_y - 0.18, 1.25)
        place.set_aspect("equal")
        place.set_axis_off()
        handles = [handle(condition, n) for n, condition in enumerate(conditions)]
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles))
        figure.supxlabel(x_label, fontsize=8.5)
        figure.supylabel(y_label, fontsize=8.5)
        return svg(figure)


def _squares(axes: Any, corners: Sequence[tuple[float, float]]) -> None:
    from matplotlib.collections import LineCollection

    around = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)], dtype=np.float64)
    middle = np.array([(0.5, 0), (0.5, 1), (0.5, 0.5), (0, 0.5), (1, 0.5)], dtype=np.float64)
    rising = np.array([(0, 0), (1, 1)], dtype=np.float64)
    for shape, colour in ((middle, RULE), (around, MUTED), (rising, MUTED)):
        moved = [shape + np.array(corner) for corner in corners]
        axes.add_collection(LineCollection(moved, color=colour, lw=0.6))


def _apart(
    of_condition: pd.DataFrame, corner: dict[str, tuple[float, float]]
) -> tuple[Float, Float]:
    """The curves of all models as one line with gaps: one artist in the place of thirty."""
    xs: list[float] = []
    ys: list[float] = []
    for model, rows in of_condition.groupby("model", sort=False):
        left, bottom = corner[str(model)]
        xs += [*(rows["confidence"] + left), np.nan]
        ys += [*(rows["observed"] + bottom), np.nan]
    return np.array(xs), np.array(ys)
