"""The interval of one proportion, from its two counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Float = NDArray[np.float64]


def wilson(successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95) -> tuple[Float, Float]:
    """Wilson's score interval, which keeps its coverage near 0 and 1 and for few trials.

    Args:
        successes, trials: (...) whole numbers, successes at most trials.

    Returns:
        Lower and upper ends, (...) in [0, 1]; NaN where there are no trials.

    Source: Wilson (1927), Probable inference; Brown, Cai and DasGupta (2001).
    """
    hits = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    some = np.where(n > 0, n, np.nan)
    z = float(ndtri((1 + level) / 2))
    share = hits / some
    centre = (share + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z / (1 + z**2 / some) * np.sqrt(share * (1 - share) / some + z**2 / (4 * some**2))
    # at 0 and at 1 the ends are exact, and rounding must not move them
    low = np.where(hits == 0, np.where(n > 0, 0.0, np.nan), centre - half)
    high = np.where(hits == n, np.where(n > 0, 1.0, np.nan), centre + half)
    return low, high
