"""Rank correlation of items that carry weights, for statistics that are resampled by weight.

An item of weight 2 counts as two equal items, so that a bootstrap needs no copies; see
`core.stats.bootstrap.weight_bootstrap`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.metrics.ordinal import share

Float = NDArray[np.float64]

DECIMALS = 9
"""Values are rounded to this before they are ranked: 0.3 - 0.1 and 0.2 are a tie."""


def weighted_spearman(one: ArrayLike, two: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Spearman's rank correlation, ties given their average rank.

    Args:
        one, two: (n,) without NaN.
        weights: (..., n) how often each item counts; once each if None.

    Returns:
        (...) in [-1, 1]; NaN where either is constant over the items that count, or none does.

    Source: Pearson's correlation of average ranks, as `core.metrics.ordinal.spearman`.
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (one, two))
    weight = np.ones(len(first)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(first):
        return np.full(weight.shape[:-1], np.nan)
    a, b = _centred_ranks(first, weight), _centred_ranks(second, weight)
    together = (weight * a * b).sum(-1)
    spread = (weight * a**2).sum(-1) * (weight * b**2).sum(-1)
    return np.clip(share(together, np.sqrt(spread)), -1, 1)


def _centred_ranks(values: Float, weight: Float) -> Float:
    """Average rank less the mean rank, (..., n); halves of whole numbers for whole weights."""
    _, place = np.unique(np.round(values, DECIMALS), return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    mass = np.add.reduceat(weight[..., order], starts, axis=-1)
    below = np.cumsum(mass, -1) - mass / 2
    return np.asarray((below - weight.sum(-1, keepdims=True) / 2)[..., place])
