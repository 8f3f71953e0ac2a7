"""Figures of one run, each a PNG that reads in grey and to colour-blind eyes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.metrics.estimate import Estimate

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
    labels = [name[2:] for name in predictions.columns if name.startswith("p_")]
    conditions = list(dict.fromkeys(predictions["condition"]))
    side = 1.1 + 0.5 * len(labels)
    figure = _figure(1.2 + len(conditions) * (side + 0.4), side + 1.3)
    panels = np.atleast_1d(np.asarray(figure.subplots(1, len(conditions), sharey=True)))
    for axes, condition in zip(panels, conditions, strict=True):
        rows = predictions[predictions["condition"] == condition]
        counts = _counts(rows, labels)
        unanswered = int(rows["prediction"].isna().sum())
        _draw_counts(axes, counts, labels)
        axes.set_title(f"{condition}  (n = {counts.sum()}, {unanswered} unanswered)", fontsize=9)
        axes.set_xlabel("predicted")
    panels[0].set_ylabel("gold")
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def save_forest(estimates: Sequence[Estimate], title: str, path: Path) -> None:
    """Every metric with its 95 % interval, one panel a metric, conditions down.

    An undefined figure has its row and no dot.
    """
    metrics = list(dict.fromkeys(e.metric for e in estimates))
    columns = min(4, max(1, len(metrics)))
    lines = math.ceil(len(metrics) / columns) or 1
    tallest = max((sum(e.metric == m for e in estimates) for m in metrics), default=1)
    figure = _figure(2.7 * columns, 0.7 + lines * (1.1 + 0.28 * tallest))
    panels = np.atleast_1d(np.asarray(figure.subplots(lines, columns, squeeze=False))).ravel()
    for axes, metric in zip(panels, metrics, strict=False):
        _draw_forest(axes, metric, [e for e in estimates if e.metric == metric])
    for axes in panels[len(metrics) :]:
        axes.set_axis_off()
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def _figure(width: float, height: float) -> Figure:
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


def _draw_forest(axes: Any, metric: str, estimates: list[Estimate]) -> None:
    for row, estimate in enumerate(estimates):
        if not math.isnan(estimate.low) and not math.isnan(estimate.high):
            axes.plot([estimate.low, estimate.high], [row, row], color=INK, lw=1.6)
        if not math.isnan(estimate.value):
            axes.plot(estimate.value, row, "o", color=INK, ms=5)
    axes.set_yticks(
        range(len(estimates)), [f"{e.condition} ({e.n}/{e.n_total})" for e in estimates], fontsize=8
    )
    axes.set_ylim(len(estimates) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(metric, fontsize=9)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
