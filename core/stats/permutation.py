"""Sign-flip tests: under the null, each paired difference was as likely the other way round.

The unit that is flipped is an item, or a session with all its items, which is the test to
report when turns of one session are not independent. Whole-number differences (five-level
errors, right or wrong) get the exact null distribution, however many items there are;
others are flipped at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from core.seeds import generator

Float = NDArray[np.float64]

DECIMALS = 9
"""Differences are rounded to this before they are compared: 0.3 - 0.1 is 0.2."""

EXACT_STEPS = 20_000_000
"""Work an exact null distribution may take, about a third of a second; above it, flips."""

BLOCK = 1000
"""Flips drawn from one generator. Part of the result: another value, other draws."""


@dataclass(frozen=True)
class SignFlip:
    """The outcome of a sign-flip test.

    Attributes:
        statistic: mean difference over items.
        p: two-sided; NaN with a reason where there is nothing to test.
        n: items; units: items or sessions flipped; units_nonzero: those whose sum is not 0.
        method: "exact", or "monte carlo" with its number of flips.
    """

    statistic: float
    p: float
    n: int
    units: int
    units_nonzero: int
    method: str
    reason: str | None = None


def sign_flip(
    differences: ArrayLike,
    *,
    sessions: ArrayLike | None = None,
    flips: int = 10_000,
    seed: int = 0,
) -> SignFlip:
    """Test that paired differences are symmetric about 0, by their mean.

    Args:
        differences: (n,) first minus second of each item; no NaN.
        sessions: (n,) the session of each item, to flip whole sessions; None flips items.
        flips: random flips, where an exact distribution is out of reach.

    Returns:
        Two-sided p: the share of sign patterns at least as far from 0. From random flips it is
        (1 + as extreme) / (1 + flips), so never 0. All differences 0 gives p = 1 and says so.

    Raises:
        ValueError: NaN among the differences, or sessions of another length.

    Source: Pitman (1937); Phipson and Smyth (2010) for the added one.
    """
    apart = np.asarray(differences, dtype=np.float64)
    if np.isnan(apart).any():
        raise ValueError(
            f"differences: {int(np.isnan(apart).sum())} of {apart.size} are NaN. "
            "Leave out unanswered items, or charge them the worst error, before testing."
        )
    sums = np.round(_unit_sums(apart, sessions), DECIMALS)
    values, sizes = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    mean = float(apart.mean()) if len(apart) else np.nan
    shape = (len(apart), len(sums), int(sizes.sum()))
    if not len(apart):
        return SignFlip(mean, np.nan, *shape, "none", "there are no items")
    if not len(values):
        return SignFlip(mean, 1.0, *shape, "exact", "all differences are zero")
    if (values == np.round(values)).all() and _steps(values, sizes) <= EXACT_STEPS:
        return SignFlip(mean, _exact_p(sums.sum(), values, sizes), *shape, "exact")
    p = _flipped_p(float(sums.sum()), values, sizes, flips, seed)
    return SignFlip(mean, p, *shape, f"monte carlo, {flips} flips")


def _unit_sums(apart: Float, sessions: ArrayLike | None) -> Float:
    if sessions is None:
        return apart
    names = np.asarray(sessions, dtype=str)
    if names.shape != apart.shape:
        raise ValueError(
            f"sessions: expected {apart.shape[0]} names, one an item, found {names.shape[0]}."
        )
    _, place = np.unique(names, return_inverse=True)
    return np.asarray(np.bincount(place, weights=apart), dtype=np.float64)


def _exact_p(total: float, values: Float, sizes: NDArray[np.int64]) -> float:
    kept, probability = subset_sums(values.astype(np.int64), sizes)
    # flipped sum = kept - dropped = 2 kept - all
    flipped = 2 * kept - int((values * sizes).sum())
    return float(min(probability[np.abs(flipped) >= abs(round(total))].sum(), 1.0))


def _flipped_p(
    total: float, values: Float, sizes: NDArray[np.int64], flips: int, seed: int
) -> float:
    extreme = 0
    for start in range(0, flips, BLOCK):
        drawing = generator(seed, "sign flips", str(start // BLOCK))
        kept = drawing.binomial(sizes, 0.5, size=(min(BLOCK, flips - start), len(sizes)))
        flipped = (2 * kept - sizes) @ values
        # sums in another order differ in the last bits, and a tie counts as extreme
        extreme += int((np.abs(flipped) >= abs(total) - 10.0**-DECIMALS).sum())
    return (1 + extreme) / (1 + flips)


def subset_sums(
    values: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Float]:
    """The distribution of a sum of positive whole numbers, each kept with probability 1/2.

    Args:
        values: (K,) distinct numbers.
        sizes: (K,) how many there are of each.

    Returns:
        Possible sums, ascending, and their probabilities. Exact in floats for up to 52
        numbers, since every probability is then a whole number over a power of two.
    """
    sums, probability = np.zeros(1, dtype=np.int64), np.ones(1)
    for value, size in zip(values, sizes, strict=True):
        kept = np.arange(size + 1)
        reached = np.add.outer(sums, value * kept).ravel()
        chance = np.multiply.outer(probability, binom.pmf(kept, size, 0.5)).ravel()
        # a table over all numbers up to the highest sum, unless sums are sparse among them
        if reached.max() > 4 * len(reached):
            sums, place = np.unique(reached, return_inverse=True)
            probability = np.asarray(np.bincount(place, weights=chance), dtype=np.float64)
        else:
            merged = np.asarray(np.bincount(reached, weights=chance), dtype=np.float64)
            sums = np.flatnonzero(merged)
            probability = merged[sums]
    return sums, probability


def _steps(values: Float, sizes: NDArray[np.int64]) -> float:
    """Upper bound of the work `subset_sums` does: possible sums times ways, class by class."""
    outcomes = np.cumprod((sizes + 1).astype(np.float64))
    lattice = np.cumsum(values * sizes) + 1
    support = np.minimum(
        np.concatenate([[1.0], outcomes[:-1]]), np.concatenate([[1], lattice[:-1]])
    )
    return float((support * (sizes + 1) + lattice).sum())


def signed_ranks(differences: ArrayLike, *, zeros: str = "pratt") -> NDArray[Any]:
    """Twice the signed average rank of each difference, whole numbers; 0 for a zero difference.

    With `sign_flip` this is the signed-rank test without its normal approximation.

    Args:
        differences: (n,) rounded before ranking.
        zeros: "pratt" ranks zeros, "wilcox" leaves them out first.
    """
    apart = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    magnitude, place, sizes = np.unique(np.abs(apart), return_inverse=True, return_counts=True)
    sizes = np.where((magnitude == 0) & (zeros == "wilcox"), 0, sizes)
    doubled = 2 * np.cumsum(sizes) - sizes + 1
    return np.sign(apart).astype(np.int64) * doubled[place]
