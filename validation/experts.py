"""What experts say about a study's labels: their agreement in pairs, and each beside the labels.

Study 1 (CBT-Audio, section 3.2 and appendix C): tables 5 and 6 and the ranking of
models. The group's alpha and the pairs' kappas are `validation.agreement`'s, the
consensus `validation.consensus`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.metrics.estimate import Estimate
from core.seeds import generator
from validation.agreement import resampled_counts, undefined, with_interval
from validation.consensus import consensus_against_reference, median_labels
from validation.kappa import concordance

Float = NDArray[np.float64]
CONSENSUS = "consensus (median)"
PAIRWISE = ("pairwise_exact", "pairwise_within_one", "pairwise_mae", "pairwise_qwk")


def pairwise_means(values: Float, *, resamples: int = 1000, seed: int = 0) -> list[Estimate]:
    """Equal ratings, ratings at most one level apart, MAE and QWK, each a mean over pairs.

    Pairs count alike, however many items they share (appendix C.1: "averaged over the
    ten annotator pairs"); a pair for which a figure is undefined is left out of its mean.

    Args:
        values: (items, raters), NaN for missing.

    Returns:
        The four of `PAIRWISE`; intervals are over items, drawn once for all pairs. `n`
        counts the items that two raters or more rated.
    """
    total = len(values)
    shared = int(((~np.isnan(values)).sum(1) >= 2).sum())
    if not shared:
        return [undefined(each, "all", 0, total, "no item has two ratings") for each in PAIRWISE]
    draws = resampled_counts(np.ones(total, int), resamples, generator(seed, "experts", "pairs"))
    # The first row is the table itself, each item once.
    weights = np.concatenate([np.ones((1, total)), draws])
    by_pair: list[list[Float]] = [[] for _ in PAIRWISE]
    for first, second in combinations(values.T, 2):
        both = ~np.isnan(first) & ~np.isnan(second)
        if not both.any():
            continue
        mine = weights[:, both]
        gap = np.abs(first - second)[both]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = [mine @ cost / mine.sum(1) for cost in (gap == 0, gap <= 1, gap)]
        pairs = np.stack([first[both], second[both]], 1)
        for figures, found in zip(by_pair, [*means, concordance(pairs, mine)], strict=True):
            figures.append(found)
    found = []
    for metric, figures in zip(PAIRWISE, by_pair, strict=True):
        mean = _mean_of_defined(np.stack(figures))
        if np.isnan(mean[0]):
            reason = "every two raters always gave the same one rating"
            found.append(undefined(metric, "all", shared, total, reason))
        else:
            empty = undefined(metric, "all", shared, total, "")
            found.append(with_interval(empty, float(mean[0]), mean[1:]))
    return found


def _mean_of_defined(figures: Float) -> Float:
    """(pairs, draws) -> (draws), over the pairs that have a figure; NaN where none has."""
    defined = ~np.isnan(figures)
    mean = np.full(figures.shape[1], np.nan)
    np.divide(np.nansum(figures, 0), defined.sum(0), out=mean, where=defined.any(0))
    return mean


def against_labels(
    values: Float, raters: Sequence[str], labels: Float, *, resamples: int = 1000, seed: int = 0
) -> list[Estimate]:
    """Within-one, MAE and Spearman's rho of each rater and of the consensus (table 6).

    Args:
        values: (items, raters), NaN for missing.
        raters: names, the `condition` of their estimates; the consensus is `CONSENSUS`.
        labels: (items,) the labels that are judged, NaN for missing.
    """
    columns = [*zip(raters, values.T, strict=True), (CONSENSUS, median_labels(values))]
    return [
        estimate
        for name, ratings in columns
        for estimate in consensus_against_reference(
            ratings, labels, condition=name, resamples=resamples, seed=seed
        )
    ]


@dataclass(frozen=True)
class ModelError:
    """The mean absolute error of a model on the turns it answered.

    Attributes:
        full: against the labels, on every turn; `n_full` of `asked` were answered.
        labels: against the labels, on the turns that experts rated.
        experts: against the experts' median, on the same turns; `n_experts` answered.
    """

    model: str
    full: float
    labels: float
    experts: float
    n_full: int
    asked: int
    n_experts: int


def model_error(
    model: str,
    predictions: Mapping[str, float],
    labels: Mapping[str, float],
    medians: Mapping[str, float],
) -> ModelError:
    """A model's errors on the full set and on the experts' subset.

    The paper ranks models by "the full SSR reference labels versus the expert-labeled
    subset" and does not say which labels the subset is scored against; we give both.

    Args:
        predictions: turn -> answer, NaN where there is none.
        labels: turn -> label, of every turn asked.
        medians: turn -> the experts' median; turns that were not asked do not count.
    """
    turns = list(labels)
    answer = np.array([predictions.get(turn, np.nan) for turn in turns], dtype=float)
    label = np.array([labels[turn] for turn in turns], dtype=float)
    median = np.array([medians.get(turn, np.nan) for turn in turns], dtype=float)
    answered = ~np.isnan(answer)
    rated = answered & ~np.isnan(median)
    return ModelError(
        model,
        full=_error(answer[answered], label[answered]),
        labels=_error(answer[rated], label[rated]),
        experts=_error(answer[rated], median[rated]),
        n_full=int(answered.sum()),
        asked=len(turns),
        n_experts=int(rated.sum()),
    )


def _error(answers: Float, labels: Float) -> float:
    return float(np.abs(answers - labels).mean()) if len(answers) else float("nan")
