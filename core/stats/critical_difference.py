"""Do several models differ at all, and which: Friedman's test and Nemenyi's critical difference.

Models are ranked within each block and their mean ranks compared. A block must be independent
of the next, so turns of one session make one block together. Nemenyi's distance is what a
critical-difference diagram shows; because it moves with the models that happen to be in the
pool, pairwise signed-rank tests with Holm's adjustment (`core.stats.paired`) are the tests to
quote (Benavoli, Corani and Mangili 2016, Should we really use post-hoc tests based on
mean-ranks?).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc
from scipy.stats import studentized_range

from core.stats.ranks import ranks_of

Float = NDArray[np.float64]


@dataclass(frozen=True)
class CriticalDifference:
    """Outcome for M models in B blocks.

    Attributes:
        mean_ranks: (M,) 1 the smallest loss.
        statistic: Friedman's chi-square, corrected for ties, M - 1 degrees of freedom.
        p: its p-value; NaN with a reason where it cannot be computed.
        difference: mean ranks further apart than this differ at the level; NaN likewise.
        groups: indices of models, best first, of each largest set that does not differ.
    """

    mean_ranks: Float
    blocks: int
    statistic: float
    p: float
    difference: float
    level: float
    groups: tuple[tuple[int, ...], ...]
    reason: str | None = None


def critical_difference(losses: ArrayLike, *, level: float = 0.05) -> CriticalDifference:
    """Friedman's test over blocks, and the mean ranks that Nemenyi's test tells apart.

    Args:
        losses: (B, M) mean loss of each model in each block, smaller better; no NaN.

    With ties the distance uses the tied ranks' own variance; without them it is Demsar's
    q sqrt(M (M + 1) / (6 B)).

    Source: Friedman (1937); Nemenyi (1963); Demsar (2006), Statistical comparisons of
    classifiers over multiple data sets.
    """
    table = np.atleast_2d(np.asarray(losses, dtype=np.float64))
    blocks, models = table.shape
    if np.isnan(table).any():
        raise ValueError(
            f"losses: {int(np.isnan(table).sum())} of {table.size} are NaN. "
            "Charge an unanswered item the worst error, or leave the model out."
        )
    if models < 2 or blocks < 2:
        why = f"{models} models in {blocks} blocks: a test needs two of each"
        alone = np.ones(models) if blocks else np.full(models, np.nan)
        return CriticalDifference(alone, blocks, np.nan, np.nan, np.nan, level, (), why)
    ranks = ranks_of(table)
    mean = ranks.mean(0)
    # Of one rank within its block; (M^2 - 1) / 12 without ties.
    variance = float(((ranks - (models + 1) / 2) ** 2).mean())
    if variance == 0:
        why = "all models are equal in every block"
        group = (tuple(range(models)),)
        return CriticalDifference(mean, blocks, 0.0, 1.0, np.nan, level, group, why)
    apart = float(((mean - (models + 1) / 2) ** 2).sum())
    statistic = blocks * apart * (models - 1) / (models * variance)
    spread = 2 * variance * models / ((models - 1) * blocks)
    quantile = float(studentized_range.ppf(1 - level, models, np.inf)) / np.sqrt(2)
    difference = float(quantile * np.sqrt(spread))
    return CriticalDifference(
        mean_ranks=mean,
        blocks=blocks,
        statistic=float(statistic),
        p=float(chdtrc(models - 1, statistic)),
        difference=difference,
        level=level,
        groups=_groups(mean, difference),
    )


def _groups(mean: Float, difference: float) -> tuple[tuple[int, ...], ...]:
    """Runs of models, best first, whose ends are no further apart; none inside another."""
    order = np.argsort(mean, kind="stable")
    sorted_ranks = mean[order]
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        stop = int(np.searchsorted(sorted_ranks, sorted_ranks[start] + difference, "right"))
        if stop > reached and stop - start > 1:
            groups.append(tuple(int(place) for place in order[start:stop]))
        reached = max(reached, stop)
    return tuple(groups)
