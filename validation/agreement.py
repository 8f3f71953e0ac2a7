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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.metrics.estimate import Estimate
from core.seeds import generator
from validation.kappa import (
    Float,
    Weighting,
    cohen_kappa,
    concordance,
    equal_share,
    fleiss_kappa,
    interval_alpha,
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
        shared: items that both rated.
        percent: share of shared items with the same rating.
        kappas: Cohen's kappa by weighting. Plain alone for three or more labels without an
            order, quadratic alone for an interval scale; two levels have all three, equal.
    """

    first: str
    second: str
    shared: int
    percent: Estimate
    kappas: dict[Weighting, Estimate]


def vote_counts(values: Float, levels: Float) -> Int:
    """The vote histogram of each item: (items, L) counts of (items, raters) values."""
    return np.stack([(values == level).sum(1) for level in levels], axis=1).astype(np.int64)


def group_agreement(
    values: Float,
    numbers: Sequence[float],
    kind: Kind,
    *,
    group: str,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Agreement of all raters together.

    Args:
        values: (items, raters), NaN for missing.
        numbers: the scale's levels; not used for an interval scale.
        kind: of the scale. It decides which alphas are given (`ALPHAS`); the interval
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
        An interval scale has no levels to agree on, hence no Fleiss.
        `n` counts the items with two or more ratings that a value rests on, `n_total`
        the items of the table. NaN with a reason where no item is shared or every
        rating is the same.
    """
    made = _Maker(group, len(values), resamples, seed)
    if kind == "interval":
        return _of_free_numbers(values, made)
    levels = np.sort(np.asarray(numbers, dtype=float))
    votes = vote_counts(values, levels)
    ratings, raters = votes.sum(1), values.shape[1]
    paired = ratings >= 2
    complete = paired & (ratings == raters)
    both, whole = int(paired.sum()), int(complete.sum())
    found = [
        made("percent_agreement", votes[paired], both, percent_agreement),
        made("fleiss_kappa", votes[complete], whole, fleiss_kappa, _fleiss_of_statsmodels),
        made("fleiss_kappa_generalised", votes[ratings >= 1], both, fleiss_kappa),
    ]
    if not whole and raters >= 2:
        found[1] = replace(found[1], reason=f"no item was rated by all {raters} raters")
    return found + [_alpha(votes[paired], levels, level, made) for level in ALPHAS[kind]]


def _alpha(votes: Int, levels: Float, level: Kind, made: _Maker) -> Estimate:
    def point(counts: Int) -> float:
        import krippendorff

        return float(
            krippendorff.alpha(value_counts=counts, value_domain=levels, level_of_measurement=level)
        )

    def resampled(counts: Float, weights: Float) -> Float:
        return krippendorff_alpha(counts, weights, levels, level)

    return made(f"krippendorff_alpha_{level}", votes, len(votes), resampled, point)


def _of_free_numbers(values: Float, made: _Maker) -> list[Estimate]:
    chosen = values[(~np.isnan(values)).sum(1) >= 2]
    given = (~np.isnan(chosen)).sum(1)
    equal = np.zeros(len(chosen))
    for first, second in combinations(chosen.T, 2):
        equal += 2 * (first == second)
    from_lowest = chosen - np.nanmin(chosen) if chosen.size else chosen
    moments = np.stack([given, np.nansum(from_lowest, 1), np.nansum(from_lowest**2, 1)], 1)
    pairs = np.stack([equal, given * (given - 1)], 1)
    return [
        made("percent_agreement", pairs, len(chosen), equal_share),
        made("krippendorff_alpha_interval", moments, len(chosen), interval_alpha),
    ]


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
        items: NDArray[Any],
        paired: int,
        statistic: Callable[[Float, Float], Float],
        point: Callable[[Int], float] | None = None,
    ) -> Estimate:
        place = (metric, self.group, paired, self.total)
        if not paired:
            return undefined(*place, "no item has two ratings")
        # Items with the same counts are interchangeable: a resample is how often each kind came.
        kinds, counts = np.unique(items, axis=0, return_counts=True)
        value = float(statistic(kinds.astype(float), counts.astype(float)))
        if np.isnan(value):
            return undefined(*place, "every rating is the same, so chance alone agrees fully")
        if point is not None:
            value = point(items)
        draws = statistic(kinds.astype(float), self._weights(metric, counts))
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
    numbers: Sequence[float],
    kind: Kind,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Pair]:
    """Cohen's kappa of every two raters on the items that both rated.

    Args:
        values: (items, raters), NaN for missing.
        raters: names of the columns.
        numbers: the scale's levels; not used for an interval scale.
        kind: decides which weightings there are, as in `Pair`.

    Returns:
        One `Pair` for each two raters, also where they share nothing. Kappa is NaN with
        a reason for fewer than two shared items or two constant raters; with one
        constant rater it is 0 whatever the other says, and the reason says so.
    """
    levels = np.sort(np.asarray(numbers, dtype=float))
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
    both = values[~np.isnan(values).any(1)]
    different, counts = np.unique(both, axis=0, return_counts=True)
    draws = resampled_counts(counts, resamples, generator(seed, "pair", *names))
    shared = _Shared(names, len(values), levels, both, different, draws)
    weightings: tuple[Weighting, ...] = WEIGHTINGS
    if kind == "interval":
        weightings = ("quadratic",)
    elif kind == "nominal" and len(levels) > 2:
        weightings = ("plain",)
    kappas = {each: shared.kappa(each, free=kind == "interval") for each in weightings}
    return Pair(*names, len(both), shared.percent(), kappas)


@dataclass(frozen=True)
class _Shared:
    """The items that two raters share.

    Attributes:
        both: (n, 2) their ratings.
        different: (P, 2) the different pairs among them.
        draws: (B, P) how often each was drawn.
    """

    names: tuple[str, str]
    total: int
    levels: Float
    both: Float
    different: Float
    draws: Float

    def percent(self) -> Estimate:
        n = len(self.both)
        place = ("percent_agreement", "-".join(self.names), n, self.total)
        if not n:
            return undefined(*place, "no shared item")
        same = (self.both[:, 0] == self.both[:, 1]).mean()
        drawn = self.draws @ (self.different[:, 0] == self.different[:, 1]) / n
        return with_interval(undefined(*place, ""), float(same), drawn)

    def kappa(self, weighting: Weighting, *, free: bool) -> Estimate:
        n = len(self.both)
        place = (f"cohen_kappa_{weighting}", "-".join(self.names), n, self.total)
        if n < 2:
            return undefined(*place, f"shared items: {n}; kappa needs two or more")
        if (self.both == self.both[0, 0]).all():
            return undefined(*place, "both raters always gave the same one rating")
        if free:
            value = float(concordance(self.both, np.ones(n)))
        else:
            value = _cohen_of_sklearn(self.both, self.levels, weighting)
        ratings = zip(self.names, self.both.T, strict=True)
        constant = [name for name, given in ratings if len(set(given)) == 1]
        if constant:
            why = f"{constant[0]} gave one rating only: kappa is 0 whatever the other rater says"
            return replace(undefined(*place, why), value=value)
        draws = self._draws_of_kappa(weighting, free=free)
        return with_interval(undefined(*place, ""), value, draws)

    def _draws_of_kappa(self, weighting: Weighting, *, free: bool) -> Float:
        if free:
            return concordance(self.different, self.draws)
        size = len(self.levels)
        first, second = np.searchsorted(self.levels, self.different).T
        tables = np.zeros((len(self.draws), size, size))
        tables[:, first, second] = self.draws
        # By place and not by value, as scikit-learn has it.
        return cohen_kappa(tables, np.arange(size, dtype=float), weighting)


def _cohen_of_sklearn(both: Float, levels: Float, weighting: Weighting) -> float:
    from sklearn.metrics import cohen_kappa_score

    first, second = np.searchsorted(levels, both).T
    weights = None if weighting == "plain" else weighting
    labels = np.arange(len(levels))
    return float(cohen_kappa_score(first, second, labels=labels, weights=weights))


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
