"""What the verdicts are worth: figures of each condition, and of pairs of conditions.

Beside the study's accuracies stand figures that need no threshold (AUROC, AUPRC,
calibration of p(YES)), since a low recall may be a threshold; how often the tactic is one of
the dialogue's, and how often the quote was said.

Source: SpeechMentalManip, section 4.2 and table 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.detection.questions import SERVANT_OR_VICTIM
from core.metrics import binary, ranking
from core.metrics.estimate import Estimate
from core.metrics.ordinal import share
from core.metrics.tactics import gold_tactics
from core.scoring import (
    by_condition,
    estimate,
    of_condition,
    of_pair,
    over_clips,
    p_values,
    pairs_of,
)
from core.stats import paired
from core.stats.bootstrap import difference
from core.variants.tables import Measure

Float = NDArray[np.float64]

METRICS = {
    **{
        name: binary.METRICS[name]
        for name in ("accuracy", "recall_yes", "specificity", "f1_yes", "macro_f1")
    },
    "accuracy_all": binary.METRICS_OVER_ALL["accuracy_all"],
}
"""Recall of YES and specificity are the study's per-set accuracies. The others of
`core.metrics.binary` are for reports: a run's figures should fit a screen."""

RANKING: dict[str, Callable[[NDArray[np.bool_], Float, Float | None], Float]] = {
    "auroc": ranking.auroc,
    "auprc": ranking.auprc,
    "calibration_error": ranking.calibration_error,
}


MEASURE = Measure(
    name="accuracy",
    metric=binary.accuracy,
    worse=-1,
    count=binary.joint_counts,
    errors=lambda aligned: np.stack(
        [paired.wrong_answer(aligned, cell, "answered") for cell in range(len(aligned.names))]
    ),
    test=paired.compare_answers,
)
"""What variants are compared by."""


def score(
    predictions: pd.DataFrame, conditions: Sequence[str], *, resamples: int, seed: int
) -> list[Estimate]:
    """`METRICS`, `RANKING`, tactic and quote of each condition; accuracy and McNemar of each pair.

    Args:
        predictions: as `core.tasks.manipulation.predict` gives them.
        conditions: all there are, in order.
    """
    cells = by_condition(predictions, conditions)
    found: list[Estimate] = []
    for condition, rows in cells.items():
        table = binary.counts(rows["gold"], rows["prediction"])
        found += of_condition(
            condition, table, METRICS, binary.why_undefined, resamples=resamples, seed=seed
        )
        found += _ranked(condition, rows, resamples=resamples, seed=seed)
        found += _evidence(condition, rows, resamples=resamples, seed=seed)
    if pairs := pairs_of(list(cells)):
        aligned = paired.align(cells)
        apart = difference(binary.accuracy)
        for first, second in pairs:
            one, two = (aligned.predicted[aligned.names.index(name)] for name in (first, second))
            joint = binary.joint_counts(aligned.gold, one, two)
            found.append(
                of_pair("accuracy", (first, second), joint, apart, resamples=resamples, seed=seed)
            )
        compared = paired.compare_answers(aligned, pairs, seed=seed)
        found += p_values("mcnemar_p", compared, len(aligned.item_ids))
    return found


def long_table(estimates: Sequence[Estimate]) -> pd.DataFrame:
    """Figures a row each, for files: the fields of `core.metrics.estimate.Estimate`."""
    return pd.DataFrame([asdict(found) for found in estimates])


def _ranked(condition: str, rows: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
    """Over answered clips that have a p(YES), so that they rest on what accuracy does."""
    scored = rows[(rows["status"] == "ok") & rows["expected"].notna()]
    is_yes = np.asarray(scored["gold"] == "YES", dtype=bool)
    p_yes = scored["expected"].to_numpy(dtype=np.float64)
    one_class = is_yes.all() or not is_yes.any()
    found = []
    for name, measure in RANKING.items():
        if not len(scored) or (one_class and name != "calibration_error"):
            reason = "no answered clip of each class has a p(YES)"
            found.append(_undefined(name, condition, len(scored), len(rows), reason))
            continue
        interval = over_clips(
            lambda weights, measure=measure: measure(is_yes, p_yes, weights),  # type: ignore[misc]
            len(scored),
            resamples=resamples,
            seed=seed,
        )
        n, n_total = len(scored), len(rows)
        found.append(estimate(name, condition, interval, n=n, n_total=n_total, reason=None))
    return found


def _evidence(condition: str, rows: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
    yes = rows[rows["prediction"] == "YES"]
    gold = yes["gold_tactics"].map(gold_tactics)
    # A clip that got no tactic is missing here, like an unanswered one elsewhere; "none" is a miss.
    labelled = yes[(gold.map(len) > 0) & yes["tactic"].notna()]
    hits = [
        _is_hit(tactic, tactics)
        for tactic, tactics in zip(labelled["tactic"], gold[labelled.index], strict=True)
    ]
    quoted = yes[yes["quote"].fillna("") != ""]
    said = [match != "absent" for match in quoted["quote_match"]]
    asked = rows[rows["position_bias"].notna()]["position_bias"].to_list()
    figures = [
        _mean(
            "tactic_hit",
            condition,
            hits,
            len(yes),
            "no clip predicted YES has both a gold tactic and a named one",
            resamples,
            seed,
        ),
        _mean(
            "quote_said",
            condition,
            said,
            len(yes),
            "no clip predicted YES has a quote",
            resamples,
            seed,
        ),
    ]
    if asked:
        figures.append(_mean("position_bias", condition, asked, len(rows), "", resamples, seed))
    return figures


def _is_hit(named: object, gold: Sequence[str]) -> bool:
    if named == SERVANT_OR_VICTIM:
        return any(tactic.startswith("Playing ") for tactic in gold)
    return named in gold


def _mean(
    name: str,
    condition: str,
    values: Sequence[float],
    n_total: int,
    why_none: str,
    resamples: int,
    seed: int,
) -> Estimate:
    if not values:
        return _undefined(name, condition, 0, n_total, why_none)
    each = np.asarray(values, dtype=np.float64)

    def mean(weights: Float | None) -> Float:
        weight = np.ones(len(each)) if weights is None else weights
        return share(weight @ each, weight.sum(-1))

    interval = over_clips(mean, len(each), resamples=resamples, seed=seed)
    return estimate(name, condition, interval, n=len(each), n_total=n_total, reason=None)


def _undefined(metric: str, condition: str, n: int, n_total: int, reason: str) -> Estimate:
    return Estimate(metric, condition, math.nan, math.nan, math.nan, n, n_total, reason)
