"""Means of per-item values of many cells over the same items, with resamples they all share.

A cell is a model in a condition, a value its error on an item. Because every cell is redrawn
by the same items (or the same sessions), what is worked out of several cells in one resample,
such as who ranks first, is paired. Strata (gold levels, lengths of clips) are cells of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.metrics.ordinal import share
from core.stats.bootstrap import BLOCK, resampled, session_weights

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Strata:
    """Means of C cells in K strata.

    Attributes:
        value, low, high: (C, K); NaN where a stratum has no value in a cell.
        n: (C, K) values each mean rests on.
        units: (C, K) sessions (or items) in which the cell answered an item of the stratum; an
            interval over a handful of them is too short, and over one there is none.
    """

    value: Float
    low: Float
    high: Float
    n: NDArray[np.int64]
    units: NDArray[np.int64]


def mean_draws(
    values: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Float:
    """The mean of each cell in each resample.

    Args:
        values: (C, n) a row a cell, the same items in each; NaN for no value.
        sessions: (n,) to draw whole sessions, as turns of one are not independent; None draws
            items.

    Returns:
        (resamples, C); NaN where a resample holds no value of the cell.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    given = ~np.isnan(table)
    sums, sizes = np.where(given, table, 0.0), given.astype(np.float64)
    units = table.shape[1]
    if sessions is not None:
        names, place = np.unique(np.asarray(sessions, dtype=str), return_inverse=True)
        member = np.eye(len(names))[place]
        sums, sizes, units = sums @ member, sizes @ member, len(names)
    drawn = np.full((resamples, len(table)), np.nan)
    each_once = np.ones((1, units), dtype=np.int64)
    for start in range(0, resamples if units else 0, BLOCK):
        stop = min(start + BLOCK, resamples)
        if sessions is None:
            weights = resampled(each_once, seed=seed, start=start, stop=stop)[0]
        else:
            weights = session_weights(units, seed=seed, start=start, stop=stop)
        weight = weights.astype(np.float64)
        drawn[start:stop] = share(weight @ sums.T, weight @ sizes.T)
    return drawn


def ends(drawn: Float, *, level: float = 0.95) -> tuple[Float, Float]:
    """Percentile interval of each column of draws; draws that are NaN are left out.

    Args:
        drawn: (resamples, ...).

    Returns:
        Lower and upper ends, (...); NaN where no draw is defined.
    """
    tail = 100 * (1 - level) / 2
    defined = ~np.isnan(drawn).all(0)
    low, high = (np.full(drawn.shape[1:], np.nan) for _ in range(2))
    if defined.any():
        low[defined], high[defined] = np.nanpercentile(
            drawn[:, defined], [tail, 100 - tail], axis=0
        )
    return low, high


def mean_ends(
    values: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[Float, Float, NDArray[np.int64]]:
    """Interval of the mean of each cell, and how many units with a value it rests on.

    Args:
        values, sessions, resamples, seed: as in `mean_draws`.

    Returns:
        Lower and upper ends, (C,), NaN where fewer than two sessions (or items) have a value, as
        resamples of one are all that one; and how many have, (C,).
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    low, high = ends(mean_draws(table, sessions=sessions, resamples=resamples, seed=seed))
    given = ~np.isnan(table)
    if sessions is not None:
        names, place = np.unique(np.asarray(sessions, dtype=str), return_inverse=True)
        given = given.astype(np.float64) @ np.eye(len(names))[place] > 0
    units = given.sum(1)
    return np.where(units > 1, low, np.nan), np.where(units > 1, high, np.nan), units


def strata_means(
    values: ArrayLike,
    strata: ArrayLike,
    number: int,
    *,
    sessions: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Strata:
    """The mean of every cell in every stratum, with intervals over sessions (or items).

    Args:
        values: (C, n) as in `mean_draws`.
        strata: (n,) integers 0 to number - 1; -1 for an item in none.
        number: how many strata there are.
        sessions: (n,) the session of each item; None draws items.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    stratum = np.asarray(strata)
    inside = stratum[None, :] == np.arange(number)[:, None]
    cells = np.where(inside[None], table[:, None], np.nan)
    flat = cells.reshape(-1, table.shape[1])
    low, high, units = mean_ends(flat, sessions=sessions, resamples=resamples, seed=seed)
    shape = (len(table), number)
    n = (~np.isnan(flat)).sum(1).reshape(shape)
    return Strata(
        value=share(np.nansum(flat, 1).reshape(shape), n),
        low=low.reshape(shape),
        high=high.reshape(shape),
        n=n,
        units=units.reshape(shape),
    )
