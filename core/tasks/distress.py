"""Study 1: how distressed is the patient in this turn, from 1 to 5?

One request a turn and condition, answered greedily; the text decides, and the
distribution over the five levels is kept beside it.

Source: CBT-Audio, section 4.1 and appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from core.exemplars import Selection, everything
from core.metrics import ordinal
from core.metrics.estimate import Estimate
from core.modality import CONDITIONS as CONDITIONS
from core.parsing import rating
from core.planning import plan_answers
from core.predictions import predictions
from core.prompts import Template, template
from core.protocol import Response
from core.rating_tables import comparisons_table, metrics_table
from core.scoring import by_condition, of_condition, of_pair, p_values, pairs_of
from core.stats import paired
from core.stats.bootstrap import difference
from core.task_settings import Setting, whole
from core.tasks import PlannedRequest, Table, TaskError, checked_settings

NAME = "distress"
MANIFEST = "turns"
LABELS = ("1", "2", "3", "4", "5")
SETTINGS: Mapping[str, Setting] = {
    "max_new_tokens": whole("16", "room for the answer's text", least=1)
}
COLUMNS: tuple[str, ...] = ()

CHOICES: Mapping[str, tuple[str, ...]] = {label: (label, f" {label}") for label in LABELS}
"""With and without a space before it: tokenizers differ in which one begins an answer."""

NO_CONTEXT = "(no earlier turns)"
"""Shown where there is no context; see core/prompts/NOTES.md."""

METRICS = {
    **{name: ordinal.METRICS[name] for name in ("mae", "spearman", "qwk", "rmse", "a1")},
    "mae_all": ordinal.METRICS_OVER_ALL["mae_all"],
}
"""The study's five over answered turns, and MAE over all of them. The others of
`core.metrics.ordinal` are for reports: a run's figures should fit a screen."""


def check(settings: Mapping[str, str]) -> None:
    """Raises TaskError for settings that do not fit."""
    checked_settings(NAME, SETTINGS, settings)


def select(items: pd.DataFrame, *, seed: int, settings: Mapping[str, str]) -> Selection:
    """Every turn is asked about."""
    return everything(items)


def prompts(settings: Mapping[str, str]) -> tuple[Template, ...]:
    """System prompt and the three user prompts."""
    checked_settings(NAME, SETTINGS, settings)
    return tuple(template(f"distress/{name}") for name in ("system", "ao", "at", "to"))


def plan(
    items: pd.DataFrame,
    condition: str,
    *,
    seed: int,
    settings: Mapping[str, str],
    audio: Mapping[str, str],
    model_digest: str,
    exemplars: pd.DataFrame | None = None,
    clips_per_prompt: int = 1,
) -> list[PlannedRequest]:
    """One greedy request a turn; see `core.tasks.Task.plan`. The study shows no exemplars."""
    if condition not in CONDITIONS:
        raise TaskError(f"{NAME}: expected a condition of {CONDITIONS}, found {condition!r}.")
    chosen = checked_settings(NAME, SETTINGS, settings)
    return plan_answers(
        items,
        condition,
        system=template("distress/system").text,
        prompt=template(f"distress/{condition.lower()}"),
        slots=lambda row: {
            "context": row["context"] if row["context"].strip() else NO_CONTEXT,
            "transcript": row["transcript"],
        },
        choices=CHOICES,
        max_new_tokens=int(chosen["max_new_tokens"]),
        seed=seed,
        audio=audio,
        model_digest=model_digest,
    )


def follow_up(
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
    items: pd.DataFrame,
    *,
    seed: int,
    settings: Mapping[str, str],
    audio: Mapping[str, str],
    model_digest: str,
    exemplars: pd.DataFrame | None = None,
    clips_per_prompt: int = 1,
) -> list[PlannedRequest]:
    """Nothing: one answer a turn is all the study asks for."""
    return []


def predict(
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
    items: pd.DataFrame,
    settings: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """`prediction` is the level the text states; `expected` the mean of the distribution."""
    return predictions(
        planned,
        responses,
        items,
        labels=LABELS,
        group="session_id",
        parse=rating,
        expected=lambda shares: sum(int(label) * share for label, share in shares.items()),
    )


def score(predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
    """`METRICS` of each condition; MAE difference and signed-rank p of each pair.

    Source: CBT-Audio, section 4.1.
    """
    cells = by_condition(predictions, CONDITIONS)
    found: list[Estimate] = []
    for condition, rows in cells.items():
        table = ordinal.counts(rows["gold"], rows["prediction"])
        found += of_condition(
            condition, table, METRICS, ordinal.why_undefined, resamples=resamples, seed=seed
        )
    if pairs := pairs_of(list(cells)):
        aligned = paired.align(cells)
        apart = difference(ordinal.mean_absolute_error)
        found += [
            of_pair(
                "mae",
                pair,
                paired.joint_table(aligned, *pair),
                apart,
                resamples=resamples,
                seed=seed,
            )
            for pair in pairs
        ]
        compared = paired.compare_errors(aligned, pairs, resamples=resamples, seed=seed)
        found += p_values("wilcoxon_p", compared, len(aligned.item_ids))
    return found


def report(predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Table]:
    """Every metric with intervals over turns and sessions, and the paired tests in full."""
    cells = by_condition(predictions, CONDITIONS)
    drawn = {"resamples": resamples, "seed": seed}
    tables = [Table("metrics", "every metric", metrics_table(cells, **drawn), shown=False)]
    if pairs := pairs_of(list(cells)):
        compared = comparisons_table(cells, pairs, **drawn)
        tables.append(Table("comparisons", "paired tests", compared, shown=False))
    return tables


def notes(
    settings: Mapping[str, str],
    selection: Selection,
    conditions: Sequence[str],
    clips_per_prompt: int,
) -> list[str]:
    """Nothing beyond the figures."""
    return []
