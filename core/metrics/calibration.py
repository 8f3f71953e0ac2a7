"""Reliability: how often an answer is right at each confidence, bin by bin.

The bins are those of the calibration errors in `core.metrics.distribution` and
`core.metrics.ranking`, so a diagram drawn from these rows and the figure agree.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.metrics.distribution import BINS, bins_of
from core.stats.proportion import wilson


def reliability(confidence: ArrayLike, outcome: ArrayLike) -> pd.DataFrame:
    """Observed share beside mean confidence in ten bins of equal width, (0, 0.1] to (0.9, 1].

    Args:
        confidence: (n,) in [0, 1]; NaN where the model gave none, and then left out.
        outcome: (n,) whether what the confidence is about was so.

    Returns:
        One row a filled bin: lower, upper, confidence (mean), observed, its Wilson interval low
        and high, n. No rows where nothing has a confidence.

    Source: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.
    """
    sure = np.asarray(confidence, dtype=np.float64)
    known = ~np.isnan(sure)
    sure, right = sure[known], np.asarray(outcome, dtype=bool)[known]
    place = bins_of(sure)
    n = np.bincount(place, minlength=BINS)
    hits = np.bincount(place, weights=right, minlength=BINS)
    total = np.bincount(place, weights=sure, minlength=BINS)
    filled = np.flatnonzero(n)
    low, high = wilson(hits[filled], n[filled])
    return pd.DataFrame(
        {
            "lower": filled / BINS,
            "upper": (filled + 1) / BINS,
            "confidence": total[filled] / n[filled],
            "observed": hits[filled] / n[filled],
            "low": low,
            "high": high,
            "n": n[filled],
        }
    )
