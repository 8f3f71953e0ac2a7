"""What a reader of experts' ratings is shown: study 1's tables 5 and 6, and the models' ranking.

Works a `Validation` out of ratings and models' errors. The agreement within it is
`agreement_report`'s; what is added here is laid out as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import pandas as pd

from core.metrics.estimate import Estimate
from experiments import agreement_report
from experiments.agreement_report import Study
from experiments.table import Grid, markdown, print_grid
from validation.consensus import RankingAgreement, ranking_robustness
from validation.experts import CONSENSUS, ModelError, against_labels, pairwise_means
from validation.ratings import Ratings

# Sections of the runs' page, first ones first.
HEADLINE = ("labels", "agreement")
# With fewer, every order of the models is likely.
FEW_MODELS = 5


@dataclass(frozen=True)
class Validation:
    """All that was worked out.

    Attributes:
        study: the experts' agreement.
        pairs: means over pairs of experts.
        beside: each expert and the consensus against the labels.
        models: one for each model, best first on the full set.
        rankings: "experts" and "labels" -> how alike the ranking on the experts' turns is.
        condition: of the models' predictions.
    """

    study: Study
    pairs: tuple[Estimate, ...]
    beside: tuple[Estimate, ...]
    models: tuple[ModelError, ...]
    rankings: dict[str, RankingAgreement]
    condition: str


def validation_of(
    ratings: Ratings, models: Sequence[ModelError], condition: str, *, resamples: int, seed: int
) -> Validation:
    """Everything the report shows; the ratings have a reference."""
    assert ratings.reference is not None
    draws = {"resamples": resamples, "seed": seed}
    ranked = sorted(models, key=lambda each: (math.isnan(each.full), each.full))
    full = {each.model: each.full for each in ranked}
    subsets = {
        "experts": {each.model: each.experts for each in ranked},
        "labels": {each.model: each.labels for each in ranked},
    }
    return Validation(
        study=agreement_report.study_of(ratings, ratings, **draws),
        pairs=tuple(pairwise_means(ratings.values, **draws)),
        beside=tuple(against_labels(ratings.values, ratings.raters, ratings.reference, **draws)),
        models=tuple(ranked),
        rankings={name: _ranking(full, subset, seed) for name, subset in subsets.items() if models},
        condition=condition,
    )


def _ranking(full: dict[str, float], subset: dict[str, float], seed: int) -> RankingAgreement:
    """Over the models that have an error on both; the others are named in the table."""
    both = [name for name in full if not math.isnan(full[name]) and not math.isnan(subset[name])]
    if len(both) < 2:
        return RankingAgreement(math.nan, math.nan, len(both), True, "fewer than two models")
    return ranking_robustness(
        {name: full[name] for name in both}, {name: subset[name] for name in both}, seed=seed
    )


def grids(found: Validation) -> list[tuple[str, Grid]]:
    """Each table under its title."""
    tables = [
        ("Agreement of the experts (study 1, table 5)", pairs_grid(found)),
        ("Experts beside the labels (study 1, table 6)", labels_grid(found)),
    ]
    if found.models:
        title = f"Mean absolute error of the models, {found.condition}"
        tables.append((title, models_grid(found)))
    return tables


def pairs_grid(found: Validation) -> Grid:
    """The group's alpha and the means over pairs, a figure a row."""
    alpha = [e for e in found.study.estimates if e.metric == "krippendorff_alpha_ordinal"]
    rows = [
        (e.metric, _shown(e), f"{e.n} of {e.n_total}", e.reason or "")
        for e in (*alpha, *found.pairs)
    ]
    return Grid(("statistic", "value [95 % interval]", "turns", "remark"), tuple(rows))


def labels_grid(found: Validation) -> Grid:
    """An expert a row, the consensus last."""
    names = list(dict.fromkeys(e.condition for e in found.beside))
    metrics = list(dict.fromkeys(e.metric for e in found.beside))
    cell = {(e.condition, e.metric): e for e in found.beside}
    rows = []
    for name in names:
        figures = [cell[name, metric] for metric in metrics]
        counts = f"{figures[0].n} of {figures[0].n_total}"
        rows.append((name, *(_shown(e) for e in figures), counts))
    heads = (metric.removeprefix("reference_") for metric in metrics)
    return Grid(("expert", *heads, "turns"), tuple(rows))


def models_grid(found: Validation) -> Grid:
    """A model a row, best first on the full set."""
    rows = [
        (
            each.model,
            f"{_number(each.full)} ({each.n_full} of {each.asked})",
            f"{_number(each.experts)} ({each.n_experts})",
            f"{_number(each.labels)} ({each.n_experts})",
        )
        for each in found.models
    ]
    header = ("model", "all turns, labels", "experts' turns, experts", "experts' turns, labels")
    return Grid(header, tuple(rows))


def sentences(found: Validation) -> list[str]:
    """The agreement's, and how near the experts come to the labels."""
    lines = agreement_report.sentences(found.study)
    (within,) = (e for e in found.beside if (e.condition, e.metric) == (CONSENSUS, _WITHIN))
    lines.append(
        f"The experts' median is within one level of the label on {within.value:.1%} of "
        f"{within.n} turns."
        if within.n
        else "No turn has both a label and a rating."
    )
    return lines


def ranking_sentences(found: Validation) -> list[str]:
    """How alike the models rank on the experts' turns and on all; none where none was given."""
    if len(found.models) == 1:
        return ["No ranking: one model alone has no rank; it takes two or more."]
    lines = []
    for name, ranking in found.rankings.items():
        what = "the experts' median" if name == "experts" else "the labels"
        on = f"on the experts' turns against {what}"
        if math.isnan(ranking.rho):
            lines.append(f"Ranking of {ranking.models} models {on}: undefined ({ranking.reason}).")
            continue
        lines.append(
            f"Ranking of {ranking.models} models {on}, and on all "
            f"turns: Spearman {ranking.rho:.3f}, p {ranking.p:.2g} "
            f"({'every' if ranking.exact else 'drawn'} permutation)."
        )
    if found.models and len(found.models) < FEW_MODELS:
        lines.append(
            f"Few models: {len(found.models)} can rank alike by chance; a ranking that says "
            f"something takes {FEW_MODELS} or more."
        )
    return lines


_WITHIN = "reference_within_one"


def print_validation(found: Validation, stream: TextIO) -> None:
    """Sentences first, then the grids, then the pairs, then the ranking, where it is seen."""
    for line in sentences(found):
        print(line, file=stream)
    pairs = ("Pairs of experts", agreement_report.pairs_grid(found.study))
    for title, grid in [*grids(found), pairs]:
        print_grid(grid, title, stream)
    for line in ranking_sentences(found):
        print(line, file=stream)


def note(found: Validation) -> str:
    """The same as markdown, for the run's description."""
    said = [*sentences(found), *ranking_sentences(found)]
    parts = ["\n".join(f"- {line}" for line in said)]
    parts += [f"**{title}**\n\n{markdown(grid)}" for title, grid in grids(found)]
    return "\n\n".join(parts)


def metrics(found: Validation) -> dict[str, float]:
    """Metric name -> value: the agreement's, the labels', the ranking's."""
    figures = agreement_report.metrics(found.study)
    for e in found.pairs:
        figures[f"agreement/{e.metric}"] = e.value
    for e in found.beside:
        who = "consensus" if e.condition == CONSENSUS else e.condition
        figures[f"labels/{e.metric.removeprefix('reference_')}/{who}"] = e.value
    for name, ranking in found.rankings.items():
        figures[f"ranking/spearman_{name}"] = ranking.rho
        figures[f"ranking/p_{name}"] = ranking.p
        figures[f"items/ranked_models_{name}"] = float(ranking.models)
    return figures


def tables(found: Validation) -> dict[str, pd.DataFrame]:
    """Artifact name -> table, for the UI's table view."""
    named = {"experts.json": pairs_grid(found), "labels.json": labels_grid(found)}
    if found.models:
        named["models.json"] = models_grid(found)
    return {
        name: pd.DataFrame(list(grid.rows), columns=list(grid.header))
        for name, grid in named.items()
    }


def _shown(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.low):
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"
