"""McNemar's exact test: do two answers to the same clips differ in how often they are right?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from core.metrics.ordinal import share

Float = NDArray[np.float64]


@dataclass(frozen=True)
class McNemar:
    """Outcomes, each field with the batch's leading axes.

    Attributes:
        n: clips compared.
        first_only, second_only: clips only the first, or only the second, got right.
        difference: accuracy of the first minus that of the second, in [-1, 1].
        p: exact two-sided; 1 where no clip is discordant, NaN where there are no clips.
        mid_p: with half the probability of the observed outcome; closer to the level than the
            exact p, which is conservative (Fagerland, Lydersen and Laake 2013).
    """

    n: NDArray[np.int64]
    first_only: NDArray[np.int64]
    second_only: NDArray[np.int64]
    difference: Float
    p: Float
    mid_p: Float


def mcnemar(first_only: ArrayLike, second_only: ArrayLike, n: ArrayLike) -> McNemar:
    """Test equal accuracy from the discordant clips alone.

    Args:
        first_only, second_only, n: (...) counts as in `McNemar`.

    Source: McNemar (1947); the exact form is a sign test on the discordant clips.
    """
    one, two, clips = (np.asarray(count, dtype=np.int64) for count in (first_only, second_only, n))
    fewer, discordant = np.minimum(one, two), one + two
    p = np.minimum(2 * binom.cdf(fewer, discordant, 0.5), 1.0)
    mid = np.minimum(2 * binom.cdf(fewer, discordant, 0.5) - binom.pmf(fewer, discordant, 0.5), 1.0)
    return McNemar(
        n=clips,
        first_only=one,
        second_only=two,
        difference=share(one - two, clips),
        p=np.where(clips > 0, p, np.nan),
        mid_p=np.where(clips > 0, mid, np.nan),
    )


def mcnemar_of_joint(joint: NDArray[Any], *, over: str = "answered") -> McNemar:
    """Test two predictions from their joint table.

    Args:
        joint: (..., 2, 3, 3) axes gold YES, NO; first and second predicted YES, NO, no answer.
        over: "answered" keeps clips both answered; "all" counts no answer as wrong.
    """
    if over not in ("answered", "all"):
        raise ValueError(f'over: expected "answered" or "all", found {over!r}.')
    width = 2 if over == "answered" else 3
    table = np.asarray(joint)[..., :width, :width]
    first_only = np.zeros(table.shape[:-3], dtype=np.int64)
    second_only = np.zeros(table.shape[:-3], dtype=np.int64)
    for label in (0, 1):
        of_label = table[..., label, :, :]
        both = of_label[..., label, label]
        first_only = first_only + of_label[..., label, :].sum(-1) - both
        second_only = second_only + of_label[..., :, label].sum(-1) - both
    return mcnemar(first_only, second_only, table.sum((-3, -2, -1)))
