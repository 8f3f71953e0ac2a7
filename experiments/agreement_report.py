"""What a reader of human ratings is shown: agreement, pairs, consensus, and on how few items.

Works a `Study` out of ratings and turns it into sentences, grids and metrics. Printing
and logging show the same; the files that go with them are `agreement_files`'s.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from core.metrics.estimate import Estimate
from experiments.table import Grid, markdown, print_grid
from validation import agreement, consensus
from validation.agreement import Pair
from validation.consensus import Assignment, ItemLabel
from validation.kappa import Weighting
from validation.ratings import Ratings

# Below this a bootstrap interval is itself a rough guess.
FEW_ITEMS = 30
SHOWN_TIES = 10
SHOWN_SPLITS = 20
# Sections of the runs' page, first ones first.
HEADLINE = ("agreement", "reference_agreement")


@dataclass(frozen=True)
class ReferenceComparison:
    """A consensus beside the reference label.

    Attributes:
        rule: how ties were decided, or "median".
        table: (L, L) counts, row the reference, column the consensus; None for a median.
        estimates: share, kappa; or within-one, MAE, rho.
    """

    rule: str
    table: np.ndarray[Any, np.dtype[np.int64]] | None
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class Study:
    """All that was worked out of one table of ratings.

    Attributes:
        everyone: all raters of the table.
        group: those whose agreement is measured; equal to `everyone` without a group.
        group_name: in tables: "BFGH", or "all".
        estimates: agreement of the group.
        pairs: every two raters of the group.
        records: consensus of everyone, a record an item, ties unresolved.
        assignments: who would adjudicate the ties.
        comparisons: consensus against reference, of everyone and, if there is one, the group.
    """

    everyone: Ratings
    group: Ratings
    group_name: str
    estimates: tuple[Estimate, ...]
    pairs: tuple[Pair, ...]
    records: tuple[ItemLabel, ...]
    assignments: tuple[Assignment, ...]
    comparisons: tuple[ReferenceComparison, ...]


def study_of(everyone: Ratings, group: Ratings, *, resamples: int, seed: int) -> Study:
    """Everything the report shows.

    The consensus rests on every rater of the table, as in both papers, whatever the group:
    a group is chosen to look at agreement, and its own consensus is compared beside.
    """
    kind = group.scale.kind
    numbers = group.scale.numbers
    chosen = group.raters != everyone.raters
    name = _group_name(group) if chosen else "all"
    estimates = agreement.group_agreement(
        group.values, numbers, kind, group=name, resamples=resamples, seed=seed
    )
    pairs = agreement.pairwise(
        group.values, group.raters, numbers, kind, resamples=resamples, seed=seed
    )
    records = _majority(everyone) if kind == "nominal" else []
    comparisons = list(_comparisons(everyone, "all", resamples, seed))
    if chosen:
        comparisons += _comparisons(group, name, resamples, seed)
    return Study(
        everyone,
        group,
        name,
        tuple(estimates),
        tuple(pairs),
        tuple(records),
        tuple(consensus.assign_adjudicators(records, everyone.raters)),
        tuple(comparisons),
    )


def _group_name(group: Ratings) -> str:
    return ("" if all(len(name) == 1 for name in group.raters) else "+").join(group.raters)


def _majority(ratings: Ratings, ties: str | None = None) -> list[ItemLabel]:
    scale = ratings.scale
    return consensus.majority_labels(
        ratings.items, ratings.raters, ratings.values, scale.labels, scale.numbers, ties=ties
    )


def _comparisons(
    ratings: Ratings, who: str, resamples: int, seed: int
) -> Iterator[ReferenceComparison]:
    if ratings.reference is None:
        return
    if ratings.scale.kind != "nominal":
        estimates = consensus.consensus_against_reference(
            consensus.median_labels(ratings.values),
            ratings.reference,
            condition=f"{who}, median",
            resamples=resamples,
            seed=seed,
        )
        yield ReferenceComparison(f"{who}, median", None, tuple(estimates))
        return
    names = dict(zip(ratings.scale.numbers, ratings.scale.labels, strict=True))
    gold = [names.get(value) for value in ratings.reference]
    for ties, rule in _tie_rules(ratings):
        table = consensus.agreement_table(_majority(ratings, ties), gold, ratings.scale.labels)
        condition = f"{who}, {rule}"
        estimates = consensus.agreement_with_reference(
            table, condition=condition, n_total=len(gold), resamples=resamples, seed=seed
        )
        yield ReferenceComparison(condition, table, tuple(estimates))


def _tie_rules(ratings: Ratings) -> list[tuple[str | None, str]]:
    if ratings.scale.labels != ("NO", "YES"):
        return [(None, "ties left out")]
    return [
        (None, "ties left out (text of study 2)"),
        ("YES", "ties YES (formula of study 2)"),
        ("NO", "ties NO (printed Table 6 of study 2)"),
    ]


def agreement_grid(study: Study) -> Grid:
    """A statistic a row, with the items it rests on."""
    rows = [(e.metric, _shown(e), f"{e.n} of {e.n_total}", e.reason or "") for e in study.estimates]
    value, defined = agreement.mean_pairwise_kappa(study.pairs, weighting(study))
    shown = "undefined" if math.isnan(value) else f"{value:.3f}"
    remark = f"over {defined} of {len(study.pairs)} pairs"
    rows.append((f"mean_pairwise_kappa_{weighting(study)}", shown, "", remark))
    return Grid(("statistic", "value [95 % interval]", "items", "remark"), tuple(rows))


def pairs_grid(study: Study) -> Grid:
    """Two raters a row, with the items they share."""
    kinds = [each for each in agreement.WEIGHTINGS if study.pairs and each in study.pairs[0].kappas]
    # With two levels every weighting is the same figure.
    kinds = kinds[:1] if len(study.group.scale.labels) == 2 else kinds
    rows = [
        (
            f"{pair.first}-{pair.second}",
            str(pair.shared),
            _shown(pair.percent),
            *(_shown(pair.kappas[each]) for each in kinds),
            next((pair.kappas[each].reason or "" for each in kinds), ""),
        )
        for pair in study.pairs
    ]
    header = ("pair", "shared items", "equal", *(f"kappa, {each}" for each in kinds), "remark")
    return Grid(header, tuple(rows))


def reference_grid(study: Study) -> Grid:
    """Consensus against reference, a rule a row; for two levels with the four counts."""
    labels = study.group.scale.labels
    cells: list[str] = []
    if study.comparisons and study.comparisons[0].table is not None and len(labels) == 2:
        cells = [f"{gold}>{ours}" for gold in reversed(labels) for ours in reversed(labels)]
    metrics = [e.metric for e in study.comparisons[0].estimates] if study.comparisons else []
    rows = []
    for each in study.comparisons:
        counts = []
        if cells and each.table is not None:
            counts = [str(count) for count in each.table[::-1, ::-1].ravel()]
        first = each.estimates[0]
        figures = [_shown(estimate) for estimate in each.estimates]
        rows.append((each.rule, *counts, *figures, f"{first.n} of {first.n_total}"))
    return Grid(("consensus", *cells, *metrics, "items"), tuple(rows))


def weighting(study: Study) -> Weighting:
    """The kappa of the heatmap and of the mean: quadratic where the scale has an order."""
    return "plain" if study.group.scale.kind == "nominal" else "quadratic"


def sentences(study: Study) -> list[str]:
    """What was read, what was left out, how everyone voted, and how little figures rest on."""
    group = study.group
    from_group = f" from {study.group_name}" if group.raters != study.everyone.raters else ""
    counts = (~np.isnan(group.values)).sum(1)
    per_item = ", ".join(
        f"{int(items)} with {number}" for number, items in enumerate(np.bincount(counts)) if items
    )
    lines = [
        f"{group.source}: {len(group.items)} items; raters {', '.join(group.raters)}; "
        f"{int(counts.sum())} ratings; items by number of ratings{from_group}: {per_item}.",
        *group.notes,
    ]
    if group.scale.kind != "interval":
        levels = zip(group.scale.labels, group.scale.numbers, strict=True)
        by_level = (f"{label}: {int((group.values == number).sum())}" for label, number in levels)
        lines.append(f"Ratings{from_group} by level: {', '.join(by_level)}.")
    if group.reference_name:
        lines.append(f"The reference label is column {group.reference_name}; it is no rater.")
    for e in study.estimates:
        if 0 < e.n < FEW_ITEMS:
            lines.append(
                f"Few items: {e.metric} rests on {e.n} of {e.n_total} items; {_interval(e)}."
            )
    return [*lines, *_consensus_sentences(study)]


def _consensus_sentences(study: Study) -> list[str]:
    """Of everyone, whatever the group: how the votes fell, what they come to, what is tied."""
    everyone = study.everyone
    grouped = study.group.raters != everyone.raters
    whose = f"all {len(everyone.raters)} raters" if grouped else "all raters"
    if not everyone.items:
        return []
    nominal = everyone.scale.kind == "nominal"
    lines = _vote_sentences(study, whose) if nominal else _median_sentences(everyone, whose)
    single = int(((~np.isnan(everyone.values)).sum(1) == 1).sum())
    if single:
        counting = f"Counting {whose}, " if grouped else ""
        lines.append(
            f"{counting}{single} of {len(everyone.items)} items have a single rating: their "
            "consensus is one person's vote."
        )
    return [*lines, *_tie_sentences(study)] if nominal else lines


def _vote_sentences(study: Study, whose: str) -> list[str]:
    labels = study.everyone.scale.labels
    splits = Counter(tuple(record.histogram.values()) for record in study.records)
    # Items with few votes first, as in the line that counts the ratings.
    ordered = sorted(splits, key=lambda split: (sum(split), split[::-1]))
    shown = [f"({', '.join(map(str, split))}): {splits[split]}" for split in ordered]
    kept = Counter(record.label or record.status for record in study.records)
    found = ", ".join(f"{kind}: {kept[kind]}" for kind in (*labels, "UNRESOLVED"))
    return [
        f"Vote histogram of {whose}, items by votes for ({', '.join(labels)}): "
        f"{_first(shown, SHOWN_SPLITS)}.",
        f"Consensus of {whose} (majority), items by label: {found}.",
    ]


def _median_sentences(ratings: Ratings, whose: str) -> list[str]:
    medians, scale = consensus.median_labels(ratings.values), ratings.scale
    if scale.kind == "interval":
        low, middle, high = np.nanquantile(medians, [0, 0.5, 1])
        return [
            f"Consensus of {whose} (median): from {low:g} to {high:g}, half of the items at "
            f"{middle:g} or below."
        ]
    levels = sorted({*scale.numbers, *medians[~np.isnan(medians)].tolist()})
    counts = (f"{_level(ratings, at)}: {int((medians == at).sum())}" for at in levels)
    tied = [
        f"{item} ({_level(ratings, median)})"
        for item, median in zip(ratings.items, medians, strict=True)
        if not np.isnan(median) and median not in scale.numbers
    ]
    return [
        f"Consensus of {whose} (median), items by level: {', '.join(counts)}.",
        f"{len(tied)} items are UNRESOLVED (tied: their median lies between two levels, and is "
        f"kept so): {_first(tied, SHOWN_TIES)}."
        if tied
        else "No item is tied between two levels.",
    ]


def _level(ratings: Ratings, value: float) -> str:
    scale = ratings.scale
    if value in scale.numbers:
        return scale.labels[scale.numbers.index(value)]
    if all(label == f"{at:g}" for label, at in zip(scale.labels, scale.numbers, strict=True)):
        return f"{value:g}"
    above = bisect(scale.numbers, value)
    return f"{scale.labels[above - 1]}/{scale.labels[above]}"


def _first(shown: Sequence[str], most: int) -> str:
    more = [f"{len(shown) - most} more in items.csv"] if len(shown) > most else []
    return ", ".join([*shown[:most], *more])


def _tie_sentences(study: Study) -> list[str]:
    if not study.assignments:
        return ["No item is tied."]
    lines = [f"{len(study.assignments)} items are UNRESOLVED (tied)."]
    for each in study.assignments[:SHOWN_TIES]:
        who = f"adjudicators {each.first} and {each.second}" if each.first else "no adjudicators"
        third = f", tie-breaker {each.tie_breaker}" if each.tie_breaker else ""
        why = f" ({each.reason})" if each.reason else ""
        lines.append(f"UNRESOLVED {each.item_id}: {who}{third}{why}.")
    if len(study.assignments) > SHOWN_TIES:
        lines.append("The others, with their adjudicators, are in items.csv.")
    return lines


def _shown(estimate: Estimate) -> str:
    # Three decimals: the figures of published studies are compared to that digit.
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.low):
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return "it has no interval"
    return f"read it with its interval, {estimate.low:.2f} to {estimate.high:.2f}"


def grids(study: Study) -> list[tuple[str, Grid]]:
    """Each table under its title; the one for the reference only where there is one."""
    found = [(f"Agreement of {study.group_name}", agreement_grid(study))]
    if study.comparisons:
        title = f"Consensus against {study.group.reference_name}"
        if study.group.scale.kind == "nominal":
            title += " (reference>consensus)"
        found.append((title, reference_grid(study)))
    # Last, because it is the longest and a run's description has an end.
    return [*found, ("Pairs of raters", pairs_grid(study))]


def print_study(study: Study, stream: TextIO) -> None:
    """Sentences first, then the grids."""
    for line in sentences(study):
        print(line, file=stream)
    for title, grid in grids(study):
        print_grid(grid, title, stream)


def note(study: Study) -> str:
    """The same as markdown, for the run's description."""
    parts = ["\n".join(f"- {line}" for line in sentences(study))]
    parts += [f"**{title}**\n\n{markdown(grid)}" for title, grid in grids(study)]
    return "\n\n".join(parts)


def metrics(study: Study) -> dict[str, float]:
    """Metric name -> value: each figure, the items it rests on, the ends of its interval."""
    figures = [(f"{HEADLINE[0]}/{e.metric}", e) for e in study.estimates]
    figures += [
        (f"{e.metric}/{_rule_key(each.rule)}", e)
        for each in study.comparisons
        for e in each.estimates
    ]
    found: dict[str, float] = {}
    for name, e in figures:
        figure = name.removeprefix(f"{HEADLINE[0]}/").replace("/", ".")
        found[name] = e.value
        found[f"items/{figure}"] = float(e.n)
        found[f"zz_interval/{figure}.low"] = e.low
        found[f"zz_interval/{figure}.high"] = e.high
    value, _ = agreement.mean_pairwise_kappa(study.pairs, weighting(study))
    found[f"{HEADLINE[0]}/mean_pairwise_kappa_{weighting(study)}"] = value
    return found


def _rule_key(rule: str) -> str:
    who, _, how = rule.partition(", ")
    return "_".join([*who.replace("+", "_").split(), *how.partition(" (")[0].split()])
