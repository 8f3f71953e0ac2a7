"""How far raters agree beyond chance, each figure with its interval and its items.

Takes an (items, raters) array with NaN for missing ratings and gives `Estimate`s.
Point values come from krippendorff, statsmodels and scikit-learn where those
define them; the resamples of the bootstrap go through the vectorised functions
of `validation.kappa`, which the tests hold equal to the packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.metrics.estimate import Estimate
from core.seeds import generator
from validation.kappa import (
    Float,
    Weighting,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from validation.scale import Kind

Int = NDArray[np.int64]
WEIGHTINGS: tuple[Weighting, ...] = ("plain", "linear", "quadratic")
ALPHAS: dict[Kind, tuple[Kind, ...]] = {
    "nominal": ("nominal",),
    "ordinal": ("nominal", "ordinal", "interval"),
    "interval": ("interval",),
}


@dataclass(frozen=True)
class Pair:
    """Two raters on the items that both rated.

    Attributes:
        first, second: the two raters.
        table: (L, L) counts, row the first rater's level, column the second's.
        percent: share of shared items with the same rating.
        kappas: Cohen's kappa by weighting; linear and quadratic only where levels have
            an order (two levels always have one, and then all three are equal).
    """

    first: str
    second: str
    table: Int
    percent: Estimate
    kappas: dict[Weighting, Estimate]

    @property
    def shared(self) -> int:
        """Items that both rated."""
        return int(self.table.sum())


def levels_of(values: Float, numbers: Sequence[float], kind: Kind) -> Float:
    """The levels that counts are kept for: the scale's, or for interval the observed values.

    Args:
        values: any shape, NaN for missing.
        numbers: the scale's levels (for interval its two ends, which are not used).

    Returns:
        (L,) ascending.
    """
    if kind == "interval":
        return np.unique(values[~np.isnan(values)])
    return np.sort(np.asarray(numbers, dtype=float))


def vote_counts(values: Float, levels: Float) -> Int:
    """The vote histogram of each item: (items, L) counts of (items, raters) values."""
    return np.stack([(values == level).sum(1) for level in levels], axis=1).astype(np.int64)


def group_agreement(
    values: Float,
    levels: Float,
    kind: Kind,
    *,
    group: str,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Agreement of all raters together.

    Args:
        values: (items, raters), NaN for missing.
        levels: (L,) from `levels_of`.
        kind: of the scale; it decides which alphas are given (`ALPHAS`). The interval
            alpha of an ordinal scale takes its steps for equal.
        group: the raters' name in the tables, such as "BFGH".
        resamples: bootstrap draws of items; 0 gives no intervals.
        seed: of the draws.

    Returns:
        percent_agreement, share of equal pairs of ratings within items;
        fleiss_kappa over the items that every rater rated (Fleiss 1971);
        fleiss_kappa_generalised for unequal numbers of raters (Gwet 2014), its chance
        agreement from all rated items: not the statistic that Fleiss published;
        krippendorff_alpha_<level> over items with two or more ratings.
        `n` counts the items with two or more ratings that a value rests on, `n_total`
        the items of the table. NaN with a reason where no item is shared or every
        rating is the same.
    """
    votes = vote_counts(values, levels)
    ratings, raters = votes.sum(1), values.shape[1]
    rated, paired = ratings >= 1, ratings >= 2
    complete = paired & (ratings == raters)
    made = _Maker(group, len(values), resamples, seed)
    found = [
        made("percent_agreement", votes[paired], percent_agreement),
        made("fleiss_kappa", votes[complete], fleiss_kappa, _fleiss_of_statsmodels),
        made("fleiss_kappa_generalised", votes[rated], fleiss_kappa),
    ]
    if not complete.any() and raters >= 2:
        found[1] = replace(found[1], reason=f"no item was rated by all {raters} raters")
    for level in ALPHAS[kind]:

        def resampled(counts: Float, weights: Float, level: Kind = level) -> Float:
            return krippendorff_alpha(counts, weights, levels, level)

        def point(counts: Int, level: Kind = level) -> float:
            import krippendorff

            return float(
                krippendorff.alpha(
                    value_counts=counts, value_domain=levels, level_of_measurement=level
                )
            )

        found.append(made(f"krippendorff_alpha_{level}", votes[paired], resampled, point))
    return found


def _fleiss_of_statsmodels(counts: Int) -> float:
    from statsmodels.stats import inter_rater

    return float(inter_rater.fleiss_kappa(counts, method="fleiss"))


@dataclass(frozen=True)
class _Maker:
    """One estimate of one group: value, interval, items, and the reason where undefined."""

    group: str
    total: int
    resamples: int
    seed: int

    def __call__(
        self,
        metric: str,
        votes: Int,
        statistic: Callable[[Float, Float], Float],
        point: Callable[[Int], float] | None = None,
    ) -> Estimate:
        patterns, counts = np.unique(votes, axis=0, return_counts=True)
        paired = int((votes.sum(1) >= 2).sum())
        place = (metric, self.group, paired, self.total)
        if not paired:
            return undefined(*place, "no item has two ratings")
        value = float(statistic(patterns.astype(float), counts.astype(float)))
        if np.isnan(value):
            return undefined(*place, "every rating is the same, so chance alone agrees fully")
        if point is not None:
            value = point(votes)
        draws = statistic(patterns.astype(float), self._weights(metric, counts))
        return with_interval(undefined(*place, ""), value, draws)

    def _weights(self, metric: str, counts: Int) -> Float:
        rng = generator(self.seed, "agreement", self.group, metric)
        return resampled_counts(counts, self.resamples, rng)


def resampled_counts(counts: Int, resamples: int, rng: np.random.Generator) -> Float:
    """Items drawn with replacement, as how often each kind of item was drawn.

    Args:
        counts: (P,) items of each kind.

    Returns:
        (resamples, P), each row summing to the number of items.
    """
    items = int(counts.sum())
    if items < 2:
        return np.empty((0, len(counts)))
    return rng.multinomial(items, counts / items, size=resamples).astype(float)


def with_interval(estimate: Estimate, value: float, draws: Float) -> Estimate:
    """The estimate with its value and the 95 % percentile interval of the draws.

    Undefined draws are left out and counted in the reason; with none defined the
    interval is NaN.
    """
    defined = draws[~np.isnan(draws)]
    low, high = np.quantile(defined, (0.025, 0.975)) if len(defined) else (np.nan, np.nan)
    undefined = len(draws) - len(defined)
    reason = f"{undefined} of {len(draws)} resamples undefined, left out" if undefined else None
    return replace(estimate, value=value, low=float(low), high=float(high), reason=reason)


def undefined(metric: str, condition: str, n: int, n_total: int, reason: str) -> Estimate:
    """NaN, and why."""
    return Estimate(metric, condition, np.nan, np.nan, np.nan, n, n_total, reason)


def pairwise(
    values: Float,
    raters: Sequence[str],
    levels: Float,
    kind: Kind,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Pair]:
    """Cohen's kappa of every two raters on the items that both rated.

    Args:
        values: (items, raters), NaN for missing.
        raters: names of the columns.
        levels: (L,) from `levels_of`.
        kind: on a nominal scale of three or more levels only the plain kappa is defined.

    Returns:
        One `Pair` for each two raters, also where they share nothing. Kappa is NaN with
        a reason for fewer than two shared items or two constant raters; with one
        constant rater it is 0 whatever the other says, and the reason says so.
    """
    return [
        _pair(values[:, [a, b]], (raters[a], raters[b]), levels, kind, resamples, seed)
        for a, b in combinations(range(len(raters)), 2)
    ]


def _pair(
    values: Float,
    names: tuple[str, str],
    levels: Float,
    kind: Kind,
    resamples: int,
    seed: int,
) -> Pair:
    size = len(levels)
    both = values[~np.isnan(values).any(1)]
    places = np.searchsorted(levels, both)
    table = np.bincount(places[:, 0] * size + places[:, 1], minlength=size**2)
    draws = resampled_counts(table, resamples, generator(seed, "pair", *names))
    shared = _Shared(
        names,
        places,
        len(values),
        table.reshape(size, size),
        draws.reshape(-1, size, size),
        levels if kind == "interval" else None,
    )
    weightings = WEIGHTINGS if kind != "nominal" or size == 2 else WEIGHTINGS[:1]
    kappas = {each: shared.kappa(each) for each in weightings}
    return Pair(*names, shared.table, shared.percent(), kappas)


@dataclass(frozen=True)
class _Shared:
    """The items that two raters share: `places` (n, 2) are level indices."""

    names: tuple[str, str]
    places: Int
    total: int
    table: Int
    draws: Float
    distances: Float | None

    def percent(self) -> Estimate:
        n = len(self.places)
        if not n:
            return undefined(
                "percent_agreement", "-".join(self.names), 0, self.total, "no shared item"
            )
        same = np.trace(self.draws, axis1=-2, axis2=-1) / n
        empty = undefined("percent_agreement", "-".join(self.names), n, self.total, "")
        return with_interval(empty, float(np.trace(self.table) / n), same)

    def kappa(self, weighting: Weighting) -> Estimate:
        n = len(self.places)
        place = (f"cohen_kappa_{weighting}", "-".join(self.names), n, self.total)
        if n < 2:
            return undefined(*place, f"shared items: {n}; kappa needs two or more")
        # scikit-learn weighs by a level's place; on an interval scale the distances count.
        numbers = np.arange(len(self.table), dtype=float)
        if self.distances is not None:
            numbers = self.distances
        value = float(cohen_kappa(self.table.astype(float), numbers, weighting))
        if np.isnan(value):
            return undefined(*place, "both raters always gave the same one rating")
        if self.distances is None:
            value = _cohen_of_sklearn(self.places, len(self.table), weighting)
        constant = [
            n for n, given in zip(self.names, self.places.T, strict=True) if len(set(given)) == 1
        ]
        if constant:
            why = f"{constant[0]} gave one rating only: kappa is 0 whatever the other rater says"
            return replace(undefined(*place, why), value=value)
        return with_interval(
            undefined(*place, ""), value, cohen_kappa(self.draws, numbers, weighting)
        )


def _cohen_of_sklearn(places: Int, levels: int, weighting: Weighting) -> float:
    from sklearn.metrics import cohen_kappa_score

    weights = None if weighting == "plain" else weighting
    labels = np.arange(levels)
    return float(cohen_kappa_score(places[:, 0], places[:, 1], labels=labels, weights=weights))


def mean_pairwise_kappa(pairs: Sequence[Pair], weighting: Weighting) -> tuple[float, int]:
    """Mean kappa over the pairs where it is defined, and how many those are.

    Study 1 reports the mean quadratic kappa over the ten pairs of its five experts.
    """
    defined = [
        pair.kappas[weighting].value
        for pair in pairs
        if weighting in pair.kappas and not np.isnan(pair.kappas[weighting].value)
    ]
    return (float(np.mean(defined)) if defined else float("nan")), len(defined)
