"""What the models answered, whatever the task: confusions, distributions of labels, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics.calibration import reliability
from core.metrics.ordinal import share
from experiments.comparison import mosaics, plots
from experiments.comparison.cells import Cells
from experiments.comparison.document import Exhibit, Section

UNANSWERED = "no answer"

# Of one cell: how sure each answer was, and whether what it was sure of was so.
Sureness = Callable[[pd.DataFrame], tuple[NDArray[Any], NDArray[Any]]]


def section(cells: Cells, labels: Sequence[str], sureness: Sureness, sure_of: str) -> Section:
    """Confusions, distributions of labels, and calibration."""
    found = Section("answers", "What the models answered")
    counts = confusion_frame(cells, labels)
    found.exhibits += [_confusions(counts, labels), _distributions(counts, labels)]
    bins = _bins(cells, sureness)
    if bins.empty:
        found.notes.append("No model gave a distribution over the labels: no calibration.")
    else:
        found.exhibits.append(_calibration(bins, sure_of))
    return found


def confusion_frame(cells: Cells, labels: Sequence[str]) -> pd.DataFrame:
    """Counts of every gold and predicted label; `share` is of the gold label's answered items.

    Returns:
        Columns model, condition, gold, predicted (with "no answer" last), count, share.
    """
    parts = []
    place = {label: at for at, label in enumerate(labels)}
    gold = np.array([place[str(label)] for label in cells.aligned.gold], dtype=np.int64)
    k = len(labels)
    for at, (model, condition) in enumerate(cells.keys):
        said = [k if p is None else place[str(p)] for p in cells.aligned.predicted[at]]
        table = np.bincount(gold * (k + 1) + said, minlength=k * (k + 1)).reshape(k, k + 1)
        shares = np.full(table.shape, np.nan)
        shares[:, :k] = share(table[:, :k], table[:, :k].sum(1, keepdims=True))
        parts.append(
            pd.DataFrame(
                {
                    "model": model,
                    "condition": condition,
                    "gold": np.repeat(labels, k + 1),
                    "predicted": np.tile([*labels, UNANSWERED], k),
                    "count": table.ravel(),
                    "share": shares.ravel(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _confusions(counts: pd.DataFrame, labels: Sequence[str]) -> Exhibit:
    answered = counts[counts["predicted"] != UNANSWERED]
    return Exhibit(
        "confusion",
        "Confusion of gold and predicted labels",
        "Rows are gold labels, columns predictions; the darker, the larger the share of the gold "
        "label's answered items. A good model is dark on the diagonal. Counts are in the CSV.",
        counts,
        svg=mosaics.confusions(answered, labels),
    )


def _distributions(counts: pd.DataFrame, labels: Sequence[str]) -> Exhibit:
    parts = [*labels, UNANSWERED]
    by_model = counts.groupby(["model", "condition", "predicted"], sort=False)["count"].sum()
    rows = by_model.reset_index().rename(columns={"model": "row", "predicted": "part"})
    first = counts["model"].iloc[0]
    gold = (
        counts[counts["model"] == first]
        .groupby(["condition", "gold"], sort=False)["count"]
        .sum()
        .reset_index()
        .rename(columns={"gold": "part"})
        .drop_duplicates(["part"])
    )
    of_gold = pd.concat(
        [
            gold.assign(row="gold labels", condition=condition)
            for condition in dict.fromkeys(counts["condition"])
        ]
    )
    frame = pd.concat([of_gold, rows], ignore_index=True).rename(columns={"condition": "panel"})
    total = frame.groupby(["row", "panel"], sort=False)["count"].transform("sum")
    frame = frame.assign(share=frame["count"] / total)
    # Light to dark in order, so that grey says the same; no answer is white and hatched.
    shades = [*_shades(len(labels)), "white"]
    return Exhibit(
        "label_distribution",
        "Distribution of labels",
        "Share of all items given each label, the gold labels above; hatched: no answer.",
        frame[["row", "panel", "part", "count", "share"]],
        svg=plots.stacked(
            frame, parts, "share of items", shades, [*[""] * len(labels), "////"], most=1.0
        ),
    )


def _shades(number: int) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    chosen = colormaps["cividis"](np.linspace(0.95, 0.05, number))
    return [to_hex(colour) for colour in chosen]


def _bins(cells: Cells, sureness: Sureness) -> pd.DataFrame:
    parts = []
    for (model, condition), rows in cells.frames.items():
        bins = reliability(*sureness(rows))
        parts.append(bins.assign(model=model, condition=condition))
    return pd.concat(parts, ignore_index=True)


def _calibration(bins: pd.DataFrame, sure_of: str) -> Exhibit:
    return Exhibit(
        "calibration",
        "Calibration",
        f"How sure the model was ({sure_of}) and how often that was so, in ten bins of equal "
        "width. On the diagonal a model is as sure as it is right. Wilson intervals and the "
        "number of items in each bin are in the CSV.",
        bins[["model", "condition", *bins.columns.drop(["model", "condition"])]],
        svg=mosaics.reliability_diagrams(bins, sure_of, "share for which it was so"),
    )
