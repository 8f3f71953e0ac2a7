"""Study 2 in its simplest form: does this conversation contain mental manipulation?

A zero-shot question with A for yes and B for no, one request a dialogue and condition,
answered greedily; the text decides, and p(YES) is kept beside it for figures that need
no threshold.

Source: SpeechMentalManip, section 4.1, without exemplars and votes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from core.metrics import binary, ranking
from core.metrics.estimate import Estimate
from core.modality import CONDITIONS as CONDITIONS
from core.parsing import Parsed, verdict
from core.planning import plan_answers, whole_number
from core.predictions import predictions
from core.prompts import Template, template
from core.protocol import Response
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
from core.tasks import PlannedRequest, TaskError, checked_settings

NAME = "manipulation"
MANIFEST = "dialogues"
LABELS = ("YES", "NO")
SETTINGS: Mapping[str, str] = {"max_new_tokens": "16"}

LETTERS = {"A": "YES", "B": "NO"}
"""What the options of the prompt stand for."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    label: (letter, f" {letter}") for letter, label in LETTERS.items()
}

METRICS = {
    **{
        name: binary.METRICS[name]
        for name in ("accuracy", "recall_yes", "specificity", "f1_yes", "macro_f1")
    },
    "accuracy_all": binary.METRICS_OVER_ALL["accuracy_all"],
}
"""Recall of YES and specificity are the study's per-set accuracies. The others of
`core.metrics.binary` are for reports: a run's figures should fit a screen."""


def prompts(settings: Mapping[str, str]) -> tuple[Template, ...]:
    """The question in its three conditions."""
    checked_settings(NAME, SETTINGS, settings)
    return tuple(_template(condition) for condition in CONDITIONS)


def _template(condition: str) -> Template:
    return template(f"manipulation/zero_shot_{condition.lower()}")


def plan(
    items: pd.DataFrame,
    condition: str,
    *,
    seed: int,
    settings: Mapping[str, str],
    audio: Mapping[str, str],
    model_digest: str,
) -> list[PlannedRequest]:
    """One greedy request a dialogue; see `core.tasks.Task.plan`."""
    if condition not in CONDITIONS:
        raise TaskError(f"{NAME}: expected a condition of {CONDITIONS}, found {condition!r}.")
    chosen = checked_settings(NAME, SETTINGS, settings)
    return plan_answers(
        items,
        condition,
        system=None,
        prompt=_template(condition),
        slots=lambda row: {"transcript": row["transcript"]},
        choices=CHOICES,
        max_new_tokens=whole_number(chosen, "max_new_tokens"),
        seed=seed,
        audio=audio,
        model_digest=model_digest,
    )


def predict(
    planned: Sequence[PlannedRequest], responses: Mapping[str, Response], items: pd.DataFrame
) -> pd.DataFrame:
    """`prediction` is the answer the text states; `expected` is p(YES)."""
    return predictions(
        planned,
        responses,
        items,
        labels=LABELS,
        group="item_id",
        parse=_verdict,
        expected=lambda shares: shares["YES"],
    )


def _verdict(text: str, *, cut: bool) -> Parsed[str]:
    return verdict(text, LETTERS, cut=cut)


def score(predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
    """`METRICS` and AUROC of each condition; accuracy difference and McNemar's p of each pair.

    Source: SpeechMentalManip, section 4.2 and Table 3.
    """
    cells = by_condition(predictions, CONDITIONS)
    found: list[Estimate] = []
    for condition, rows in cells.items():
        table = binary.counts(rows["gold"], rows["prediction"])
        found += of_condition(
            condition, table, METRICS, binary.why_undefined, resamples=resamples, seed=seed
        )
        found.append(_auroc(condition, rows, resamples=resamples, seed=seed))
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


def _auroc(condition: str, rows: pd.DataFrame, *, resamples: int, seed: int) -> Estimate:
    """AUROC of p(YES) over answered clips that have one, so that it rests on what accuracy does."""
    scored = rows[(rows["status"] == "ok") & rows["expected"].notna()]
    is_yes = np.asarray(scored["gold"] == "YES", dtype=bool)
    p_yes = scored["expected"].to_numpy()
    if is_yes.all() or not is_yes.any():
        reason = "no answered clip of each class has a p(YES)"
        nan = math.nan
        return Estimate("auroc", condition, nan, nan, nan, len(scored), len(rows), reason)
    interval = over_clips(
        lambda weights: ranking.auroc(is_yes, p_yes, weights),
        len(scored),
        resamples=resamples,
        seed=seed,
    )
    return estimate("auroc", condition, interval, n=len(scored), n_total=len(rows), reason=None)
