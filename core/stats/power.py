"""What a set of this size can show: the smallest difference a paired test would find.

Both functions take how often the two answers differ (the discordance) as observed, because
agreeing items carry no evidence and most items agree. They tell what another sample of n
items would find with the stated probability; they are no comment on the p just observed.
Items are taken as independent: where turns of one session are alike, a set shows less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from core.stats.wilcoxon import DIFFERENCES, class_ranks

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Detectable:
    """The smallest effect found with probability `power` at two-sided level `alpha`.

    Attributes:
        difference: of mean absolute errors in levels, or of accuracies; NaN with a reason
            where even the largest difference this discordance allows would be missed.
        rank_biserial: the same effect as r; NaN for accuracies.
        n: items; discordance: share of items on which the two differ.
    """

    difference: float
    rank_biserial: float
    n: int
    discordance: float
    power: float
    alpha: float
    reason: str | None = None


def mcnemar_power(n: int, discordance: float, difference: float, *, alpha: float = 0.05) -> float:
    """Probability that McNemar's exact test rejects equal accuracy.

    Args:
        n: clips.
        discordance: share of clips exactly one of the two gets right, in [0, 1].
        difference: of the accuracies, at most `discordance`.

    Returns:
        The exact power, in [0, 1], summed over the number of discordant clips.

    Source: Connor (1987), Sample size for testing differences in proportions for the
    paired-sample design; here summed exactly instead of approximated.
    """
    if discordance <= 0:
        return 0.0
    discordant = np.arange(n + 1)
    chance = binom.pmf(discordant, n, discordance)
    # the largest smaller count that is still significant; -1 where none is
    critical = binom.ppf(alpha / 2, discordant, 0.5)
    critical = np.where(binom.cdf(critical, discordant, 0.5) > alpha / 2, critical - 1, critical)
    first = (discordance + min(abs(difference), discordance)) / (2 * discordance)
    few_first = binom.cdf(critical, discordant, first)
    few_second = binom.cdf(critical, discordant, 1 - first)
    return float((chance * (few_first + few_second)).sum())


def detectable_accuracy_difference(
    n: int, discordance: float, *, power: float = 0.8, alpha: float = 0.05
) -> Detectable:
    """The smallest difference of accuracies McNemar's exact test would find.

    Args:
        n: clips.
        discordance: share of clips exactly one of the two gets right.

    Returns:
        A `Detectable`; its difference is in (0, discordance].
    """

    def lacking(difference: float) -> float:
        return mcnemar_power(n, discordance, difference, alpha=alpha) - power

    if n < 1 or discordance <= 0 or lacking(discordance) < 0:
        return Detectable(
            np.nan, np.nan, n, discordance, power, alpha, _too_few(n, discordance, power)
        )
    found = float(brentq(lacking, 0, discordance, xtol=1e-6))
    return Detectable(found, np.nan, n, discordance, power, alpha)


def detectable_error_difference(
    difference_counts: NDArray[Any],
    *,
    values: ArrayLike = DIFFERENCES,
    n: int | None = None,
    zeros: str = "pratt",
    power: float = 0.8,
    alpha: float = 0.05,
) -> Detectable:
    """The smallest difference of mean absolute errors the signed-rank test would find.

    The alternative keeps how often differences of each size occur and makes each non-zero one
    positive with the same probability; the effect is where normal approximation reaches the
    power. Its rank-biserial r is twice that probability minus one.

    Args:
        difference_counts: (9,) how often each difference -4 to 4 was observed.
        n: items of the set asked about; as many as observed if None.

    Returns:
        A `Detectable`.

    Source: Noether (1987), Sample size determination for some common nonparametric tests,
    with the tied ranks' own moments.
    """
    counts = np.asarray(difference_counts, dtype=np.float64)
    observed = float(counts.sum())
    asked = round(observed) if n is None else n
    if not observed or asked < 1:
        return Detectable(np.nan, np.nan, asked, np.nan, power, alpha, "there are no items")
    ranks, sizes = class_ranks(counts * asked / observed, zeros)
    discordance = float(sizes.sum()) / asked
    total, squares = float((sizes * ranks).sum()), float((sizes * ranks**2).sum())

    def lacking(r: float) -> float:
        spread = np.sqrt((1 - r**2) * squares)
        threshold = float(ndtri(1 - alpha / 2)) * np.sqrt(squares)
        if spread <= 0:
            return (1.0 if total > threshold else 0.0) - power
        return float(ndtr((r * total - threshold) / spread)) - power

    if not total or lacking(1.0) < 0:
        reason = _too_few(asked, discordance, power)
        return Detectable(np.nan, np.nan, asked, discordance, power, alpha, reason)
    r = float(brentq(lacking, 0, 1, xtol=1e-9))
    magnitude = float(counts @ np.abs(np.asarray(values, dtype=np.float64))) / observed
    return Detectable(r * magnitude, r, asked, discordance, power, alpha)


def _too_few(n: int, discordance: float, power: float) -> str:
    return (
        f"the two differ on {100 * discordance:.1f} % of {n} items, too few to find "
        f"any difference with probability {power:g}"
    )
