"""Ordinal metrics of distress ratings, all of them functions of one table of counts.

The table has a row for each gold level 1-5 and a column for each predicted level 1-5, then
one for no answer. Every metric takes any number of leading axes, so one condition, thirty
cells or a thousand resamples go through the same line. `METRICS` looks at answered items
only; `METRICS_OVER_ALL` charges each unanswered item the worst error its gold level allows.
Intervals are left to `core.stats.bootstrap`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.metrics.tables import LEVELS, Counts
from core.metrics.tables import counts as counts

Float = NDArray[np.float64]
Metric = Callable[[Counts], Float]

ERRORS = np.subtract.outer(LEVELS, LEVELS).T.astype(np.float64)
"""(5, 5) predicted minus gold; row gold, column predicted."""

WORST = np.maximum(LEVELS - 1, 5 - LEVELS).astype(np.float64)
"""(5,) the largest absolute error possible for each gold level: 4, 3, 2, 3, 4."""


def answered(counts: Counts) -> Float:
    """The (..., 5, 5) answered part of a table, as floats."""
    return np.asarray(counts[..., :5], dtype=np.float64)


def share(part: ArrayLike, whole: ArrayLike) -> Float:
    """part / whole, NaN where whole is 0; shapes broadcast."""
    above, below = np.broadcast_arrays(part, np.asarray(whole, dtype=np.float64))
    ratio: Float = np.divide(above, below, out=np.full(below.shape, np.nan), where=below != 0)
    return ratio


def _weighed(table: Float, weights: Float) -> Float:
    # one matrix product: several times faster than masking and summing small trailing axes
    rows, columns = weights.shape
    flat = table.reshape(*table.shape[:-2], rows * columns)
    return np.asarray(flat @ weights.reshape(-1), dtype=np.float64)


def _items(table: Float) -> Float:
    return _weighed(table, np.ones(table.shape[-2:]))


def coverage(counts: Counts) -> Float:
    """Share of items that were answered.

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 1]; NaN where there are no items.
    """
    return share(_items(answered(counts)), _items(np.asarray(counts, dtype=np.float64)))


def mean_absolute_error(counts: Counts) -> Float:
    """Mean absolute error in levels (MAE), over answered items.

    Args:
        counts: (..., 5, 5 or 6); row gold 1-5, column predicted 1-5, no answer ignored.

    Returns:
        (...) in [0, 4]; NaN where nothing was answered.

    Source: CBT-Audio, section 4.1.
    """
    table = answered(counts)
    return share(_weighed(table, np.abs(ERRORS)), _items(table))


def root_mean_squared_error(counts: Counts) -> Float:
    """Root mean squared error in levels (RMSE), over answered items.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [0, 4]; NaN where nothing was answered.

    Source: CBT-Audio, section 4.1.
    """
    table = answered(counts)
    return np.sqrt(share(_weighed(table, ERRORS**2), _items(table)))


def within_one_accuracy(counts: Counts) -> Float:
    """Share of answered items whose prediction is at most one level from gold (A1).

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [0, 1]; NaN where nothing was answered.

    Source: CBT-Audio, section 4.1.
    """
    table = answered(counts)
    return share(_weighed(table, (np.abs(ERRORS) <= 1).astype(np.float64)), _items(table))


def exact_accuracy(counts: Counts) -> Float:
    """Share of answered items predicted exactly.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [0, 1]; NaN where nothing was answered.
    """
    table = answered(counts)
    return share(_weighed(table, np.eye(5)), _items(table))


def bias(counts: Counts) -> Float:
    """Mean of predicted minus gold over answered items: positive where distress is overrated.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [-4, 4]; NaN where nothing was answered.
    """
    table = answered(counts)
    return share(_weighed(table, ERRORS), _items(table))


def absolute_error_by_gold(counts: Counts) -> Float:
    """Mean absolute error of each gold level, over answered items.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (..., 5); NaN for a level of which nothing was answered.
    """
    table = answered(counts)
    return share((table * np.abs(ERRORS)).sum(-1), table.sum(-1))


def macro_absolute_error(counts: Counts) -> Float:
    """Mean over the five gold levels of each level's mean absolute error.

    A model that always says the commonest level does well on MAE and badly here.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [0, 4]; NaN where a gold level has no answered item, since a mean over
        fewer levels is another quantity.

    Source: Baccianella, Esuli, Sebastiani (2009), Evaluation measures for ordinal regression.
    """
    return np.asarray(absolute_error_by_gold(counts).mean(-1))


def spearman(counts: Counts) -> Float:
    """Spearman's rank correlation of gold and predicted, ties given their average rank.

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) in [-1, 1]; NaN where gold or predicted is constant over answered items.

    Source: CBT-Audio, section 4.1; Pearson's correlation of average ranks.
    """
    table = answered(counts)
    gold, predicted = table @ np.ones(5), np.ones(5) @ table
    # average rank minus mean rank; halves of whole numbers, so exact in floats
    gold_rank = np.cumsum(gold, -1) - (gold + gold.sum(-1, keepdims=True)) / 2
    predicted_rank = np.cumsum(predicted, -1) - (predicted + predicted.sum(-1, keepdims=True)) / 2
    together = ((table @ predicted_rank[..., None])[..., 0] * gold_rank).sum(-1)
    gold_spread = (gold * gold_rank**2).sum(-1)
    predicted_spread = (predicted * predicted_rank**2).sum(-1)
    # one root of the product, so that equal spreads give exactly 1 for a perfect order
    return np.clip(share(together, np.sqrt(gold_spread * predicted_spread)), -1, 1)


def quadratic_weighted_kappa(counts: Counts) -> Float:
    """Cohen's kappa with squared distance as disagreement (QWK).

    Args:
        counts: (..., 5, 5 or 6).

    Returns:
        (...) at most 1, 0 for chance, so 0 for a constant prediction; NaN where gold and
        predicted are the same constant, or nothing was answered.

    Source: Cohen (1968), Weighted kappa; CBT-Audio, section 4.1.
    """
    table = answered(counts)
    gold, predicted = table @ np.ones(5), np.ones(5) @ table
    by_chance = ((gold @ ERRORS**2) * predicted).sum(-1)
    return 1 - share(_items(table) * _weighed(table, ERRORS**2), by_chance)


METRICS: dict[str, Metric] = {
    "mae": mean_absolute_error,
    "spearman": spearman,
    "qwk": quadratic_weighted_kappa,
    "rmse": root_mean_squared_error,
    "a1": within_one_accuracy,
    "exact": exact_accuracy,
    "macro_mae": macro_absolute_error,
    "bias": bias,
}
"""Over answered items. The first five are the study's."""


def _over_all(counts: Counts, of_error: Callable[[Float], Float]) -> Float:
    table = np.asarray(counts, dtype=np.float64)
    width = table.shape[-1]
    cost = np.column_stack([of_error(np.abs(ERRORS)), of_error(WORST)])[:, :width]
    return share(_weighed(table, cost), _items(table))


def mean_absolute_error_over_all(counts: Counts) -> Float:
    """MAE over all items; no answer costs the worst error of its gold level (4, 3, 2, 3, 4).

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 4]; NaN where there are no items.
    """
    return _over_all(counts, lambda error: error)


def root_mean_squared_error_over_all(counts: Counts) -> Float:
    """RMSE over all items; no answer costs the worst error of its gold level.

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 4]; NaN where there are no items.
    """
    return np.sqrt(_over_all(counts, lambda error: error**2))


def within_one_accuracy_over_all(counts: Counts) -> Float:
    """A1 over all items; no answer is a miss, as the worst error is never below two levels.

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 1]; NaN where there are no items.
    """
    return _over_all(counts, lambda error: (error <= 1).astype(np.float64))


def exact_accuracy_over_all(counts: Counts) -> Float:
    """Exact accuracy over all items; no answer is a miss.

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 1]; NaN where there are no items.
    """
    return _over_all(counts, lambda error: (error == 0).astype(np.float64))


def macro_absolute_error_over_all(counts: Counts) -> Float:
    """Macro-averaged MAE over all items; no answer costs the worst error of its gold level.

    Args:
        counts: (..., 5, 6).

    Returns:
        (...) in [0, 4]; NaN where a gold level has no item.
    """
    table = np.asarray(counts, dtype=np.float64)
    cost = np.column_stack([np.abs(ERRORS), WORST])[:, : table.shape[-1]]
    return np.asarray(share((table * cost).sum(-1), table.sum(-1)).mean(-1))


METRICS_OVER_ALL: dict[str, Metric] = {
    "mae_all": mean_absolute_error_over_all,
    "rmse_all": root_mean_squared_error_over_all,
    "a1_all": within_one_accuracy_over_all,
    "exact_all": exact_accuracy_over_all,
    "macro_mae_all": macro_absolute_error_over_all,
}
"""Over all items. Spearman's rho, QWK and signed bias are absent on purpose: they have no
error of one item to charge, and a made-up answer would also move the marginals they rest on."""


def why_undefined(metric: str, counts: Counts) -> str | None:
    """Why a metric of one table is NaN; None where it is defined.

    Args:
        metric: a name in `METRICS` or `METRICS_OVER_ALL`.
        counts: (5, 5 or 6).
    """
    over_all = metric in METRICS_OVER_ALL
    table = np.asarray(counts, dtype=np.float64) if over_all else answered(counts)
    asked = int(np.asarray(counts).sum())
    gold, predicted = table.sum(1), table.sum(0)
    if not table.sum():
        return f"none of {asked} items was answered" if asked else "there are no items"
    if metric.startswith("macro_mae") and not gold.all():
        empty = ", ".join(str(level) for level in LEVELS[gold == 0])
        return f"no {'' if over_all else 'answered '}item has gold level {empty}"
    if metric == "spearman":
        for side, marginal in (("gold", gold), ("predicted", predicted)):
            if (marginal > 0).sum() == 1:
                only = int(LEVELS[marginal > 0][0])
                return f"{side} is {only} for all {int(table.sum())} answered items"
    if metric == "qwk" and np.trace(table) == table.sum() and (gold > 0).sum() == 1:
        return f"gold and predicted are {int(LEVELS[gold > 0][0])} for every answered item"
    return None
