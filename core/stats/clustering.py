"""How alike the errors within one session are: the intraclass correlation and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.metrics.ordinal import share


@dataclass(frozen=True)
class Clustering:
    """One-way random-effects variance components of values within groups.

    Attributes:
        between, within: variance components; `between` is 0 where its estimate is negative.
        icc: between / (between + within), in [0, 1]; NaN with a reason where undefined.
        design_effect: by how much intervals over items understate the variance of the mean.
        groups, n: groups with a value, and values.
    """

    between: float
    within: float
    icc: float
    design_effect: float
    groups: int
    n: int
    reason: str | None = None


def clustering(values: ArrayLike, groups: ArrayLike) -> Clustering:
    """Split the variance of values into that between groups and that within them.

    Args:
        values: (n,) NaN for none.
        groups: (n,) names.

    The moment (ANOVA) estimator for unequal groups; for equal groups and a positive component it
    is the REML estimate of a random-intercept model.

    Source: Searle, Casella and McCulloch (1992), Variance components, chapter 3; Kish (1965) for
    the design effect, with the group size a value finds itself in on average.
    """
    every = np.asarray(values, dtype=np.float64)
    kept = ~np.isnan(every)
    value = every[kept]
    _, place = np.unique(np.asarray(groups, dtype=str)[kept], return_inverse=True)
    size = np.bincount(place).astype(np.float64)
    n, number = len(value), len(size)
    if number < 2 or n <= number:
        why = f"{n} values in {number} groups: two groups and one of two values are needed"
        return Clustering(np.nan, np.nan, np.nan, np.nan, number, n, why)
    mean = np.bincount(place, weights=value) / size
    within = float(((value - mean[place]) ** 2).sum() / (n - number))
    among = float((size * (mean - value.mean()) ** 2).sum() / (number - 1))
    usual_size = (n - float((size**2).sum()) / n) / (number - 1)
    between = max((among - within) / usual_size, 0.0)
    icc = float(share(between, between + within))
    effect = 1 + (float((size**2).sum()) / n - 1) * icc
    reason = "all values are equal" if np.isnan(icc) else None
    return Clustering(between, within, icc, effect, number, n, reason)
