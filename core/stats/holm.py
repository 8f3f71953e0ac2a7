"""Holm's adjustment of p-values within a family of tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values: comparing each with alpha keeps the family's error rate at alpha.

    Args:
        p: (m,) p-values of one family; NaN for a test that could not be made, which is no
            member of it.

    Returns:
        (m,) in [0, 1], none below its p; NaN stays NaN.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    raw = np.asarray(p, dtype=np.float64)
    adjusted = np.full(raw.shape, np.nan)
    made = np.flatnonzero(~np.isnan(raw))
    order = made[np.argsort(raw[made], kind="stable")]
    steps = raw[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
