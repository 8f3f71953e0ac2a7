"""Figures of one run, each a PNG that reads in grey and to colour-blind eyes."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.metrics.estimate import Estimate
from core.predictions import labels_of
from experiments.table import shown_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1b3a57"
DOTS_PER_INCH = 110


def save_confusion(predictions: pd.DataFrame, title: str, path: Path) -> None:
    """Gold against predicted, one panel a condition, counts in the cells.

    Args:
        predictions: as `validation.schemas` has them. Labels are taken from the p_<label>
            columns, so a label nobody gave still has its row.
    """
    labels = labels_of(predictions.columns)
    conditions = list(dict.fromkeys(predictions["condition"]))
    side = 1.1 + 0.5 * len(labels)
    figure = new_figure(0.8 + len(conditions) * side, side + 1.4)
    panels = np.atleast_1d(np.asarray(figure.subplots(1, len(conditions), sharey=True)))
    for axes, condition in zip(panels, conditions, strict=True):
        rows = predictions[predictions["condition"] == condition]
        counts = _counts(rows, labels)
        unanswered = int(rows["prediction"].isna().sum())
        _draw_counts(axes, counts, labels)
        axes.set_title(f"{condition}: {counts.sum()} answered, {unanswered} not", fontsize=9)
        axes.set_xlabel("predicted")
    panels[0].set_ylabel("gold")
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def save_forest(
    estimates: Sequence[Estimate], conditions: Collection[str], title: str, path: Path
) -> None:
    """Every metric with its 95 % interval: a panel a metric, then one for each difference.

    Figures that have no interval by nature, p-values, are left to the table. An
    undefined figure has its row and no dot.
    """
    panels: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        if not estimate.metric.endswith("_p"):
            panels.setdefault(shown_metric(estimate, conditions), []).append(estimate)
    columns = min(3, max(1, len(panels)))
    lines = math.ceil(len(panels) / columns) or 1
    tallest = max((len(rows) for rows in panels.values()), default=1)
    figure = new_figure(3.2 * columns, 0.6 + lines * (0.8 + 0.3 * tallest))
    axes = np.asarray(figure.subplots(lines, columns, squeeze=False)).ravel()
    for place, (name, rows) in zip(axes, panels.items(), strict=False):
        _draw_forest(place, name, rows)
    for place in axes[len(panels) :]:
        place.set_axis_off()
    figure.suptitle(f"{title}, 95 % intervals", fontsize=10)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def new_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches, laid out by itself."""
    # Not pyplot: it keeps every figure alive and asks for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _counts(rows: pd.DataFrame, labels: list[str]) -> np.ndarray[Any, Any]:
    answered = rows[rows["prediction"].notna()]
    table = pd.crosstab(answered["gold"].astype(str), answered["prediction"].astype(str))
    return table.reindex(index=labels, columns=labels, fill_value=0).to_numpy(dtype=int)


def _draw_counts(axes: Any, counts: np.ndarray[Any, Any], labels: list[str]) -> None:
    most = max(int(counts.max()), 1)
    axes.imshow(counts, cmap="Blues", vmin=0, vmax=most)
    for (gold, predicted), count in np.ndenumerate(counts):
        colour = "white" if count > 0.6 * most else "black"
        axes.text(predicted, gold, str(count), ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_yticks(range(len(labels)), labels)


def _draw_forest(axes: Any, name: str, estimates: list[Estimate]) -> None:
    for row, estimate in enumerate(estimates):
        if not math.isnan(estimate.low) and not math.isnan(estimate.high):
            axes.plot([estimate.low, estimate.high], [row, row], color=INK, lw=1.6)
        if not math.isnan(estimate.value):
            axes.plot(estimate.value, row, "o", color=INK, ms=5)
    labels = [f"{e.condition}  {e.n}/{e.n_total}" for e in estimates]
    axes.set_yticks(range(len(estimates)), labels, fontsize=8)
    axes.set_ylim(len(estimates) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(name.replace("_", " "), fontsize=9)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    if name.endswith("_difference"):
        axes.axvline(0, color="#888888", lw=0.8, ls="--")
    axes.set_axisbelow(True)
