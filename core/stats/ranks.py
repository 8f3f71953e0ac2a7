"""Which model is best, and how sure that is: ranks with bootstrap intervals.

A table of means hides that the third and the seventh may trade places on other items of the
same kind. Here every resample of the items ranks all models, and a model's interval is where
its rank falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from core.metrics.ordinal import share
from core.stats.item_means import ends, mean_draws

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """Ranks of M models by their mean loss, 1 the smallest, ties given their average rank.

    Attributes:
        rank: (M,) on the items as they are; NaN for a model without any value.
        low, high: (M,) percentile interval over resamples.
        best: (M,) share of resamples in which the model was first, a tie for it shared.
    """

    rank: Float
    low: Float
    high: Float
    best: Float


def rank_intervals(
    losses: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Ranks:
    """Rank models by mean loss and say how far each rank may move.

    Args:
        losses: (M, n) smaller is better, the same items for all; NaN for no value.
        sessions: (n,) to redraw whole sessions; None redraws items.

    Source: Goldstein and Spiegelhalter (1996), League tables and their limitations; Hall and
    Miller (2009), Using the bootstrap to quantify the authority of an empirical ranking.
    """
    table = np.atleast_2d(np.asarray(losses, dtype=np.float64))
    given = ~np.isnan(table)
    mean = share(np.where(given, table, 0).sum(1), given.sum(1))
    drawn = mean_draws(table, sessions=sessions, resamples=resamples, seed=seed)
    ranked = ranks_of(drawn)
    low, high = ends(ranked)
    return Ranks(rank=ranks_of(mean[None])[0], low=low, high=high, best=_first(drawn))


def ranks_of(losses: Float) -> Float:
    """Average ranks within each row, (..., M); NaN where the loss is.

    Sums of the same errors in another order differ in the last bits, and are ties.
    """
    return np.asarray(rankdata(np.round(losses, 12), axis=-1, nan_policy="omit"))


def _first(drawn: Float) -> Float:
    rounded = np.round(drawn, 12)
    usable = rounded[~np.isnan(rounded).all(1)]
    if not len(usable):
        return np.full(drawn.shape[1], np.nan)
    leads = usable == np.nanmin(usable, axis=1, keepdims=True)
    return np.asarray((leads / leads.sum(1, keepdims=True)).mean(0))
