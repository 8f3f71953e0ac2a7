"""Metrics of the distribution a model puts on the five levels, where it gives one.

They need the items, not a table, so their bootstrap weighs items: every function takes
weights with leading axes, one row a resample. Items without a distribution are left out;
`given` says how many remain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.metrics.ordinal import share
from core.metrics.tables import LEVELS

Float = NDArray[np.float64]

BINS = 10
SUM_TOLERANCE = 1.1e-5


def _given(
    gold: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None
) -> tuple[Float, Float, Float]:
    levels = np.asarray(gold, dtype=np.float64)
    spread = np.asarray(probabilities, dtype=np.float64)
    if spread.shape != (len(levels), 5):
        raise ValueError(
            f"probabilities: expected shape ({len(levels)}, 5), one row an item, "
            f"found {spread.shape}."
        )
    known = ~np.isnan(spread).any(-1)
    wrong = known & ((np.abs(spread.sum(-1) - 1) > SUM_TOLERANCE) | (spread < 0).any(-1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"probabilities, position {row}: expected non-negative numbers that sum to 1, found "
            f"{spread[row].tolist()}. Divide by the choice mass, or give NaN for no distribution."
        )
    weight = np.ones(len(levels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if known.all():
        # a copy of all resamples' weights takes longer than what is done with them
        return levels, spread, weight
    return levels[known], spread[known], weight[..., known]


def bins_of(confidence: Float) -> NDArray[np.int64]:
    """The bin, 0 to 9, of each confidence (n,) in [0, 1]: [0, 0.1], (0.1, 0.2] to (0.9, 1]."""
    # rounded, since 0.1 * 3 must not leave the bin that ends at 0.3
    place = np.ceil(np.round(confidence * BINS, 9)) - 1
    return np.asarray(np.clip(place, 0, BINS - 1), dtype=np.int64)


def given(probabilities: ArrayLike) -> int:
    """How many of the (n, 5) rows hold a distribution."""
    return int((~np.isnan(np.asarray(probabilities, dtype=np.float64)).any(-1)).sum())


def expected_absolute_error(
    gold: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Mean absolute error of the distribution's mean, in levels.

    Args:
        gold: (n,) integers 1-5.
        probabilities: (n, 5) p of each level, rows summing to 1; NaN where there is none.
        weights: (..., n) how often each item counts; once each if None.

    Returns:
        (...) in [0, 4]; NaN where no item has a distribution.
    """
    levels, spread, weight = _given(gold, probabilities, weights)
    return share(weight @ np.abs(spread @ LEVELS - levels), weight.sum(-1))


def ranked_probability_score(
    gold: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Mean squared distance of the cumulative distribution from the gold step.

    A proper score: it is least in expectation for the true distribution, and it charges mass
    far from gold more. Divided by the four steps, so 0 is a certain hit and 1 certainty at the
    far end of the scale.

    Args:
        gold, probabilities, weights: as in `expected_absolute_error`.

    Returns:
        (...) in [0, 1]; NaN where no item has a distribution.

    Source: Epstein (1969), A scoring system for probability forecasts of ranked categories.
    """
    levels, spread, weight = _given(gold, probabilities, weights)
    reached = (levels[:, None] <= LEVELS[:4]).astype(np.float64)
    score = ((np.cumsum(spread, -1)[:, :4] - reached) ** 2).mean(-1)
    return share(weight @ score, weight.sum(-1))


def expected_calibration_error(
    gold: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Mean gap between confidence and accuracy of the likeliest level (ECE).

    Ten equal-width bins of the likeliest level's probability, (0, 0.1] to (0.9, 1]; each bin's
    absolute gap is weighted by its items. A tie goes to the lower level. With fewer than some
    hundred items the figure is biased upwards, as noise within a bin cannot cancel.

    Args:
        gold, probabilities, weights: as in `expected_absolute_error`.

    Returns:
        (...) in [0, 1]; NaN where no item has a distribution.

    Source: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.
    """
    levels, spread, weight = _given(gold, probabilities, weights)
    sure = spread.max(-1)
    right = (spread.argmax(-1) + 1 == levels).astype(np.float64)
    in_bin = np.eye(BINS)[bins_of(sure)]
    gap = np.abs(weight @ ((right - sure)[:, None] * in_bin)).sum(-1)
    return share(gap, weight.sum(-1))
