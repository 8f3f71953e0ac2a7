"""One label an item from several raters, and how it compares with a reference label.

Study 2 (SpeechMentalManip, section 6.1): majority vote, ties UNRESOLVED and routed
to two raters outside the item's voters, a third as tie-breaker. Study 1 (CBT-Audio,
appendix C.2): the median of the experts' ratings. Agreement among the raters is
`validation.agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from core.metrics.estimate import Estimate
from core.seeds import generator
from validation.agreement import resampled_counts, undefined, with_interval
from validation.kappa import cohen_kappa

Float = NDArray[np.float64]
Status = Literal["MAJORITY", "UNRESOLVED", "ADJUDICATED", "TIE_BROKEN", "UNRATED"]
ENUMERATED_RANKINGS = 8


class AdjudicationError(ValueError):
    """An adjudicator who may not judge this item, or an item with nothing to judge."""


@dataclass(frozen=True)
class ItemLabel:
    """What is kept of one item and modality.

    Attributes:
        item_id: of the item.
        label: the level decided on; None while UNRATED, and while UNRESOLVED unless a tie
            rule was asked for.
        histogram: votes by level, every level of the scale, 0 included.
        status: MAJORITY, UNRESOLVED (a tie), ADJUDICATED (two adjudicators agreed),
            TIE_BROKEN (a third decided), UNRATED (no vote).
        voters: the raters who voted; their number is the rater count.
        adjudicators: who decided afterwards, in the order they were asked.
    """

    item_id: str
    label: str | None
    histogram: Mapping[str, int]
    status: Status
    voters: tuple[str, ...]
    adjudicators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assignment:
    """Who adjudicates an UNRESOLVED item: two raters outside its voters, and a third.

    `reason` says what is missing where too few raters are left; names are then None.
    """

    item_id: str
    first: str | None
    second: str | None
    tie_breaker: str | None
    reason: str | None = None


def majority_labels(
    items: Sequence[str],
    raters: Sequence[str],
    values: Float,
    labels: Sequence[str],
    numbers: Sequence[float],
    *,
    ties: str | None = None,
) -> list[ItemLabel]:
    """The label most raters gave, for each item.

    Args:
        items: (items,) ids.
        raters: (raters,) names.
        values: (items, raters), NaN for missing.
        labels, numbers: (L,) the scale's levels as shown and as valued.
        ties: None leaves ties UNRESOLVED, as the text of section 6.1 says. A label gives
            it to the ties it is part of. "YES" is what the section's formula gives: at
            half the votes both its cases hold and the first one is YES. "NO" is
            what gives the printed Table 6.

    Returns:
        One record for each item, in order.
    """
    records = []
    for item, row in zip(items, values, strict=True):
        votes = {
            label: int((row == number).sum()) for label, number in zip(labels, numbers, strict=True)
        }
        voters = tuple(name for name, value in zip(raters, row, strict=True) if not np.isnan(value))
        records.append(_majority(item, votes, voters, ties))
    return records


def _majority(
    item: str, votes: Mapping[str, int], voters: tuple[str, ...], ties: str | None
) -> ItemLabel:
    most = max(votes.values())
    if not most:
        return ItemLabel(item, None, votes, "UNRATED", voters)
    winners = [label for label, count in votes.items() if count == most]
    if len(winners) == 1:
        return ItemLabel(item, winners[0], votes, "MAJORITY", voters)
    return ItemLabel(item, ties if ties in winners else None, votes, "UNRESOLVED", voters)


def assign_adjudicators(records: Sequence[ItemLabel], raters: Sequence[str]) -> list[Assignment]:
    """Two adjudicators and a tie-breaker for each UNRESOLVED item.

    The paper says "two rotating annotators who were not in the original voting set":
    we rotate by giving each item to those with the fewest items so far, in the order of
    `raters`. It also routes "low-confidence" items without saying which those are; we
    route ties alone.

    Args:
        records: from `majority_labels`.
        raters: everyone who may adjudicate.
    """
    load = dict.fromkeys(raters, 0)
    assigned = []
    for record in records:
        if record.status != "UNRESOLVED":
            continue
        free = sorted((name for name in raters if name not in record.voters), key=load.__getitem__)
        if len(free) < 2:
            why = f"{len(free)} of {len(raters)} raters did not vote on it; two are needed"
            assigned.append(Assignment(record.item_id, None, None, None, why))
            continue
        for name in free[:2]:
            load[name] += 1
        third = free[2] if len(free) > 2 else None
        why_no_third = None if third else "nobody is left as tie-breaker"
        assigned.append(Assignment(record.item_id, free[0], free[1], third, why_no_third))
    return assigned


def adjudicated(record: ItemLabel, judgements: Mapping[str, str]) -> ItemLabel:
    """An UNRESOLVED item with its adjudicators' judgements.

    Args:
        record: an UNRESOLVED item.
        judgements: adjudicator -> label, in the order asked: two, or three where the
            first two differ.

    Returns:
        ADJUDICATED where the first two agree, TIE_BROKEN where the third decided, still
        UNRESOLVED where the first two differ and no third was asked. The histogram
        keeps the original votes only.

    Raises:
        AdjudicationError: the item is not UNRESOLVED, an adjudicator voted on it, a label
            off the scale, or not two or three judgements.
    """
    where = f"item {record.item_id}"
    if record.status != "UNRESOLVED":
        raise AdjudicationError(f"{where} is {record.status}; only UNRESOLVED is adjudicated.")
    voted = [name for name in judgements if name in record.voters]
    if voted:
        raise AdjudicationError(f"{where}: {', '.join(voted)} voted on it and may not adjudicate.")
    wrong = [label for label in judgements.values() if label not in record.histogram]
    if wrong:
        levels = ", ".join(record.histogram)
        raise AdjudicationError(f"{where}: expected one of {levels}, found {wrong[0]!r}.")
    if len(judgements) not in (2, 3):
        raise AdjudicationError(
            f"{where}: expected two or three judgements, found {len(judgements)}."
        )
    names, given = tuple(judgements), tuple(judgements.values())
    if given[0] == given[1]:
        return replace(record, label=given[0], status="ADJUDICATED", adjudicators=names[:2])
    if len(given) == 2:
        return replace(record, label=None, adjudicators=names)
    return replace(record, label=given[2], status="TIE_BROKEN", adjudicators=names)


def agreement_table(
    records: Sequence[ItemLabel], reference: Sequence[str | None], labels: Sequence[str]
) -> NDArray[np.int64]:
    """Reference label by consensus label, as study 2's Table 6.

    Returns:
        (L, L) counts, row the reference, column the consensus, in the order of
        `labels`; items without either are left out.
    """
    place = {label: index for index, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for record, gold in zip(records, reference, strict=True):
        if record.label is not None and gold is not None:
            table[place[gold], place[record.label]] += 1
    return table


def agreement_with_reference(
    table: NDArray[np.int64], *, condition: str, n_total: int, resamples: int = 1000, seed: int = 0
) -> list[Estimate]:
    """Share of equal labels and Cohen's kappa of consensus and reference, with intervals.

    Args:
        table: (L, L) from `agreement_table`.
        condition: what the figures are shown under, such as the tie rule.
        n_total: items of the table, with and without a label.
    """
    n = int(table.sum())
    names = ("reference_agreement", "reference_kappa")
    if not n:
        return [undefined(name, condition, 0, n_total, "no item has both labels") for name in names]
    drawn = resampled_counts(table.ravel(), resamples, generator(seed, "reference"))
    draws, numbers = drawn.reshape(-1, *table.shape), np.arange(len(table), dtype=float)
    same, counts = np.trace(table) / n, table.astype(float)
    kappa = float(cohen_kappa(counts, numbers, "plain"))
    share = undefined(names[0], condition, n, n_total, "")
    found = [with_interval(share, float(same), np.trace(draws, axis1=-2, axis2=-1) / n)]
    if np.isnan(kappa):
        return [*found, undefined(names[1], condition, n, n_total, "one label only in both")]
    empty = undefined(names[1], condition, n, n_total, "")
    return [*found, with_interval(empty, kappa, cohen_kappa(draws, numbers, "plain"))]


def median_labels(values: Float) -> Float:
    """The median of the available ratings (CBT-Audio, appendix C.2).

    Args:
        values: (items, raters), NaN for missing.

    Returns:
        (items,); NaN without a rating. An even number of ratings may give a half level: we
        keep it, because rounding would favour one side.
    """
    median = np.full(len(values), np.nan)
    rated = ~np.isnan(values).all(1)
    if rated.any():
        median[rated] = np.nanmedian(values[rated], axis=1)
    return median


def consensus_against_reference(
    consensus: Float, reference: Float, *, condition: str, resamples: int = 1000, seed: int = 0
) -> list[Estimate]:
    """Within-one agreement, MAE and Spearman's rho of an ordinal consensus.

    Args:
        consensus, reference: (items,), NaN for missing; items with both count.

    Returns:
        reference_within_one, reference_mae and reference_spearman, each with a percentile
        interval over items; rho is NaN with a reason where either side is constant.
    """
    both = ~np.isnan(consensus) & ~np.isnan(reference)
    ours, theirs, total = consensus[both], reference[both], len(consensus)
    n = len(ours)
    names = ("reference_within_one", "reference_mae", "reference_spearman")
    if not n:
        return [undefined(name, condition, 0, total, "no item has both labels") for name in names]
    pairs, counts = np.unique(np.stack([ours, theirs], 1), axis=0, return_counts=True)
    draws = resampled_counts(counts, resamples, generator(seed, "reference"))
    error = np.abs(pairs[:, 0] - pairs[:, 1])
    found = []
    for name, cost in zip(names, ((error <= 1).astype(float), error), strict=False):
        empty = undefined(name, condition, n, total, "")
        found.append(with_interval(empty, float(counts @ cost / n), draws @ cost / n))
    rho = float(_spearman(pairs, counts[None].astype(float))[0])
    if np.isnan(rho):
        return [*found, undefined(names[2], condition, n, total, "one side gave one level only")]
    empty = undefined(names[2], condition, n, total, "")
    return [*found, with_interval(empty, rho, _spearman(pairs, draws))]


def _spearman(pairs: Float, weights: Float) -> Float:
    """Rho with average ranks of (P, 2) pairs, each drawn (B, P) times."""
    total = weights.sum(1)
    ranks = []
    for side in pairs.T:
        levels, place = np.unique(side, return_inverse=True)
        counts = weights @ (place[:, None] == np.arange(len(levels)))
        middle = np.cumsum(counts, 1) - counts / 2
        ranks.append(middle[:, place] - total[:, None] / 2)
    first, second = ranks
    spread = (weights * first**2).sum(1) * (weights * second**2).sum(1)
    rho = np.full(len(weights), np.nan)
    np.divide((weights * first * second).sum(1), np.sqrt(spread), out=rho, where=spread > 0)
    return rho


@dataclass(frozen=True)
class RankingAgreement:
    """How alike two rankings of the same models are.

    Attributes:
        rho: Spearman's rho of the models' scores; NaN with a reason where undefined.
        p: two-sided permutation p of rho = 0.
        models: how many were ranked.
        exact: every permutation was counted (up to eight models); otherwise drawn.
    """

    rho: float
    p: float
    models: int
    exact: bool
    reason: str | None = None


def ranking_robustness(
    full: Mapping[str, float], subset: Mapping[str, float], *, draws: int = 100_000, seed: int = 0
) -> RankingAgreement:
    """Spearman's rho between the models' scores on the full set and on the expert subset.

    CBT-Audio reports rho = 0.882 (p < 0.001). Ten models without ties can give 0.879 or
    0.891 and nothing between, so its ranking must hold tied scores; ties get average ranks.
    Student's approximation puts p below 0.001 there; the permutations put it between 0.001
    and 0.002, which is what this function gives.

    Args:
        full, subset: model -> score, the same models in both.
        draws: permutations drawn where there are more than eight models.
        seed: of those draws.

    Raises:
        ValueError: the two do not rank the same models.
    """
    if set(full) != set(subset):
        raise ValueError(f"models ranked in one set only: {sorted(set(full) ^ set(subset))}.")
    models = sorted(full)
    exact = len(models) <= ENUMERATED_RANKINGS
    first, second = (rankdata([scores[name] for name in models]) for scores in (full, subset))
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if not spread:
        return RankingAgreement(np.nan, np.nan, len(models), exact, "all scores of a set are equal")
    observed = float(first @ second)
    if exact:
        null = np.array(list(permutations(second))) @ first
        extreme, drawn = int(_as_extreme(null, observed).sum()), len(null)
    else:
        orders = generator(seed, "ranking").permuted(np.tile(second, (draws, 1)), axis=1)
        # The observed order counts as one of the draws: a p of zero would claim too much.
        extreme, drawn = 1 + int(_as_extreme(orders @ first, observed).sum()), draws + 1
    return RankingAgreement(observed / spread, extreme / drawn, len(models), exact)


def _as_extreme(null: Float, observed: float) -> NDArray[np.bool_]:
    # Sums of ranks are multiples of a quarter; the slack only absorbs round-off.
    return np.abs(null) >= abs(observed) - 1e-6
