"""The paired signed-rank test, from counts of differences.

Errors on a five-level scale differ by -4 to 4, so nine counts hold all there is to a pair of
models and every pair of thirty is tested in one pass. Other differences are rounded and
counted first. Zero handling and method are explicit and part of the result, because on data
with this many zeros they change p a hundredfold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from core.metrics.ordinal import share
from core.stats.bootstrap import bootstrap
from core.stats.permutation import DECIMALS, subset_sums

Counts = NDArray[Any]
Float = NDArray[np.float64]

DIFFERENCES = np.arange(-4, 5)
"""Differences of two absolute errors, the axis of a (..., 9) table."""

EXACT_NONZERO = 50
"""Up to this many non-zero differences the null is enumerated; floats hold it exactly."""

SCIPY_ENUMERATED = 13
"""Up to this many items, zeros counted, scipy's "auto" enumerates the signs despite ties."""

MANY_VALUES = 4001
"""Distinct differences above which the Hodges-Lehmann shift, quadratic in them, is left out."""


@dataclass(frozen=True)
class SignedRank:
    """Outcomes of signed-rank tests, each field with the batch's leading axes.

    Attributes:
        n, n_nonzero: items, and those whose difference is not 0.
        w_plus, w_minus: rank sums of positive and negative differences.
        p: two-sided; 1 where all differences are 0, NaN where there are no items.
        r: matched-pairs rank-biserial correlation, (w_plus - w_minus) / (w_plus + w_minus), in
            [-1, 1]; negative where the first of the pair has the smaller errors; NaN where all
            differences are 0.
        r_low, r_high: its percentile bootstrap interval over items; NaN if not asked for.
        shift: Hodges-Lehmann estimate of the difference, the median of all pairwise means,
            zeros included.
        method: "exact" or "normal, tie-corrected, no continuity correction".
        zeros: "pratt" or "wilcox".
    """

    n: NDArray[np.int64]
    n_nonzero: NDArray[np.int64]
    w_plus: Float
    w_minus: Float
    p: Float
    r: Float
    r_low: Float
    r_high: Float
    shift: Float
    method: NDArray[np.str_]
    zeros: str

    @property
    def statistic(self) -> Float:
        """The smaller rank sum, as scipy reports it."""
        return np.minimum(self.w_plus, self.w_minus)


def signed_rank(
    differences: ArrayLike,
    *,
    zeros: str = "pratt",
    method: str = "auto",
    resamples: int = 1000,
    seed: int = 0,
) -> SignedRank:
    """Test that paired differences are symmetric about 0.

    Args:
        differences: (n,) first minus second of each item; no NaN. Rounded to nine decimals,
            so that round-off neither splits ties nor hides zeros.
        zeros, method, resamples, seed: as in `signed_rank_of_counts`.

    Returns:
        A `SignedRank` of scalars.

    Raises:
        ValueError: NaN among the differences.
    """
    apart = np.asarray(differences, dtype=np.float64)
    if np.isnan(apart).any():
        raise ValueError(
            f"differences: {int(np.isnan(apart).sum())} of {apart.size} are NaN. "
            "Leave out unanswered items, or charge them the worst error, before testing."
        )
    rounded = np.round(apart, DECIMALS)
    magnitudes = np.unique(np.abs(rounded[rounded != 0]))
    values = np.concatenate([-magnitudes[::-1], [0.0], magnitudes])
    counts = np.bincount(np.searchsorted(values, rounded), minlength=len(values))
    return signed_rank_of_counts(
        counts, values=values, zeros=zeros, method=method, resamples=resamples, seed=seed
    )


def signed_rank_of_counts(
    counts: Counts,
    *,
    values: ArrayLike = DIFFERENCES,
    zeros: str = "pratt",
    method: str = "auto",
    resamples: int = 1000,
    seed: int = 0,
) -> SignedRank:
    """Test many pairs at once, from how often each difference occurs.

    Zeros: "pratt" ranks them with the rest and then drops their ranks; "wilcox" drops them
    first. Pratt is the default. Dropping zeros first can make a sample significantly positive
    by lowering its differences, when a zero becomes negative and is counted again (Pratt
    1959). And it throws away how often the two answers were equally good, which on a five-level
    scale is most of the time: ranked with the zeros, the rest lie closer together, so a few
    large differences decide less. Neither has more power everywhere (Conover 1973); both hold
    their level, since both nulls condition on which differences are zero. "wilcox" is
    scipy's default and so probably what the study used.

    Args:
        counts: (..., 2K + 1) how often each of `values` occurs.
        values: (2K + 1,) ascending and symmetric about 0; -4 to 4 by default.
        method: "exact" enumerates the signs of the tied ranks; "normal" uses their variance,
            which is the tie correction, without continuity correction; "auto" is exact for up
            to 50 non-zero differences; "scipy" is exact where the "auto" of scipy 1.13 and later
            is: up to 13 items, or up to 50 without ties and zeros.
        resamples: of the interval of r; 0 for none.

    Returns:
        A `SignedRank` with the leading axes of `counts`.

    Source: Wilcoxon (1945); Pratt (1959), Remarks on zeros and ties in the Wilcoxon
    signed rank procedures; Conover (1973); Kerby (2014) for r; Hodges and Lehmann (1963).
    """
    if zeros not in ("pratt", "wilcox"):
        raise ValueError(f'zeros: expected "pratt" or "wilcox", found {zeros!r}.')
    if method not in ("auto", "exact", "normal", "scipy"):
        raise ValueError(
            f'method: expected "auto", "exact", "normal" or "scipy", found {method!r}.'
        )
    table, steps = np.asarray(counts), np.asarray(values, dtype=np.float64)
    ranks, sizes = class_ranks(table, zeros)
    w_plus = (_positive(table) * ranks).sum(-1)
    w_minus = (_negative(table) * ranks).sum(-1)
    n_nonzero = sizes.sum(-1).astype(np.int64)
    exact = _is_exact(method, np.asarray(table.sum(-1)), n_nonzero, sizes)
    r = rank_biserial(table, zeros)
    r_low = r_high = np.full(r.shape, np.nan)
    if resamples:
        interval = bootstrap(
            table, {"r": lambda c: rank_biserial(c, zeros)}, resamples=resamples, seed=seed
        )["r"]
        r_low, r_high = interval.low, interval.high
    return SignedRank(
        n=np.asarray(table.sum(-1)),
        n_nonzero=n_nonzero,
        w_plus=w_plus,
        w_minus=w_minus,
        p=_p(w_plus, w_minus, ranks, sizes, exact, table.sum(-1)),
        r=r,
        r_low=r_low,
        r_high=r_high,
        shift=hodges_lehmann(table, steps),
        method=np.where(exact, "exact", "normal, tie-corrected, no continuity correction"),
        zeros=zeros,
    )


def _is_exact(
    method: str, n: NDArray[np.int64], n_nonzero: NDArray[np.int64], sizes: Float
) -> NDArray[np.bool_]:
    if method == "auto":
        return np.asarray(n_nonzero <= EXACT_NONZERO)
    if method == "scipy":
        plain = (n == n_nonzero) & (sizes <= 1).all(-1)
        return np.asarray((n <= SCIPY_ENUMERATED) | (plain & (n <= EXACT_NONZERO)))
    return np.full(n_nonzero.shape, method == "exact")


def _positive(table: Counts) -> Counts:
    return table[..., table.shape[-1] // 2 + 1 :]


def _negative(table: Counts) -> Counts:
    # smallest magnitude first, as the positive ones
    return table[..., : table.shape[-1] // 2][..., ::-1]


def class_ranks(table: Counts, zeros: str) -> tuple[Float, Float]:
    """Average rank and size of each magnitude, smallest first, (..., K)."""
    sizes = np.asarray(_positive(table) + _negative(table), dtype=np.float64)
    below = table[..., table.shape[-1] // 2, None] if zeros == "pratt" else 0
    return below + np.cumsum(sizes, -1) - (sizes - 1) / 2, sizes


def rank_biserial(counts: Counts, zeros: str = "pratt") -> Float:
    """Matched-pairs rank-biserial correlation of (..., 2K + 1) counts of differences.

    Returns:
        (...) in [-1, 1]; NaN where all differences are 0.

    Source: Kerby (2014), The simple difference formula.
    """
    ranks, sizes = class_ranks(counts, zeros)
    apart = ((_positive(counts) - _negative(counts)) * ranks).sum(-1)
    return share(apart, (sizes * ranks).sum(-1))


def _p(
    w_plus: Float, w_minus: Float, ranks: Float, sizes: Float, exact: NDArray[Any], n: Counts
) -> Float:
    deviation = (w_plus - w_minus) / 2
    spread = np.sqrt((sizes * ranks**2).sum(-1)) / 2
    z = np.divide(np.abs(deviation), spread, out=np.zeros_like(spread), where=spread > 0)
    p = np.asarray(2 * ndtr(-z))
    for place in map(tuple, np.argwhere(exact)):
        filled = sizes[place] > 0
        doubled = np.round(2 * ranks[place][filled]).astype(np.int64)
        p[place] = _exact_p(deviation[place], doubled, sizes[place][filled].astype(np.int64))
    return np.where(np.asarray(n) > 0, p, np.nan)


def _exact_p(deviation: float, doubled: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    # the gcd keeps the table of sums short where zeros push all ranks up
    unit = int(np.gcd.reduce(doubled)) if len(doubled) else 1
    kept, probability = subset_sums(doubled // unit, sizes)
    flipped = 2 * kept * unit - int((doubled * sizes).sum())
    return float(min(probability[np.abs(flipped) >= round(abs(4 * deviation))].sum(), 1.0))


def hodges_lehmann(counts: Counts, values: ArrayLike = DIFFERENCES) -> Float:
    """Median of the means of all pairs of differences, each with itself too.

    Args:
        counts: (..., V) how often each value occurs.
        values: (V,).

    Returns:
        (...) NaN where there are no items, or more than 4001 distinct values.

    Source: Hodges and Lehmann (1963), Estimates of location based on rank tests.
    """
    table, steps = np.asarray(counts, dtype=np.int64), np.asarray(values, dtype=np.float64)
    if len(steps) > MANY_VALUES:
        return np.full(table.shape[:-1], np.nan)
    one, two = np.triu_indices(len(steps))
    means = (steps[one] + steps[two]) / 2
    order = np.argsort(means, kind="stable")
    one, two, means = one[order], two[order], means[order]
    same = one == two
    pairs = table[..., one] * (table[..., two] + same) // (1 + same)
    reached = np.cumsum(pairs, -1)
    total = reached[..., -1:]
    # the middle pair, or the middle two
    lower = np.minimum((reached < (total + 1) // 2).sum(-1), len(means) - 1)
    upper = np.minimum((reached < total // 2 + 1).sum(-1), len(means) - 1)
    return np.where(total[..., 0] > 0, (means[lower] + means[upper]) / 2, np.nan)
