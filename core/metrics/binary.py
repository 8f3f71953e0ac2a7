"""Metrics of the manipulation task, all of them functions of one table of counts.

The table has a row for gold YES and one for gold NO, and a column for predicted YES,
predicted NO and no answer. Metrics take any number of leading axes. `METRICS` looks at
answered clips only; `METRICS_OVER_ALL` counts a clip without an answer as answered wrongly.
Undefined ratios are NaN, never 0: a model that never says YES has no precision for YES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from core.metrics.ordinal import share
from core.stats.proportion import wilson

Counts = NDArray[Any]
Float = NDArray[np.float64]
Metric = Callable[[Counts], Float]

CLASSES = ("YES", "NO")


def counts(gold: ArrayLike | Sequence[Any], predicted: ArrayLike | Sequence[Any]) -> Counts:
    """Count (gold, predicted) pairs.

    Args:
        gold: (n,) "YES" or "NO".
        predicted: (n,) "YES" or "NO", or None, NaN or pd.NA where there is no answer.

    Returns:
        (2, 3) integers; row gold YES, NO, column predicted YES, NO and last no answer.

    Raises:
        ValueError: unequal lengths, or another label, with its position.
    """
    rows = _classes(gold, name="gold", missing=False)
    columns = _classes(predicted, name="predicted", missing=True)
    if len(rows) != len(columns):
        raise ValueError(
            f"gold has {len(rows)} labels and predicted {len(columns)}: "
            "give one prediction for each gold label, None where there is no answer."
        )
    return np.bincount(rows * 3 + columns, minlength=6).reshape(2, 3)


def joint_counts(
    gold: ArrayLike | Sequence[Any],
    first: ArrayLike | Sequence[Any],
    second: ArrayLike | Sequence[Any],
) -> Counts:
    """Count (gold, first, second) triples of the same clips, for paired differences.

    Returns:
        (2, 3, 3); summed over the last axis the table of `first`, over the one before it
        the table of `second`.
    """
    rows = _classes(gold, name="gold", missing=False)
    one = _classes(first, name="first", missing=True)
    two = _classes(second, name="second", missing=True)
    if not len(rows) == len(one) == len(two):
        raise ValueError(
            f"gold has {len(rows)} labels, first {len(one)}, second {len(two)}: "
            "give all three for the same clips, None where there is no answer."
        )
    return np.bincount((rows * 3 + one) * 3 + two, minlength=18).reshape(2, 3, 3)


def _classes(labels: ArrayLike | Sequence[Any], *, name: str, missing: bool) -> NDArray[np.int64]:
    said = np.asarray(labels, dtype=object).ravel()
    none = pd.isna(said)
    # pd.NA is neither equal to a label nor not.
    column = said.copy()
    column[none] = None
    found = np.full(len(column), -1)
    for number, label in enumerate(CLASSES):
        found[column == label] = number
    if missing:
        found[none] = 2
    if (found < 0).any():
        row = int(np.flatnonzero(found < 0)[0])
        expected = "YES or NO" + (", or None for no answer" if missing else "")
        raise ValueError(
            f"{name}, position {row}: expected {expected}, found {said[row]!r}. "
            f"{int((found < 0).sum())} of {len(column)} do not fit."
        )
    return found


def wrong_if_unanswered(counts: Counts) -> Counts:
    """The (..., 2, 2) table in which each clip without an answer got the wrong one.

    Args:
        counts: (..., 2, 3).

    Returns:
        (..., 2, 2); every metric of it has all clips as its denominator.
    """
    table = np.array(counts[..., :2])
    if counts.shape[-1] == 3:
        table[..., 0, 1] += counts[..., 0, 2]
        table[..., 1, 0] += counts[..., 1, 2]
    return table


def coverage(counts: Counts) -> Float:
    """Share of clips that were answered, (...) in [0, 1]; NaN where there are none."""
    return share(counts[..., :2].sum((-2, -1)), counts.sum((-2, -1)))


def support(counts: Counts) -> Counts:
    """(..., 2) answered clips of gold YES and gold NO."""
    return np.asarray(counts[..., :2].sum(-1))


def _hits(counts: Counts) -> Counts:
    return np.stack([counts[..., 0, 0], counts[..., 1, 1]], -1)


def precision(counts: Counts) -> Float:
    """Share of the clips predicted as a class that are of it.

    Args:
        counts: (..., 2, 2 or 3).

    Returns:
        (..., 2) for YES and NO, in [0, 1]; NaN for a class that was never predicted.
    """
    return share(_hits(counts), counts[..., :2].sum(-2))


def recall(counts: Counts) -> Float:
    """Share of a class's answered clips that were predicted as it: the per-set accuracy.

    Args:
        counts: (..., 2, 2 or 3).

    Returns:
        (..., 2) for YES (sensitivity) and NO (specificity), in [0, 1]; NaN for a class
        without answered clips.

    Source: SpeechMentalManip, section 4.2.
    """
    return share(_hits(counts), support(counts))


def f1(counts: Counts) -> Float:
    """Harmonic mean of precision and recall, as 2 TP / (2 TP + FP + FN).

    Args:
        counts: (..., 2, 2 or 3).

    Returns:
        (..., 2) for YES and NO, in [0, 1]; NaN for a class neither present nor predicted.
    """
    return share(2 * _hits(counts), counts[..., :2].sum(-2) + support(counts))


def accuracy(counts: Counts) -> Float:
    """Share of answered clips predicted rightly, (...) in [0, 1]; NaN where there are none."""
    return share(_hits(counts).sum(-1), support(counts).sum(-1))


def balanced_accuracy(counts: Counts) -> Float:
    """Mean of sensitivity and specificity, (...) in [0, 1]; NaN where a class is empty."""
    return np.asarray(recall(counts).mean(-1))


def matthews_correlation(counts: Counts) -> Float:
    """Matthews' correlation coefficient (MCC).

    Args:
        counts: (..., 2, 2 or 3).

    Returns:
        (...) in [-1, 1]; NaN where gold or predicted is constant (scikit-learn gives 0 there,
        which reads as "no better than chance").

    Source: Matthews (1975).
    """
    table = np.asarray(counts[..., :2], dtype=np.float64)
    apart = table[..., 0, 0] * table[..., 1, 1] - table[..., 0, 1] * table[..., 1, 0]
    margins = np.sqrt(table.sum(-1)).prod(-1) * np.sqrt(table.sum(-2)).prod(-1)
    return share(apart, margins)


def macro(score: Metric) -> Metric:
    """The unweighted mean over both classes; NaN where either class's score is."""
    return lambda counts: np.asarray(score(counts).mean(-1))


def weighted(score: Metric) -> Metric:
    """The mean over classes weighted by their support; a class without support weighs nothing."""

    def mean(counts: Counts) -> Float:
        size = support(counts)
        kept = np.where(size > 0, score(counts), 0.0)
        return share((kept * size).sum(-1), size.sum(-1))

    return mean


def _of(score: Metric, label: str) -> Metric:
    place = CLASSES.index(label)
    return lambda counts: score(counts)[..., place]


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "accuracy_yes": _of(recall, "YES"),
    "accuracy_no": _of(recall, "NO"),
    "balanced_accuracy": balanced_accuracy,
    "precision_yes": _of(precision, "YES"),
    "recall_yes": _of(recall, "YES"),
    "f1_yes": _of(f1, "YES"),
    "precision_no": _of(precision, "NO"),
    "recall_no": _of(recall, "NO"),
    "f1_no": _of(f1, "NO"),
    "specificity": _of(recall, "NO"),
    "macro_precision": macro(precision),
    "macro_recall": macro(recall),
    "macro_f1": macro(f1),
    "weighted_precision": weighted(precision),
    "weighted_recall": weighted(recall),
    "weighted_f1": weighted(f1),
    "mcc": matthews_correlation,
}
"""Over answered clips; YES is the positive class."""


def _over_all(metric: Metric) -> Metric:
    return lambda counts: metric(wrong_if_unanswered(counts))


METRICS_OVER_ALL: dict[str, Metric] = {
    f"{name}_all": _over_all(metric) for name, metric in METRICS.items()
}
"""Over all clips, an unanswered one counted as answered wrongly."""


def why_undefined(metric: str, counts: Counts) -> str | None:
    """Why a metric of one (2, 2 or 3) table is NaN; None where it is defined."""
    over_all = metric in METRICS_OVER_ALL
    table = wrong_if_unanswered(counts) if over_all else np.asarray(counts)[..., :2]
    value = (METRICS_OVER_ALL if over_all else METRICS)[metric](counts)
    if not np.isnan(value):
        return None
    if not table.sum():
        asked = int(np.asarray(counts).sum())
        return f"none of {asked} clips was answered" if asked else "there are no clips"
    kind = "" if over_all else "answered "
    empty = [f"no {kind}clip is {CLASSES[row]}" for row in np.flatnonzero(table.sum(1) == 0)]
    never = [
        f"{CLASSES[column]} was never predicted" for column in np.flatnonzero(table.sum(0) == 0)
    ]
    return "; ".join(empty + never)


def report(counts: Counts) -> pd.DataFrame:
    """The classification report of one table, as in the paper's Table 3, top.

    Args:
        counts: (2, 2 or 3).

    Returns:
        Rows GT=YES, GT=NO, Macro avg, Weighted avg; columns Precision, Recall, F1, N, where N
        is the answered clips.
    """
    size = support(counts)
    columns: dict[str, list[float]] = {}
    for name, score in (("Precision", precision), ("Recall", recall), ("F1", f1)):
        columns[name] = [
            *score(counts),
            float(macro(score)(counts)),
            float(weighted(score)(counts)),
        ]
    columns["N"] = [int(size[0]), int(size[1]), int(size.sum()), int(size.sum())]
    return pd.DataFrame(columns, index=["GT=YES", "GT=NO", "Macro avg", "Weighted avg"])


def per_set(counts: Counts, *, level: float = 0.95) -> pd.DataFrame:
    """Confusion counts and accuracy of each gold set, as in Table 3, bottom.

    Args:
        counts: (2, 2 or 3).

    Returns:
        Rows GT=YES and GT=NO; columns Pred YES, Pred NO, No answer, Acc (over answered clips)
        with its Wilson interval Low and High, Acc all (over all clips), N (all clips).
    """
    table = np.asarray(counts)
    low, high = wilson(_hits(table), support(table), level=level)
    whole = table.sum(-1)
    return pd.DataFrame(
        {
            "Pred YES": table[:, 0],
            "Pred NO": table[:, 1],
            "No answer": whole - support(table),
            "Acc": recall(table),
            "Low": low,
            "High": high,
            "Acc all": share(_hits(table), whole),
            "N": whole,
        },
        index=["GT=YES", "GT=NO"],
    )
