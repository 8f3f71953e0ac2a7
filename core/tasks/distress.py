"""Study 1: how distressed is the patient in this turn, from 1 to 5?

One request a turn and condition, answered greedily; the text decides, and the
distribution over the five levels is kept beside it.

Source: CBT-Audio, section 4.1 and appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from core.divergence import case_turns, cases_table, divergence, furthest
from core.exemplars import Selection, everything
from core.metrics import ordinal, tables
from core.metrics.estimate import Estimate
from core.modality import CONDITIONS as CONDITIONS
from core.parsing import rating, reversed_rating
from core.planning import plan_answers
from core.predictions import predictions
from core.prompts import Template, template
from core.protocol import Response
from core.rating_tables import comparisons_table, metrics_table
from core.scoring import by_condition, of_condition, of_pair, p_values, pairs_of
from core.stats import paired
from core.stats.bootstrap import difference
from core.task_settings import Setting, whole, word
from core.tasks import Beyond, PlannedRequest, Table, TaskError, checked_settings
from core.trajectories import changes_table, few_sessions, trajectory
from core.variants import (
    Variant,
    hearing_setting,
    on,
    prompts_setting,
    robustness_settings,
    words_of,
)
from core.variants import variants as variants_of
from core.variants.report import sections
from core.variants.tables import Measure

NAME = "distress"
MANIFEST = "turns"
LABELS = ("1", "2", "3", "4", "5")
WORDINGS = ("paper", "paraphrase_1", "paraphrase_2", "paraphrase_3", "reversed")
"""How it is asked; each but the first is a folder of core/prompts/distress/."""
REVERSED = "reversed"

SETTINGS: Mapping[str, Setting] = {
    "max_new_tokens": whole("16", "room for the answer's text", least=1),
    "wording": word("the words of the question; reversed: 1 is the most distressed", WORDINGS),
    "hearing": hearing_setting(),
    **robustness_settings(),
    "prompts": prompts_setting(WORDINGS),
    "prompts_on": on("conditions that are asked in other words, of those asked", CONDITIONS),
    "trajectories": word("true: distress over each session, and its changes", ("false", "true")),
    "divergence": whole("0", "how many turns to show where AO and TO lie furthest apart"),
}
BESIDE = (
    *("hearing", "robustness", "robustness_on", "prompts", "prompts_on"),
    *("trajectories", "divergence"),
)
WRITTEN: Mapping[str, tuple[str, ...]] = {}
COLUMNS: tuple[str, ...] = ()

CHOICES: Mapping[str, tuple[str, ...]] = {label: (label, f" {label}") for label in LABELS}
"""With and without a space before it: tokenizers differ in which one begins an answer."""

NO_CONTEXT = "(no earlier turns)"
"""Shown where there is no context; see core/prompts/NOTES.md."""

REVERSED_CHOICES = {
    label: CHOICES[turned] for label, turned in zip(LABELS, LABELS[::-1], strict=True)
}
"""A label is always the level of distress, 5 the highest: on the scale turned round the label 5
is written 1, so that distributions need no mapping and a stated number does."""

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
    """System prompt and the three user prompts, of every wording that is asked."""
    chosen = checked_settings(NAME, SETTINGS, settings)
    asked = dict.fromkeys((chosen["wording"], *words_of(chosen["prompts"])))
    return (
        template("distress/system"),
        *(_prompt(wording, name) for wording in asked for name in CONDITIONS),
    )


def _prompt(wording: str, condition: str) -> Template:
    folder = "distress" if wording == WORDINGS[0] else f"distress/{wording}"
    return template(f"{folder}/{condition.lower()}")


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
        prompt=_prompt(chosen["wording"], condition),
        slots=lambda row: {
            "context": row["context"] if row["context"].strip() else NO_CONTEXT,
            "transcript": row["transcript"],
        },
        choices=REVERSED_CHOICES if chosen["wording"] == REVERSED else CHOICES,
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
    """`prediction` is the level the text states; `expected` the mean of the distribution.

    Both are levels of distress, 5 the highest, also where the question had it the other way.
    """
    chosen = checked_settings(NAME, SETTINGS, settings or {})
    return predictions(
        planned,
        responses,
        items,
        labels=LABELS,
        group="session_id",
        parse=reversed_rating if chosen["wording"] == REVERSED else rating,
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


def variants(settings: Mapping[str, str], conditions: Sequence[str]) -> tuple[Variant, ...]:
    """What hearing, robustness and prompts ask for; see `core.variants`."""
    chosen = checked_settings(NAME, SETTINGS, settings)
    if int(chosen["divergence"]) and (absent := [c for c in CONDITIONS if c not in conditions]):
        raise TaskError(
            f"divergence: it sets AO, AT and TO side by side, and conditions leaves out "
            f"{', '.join(absent)}."
        )
    return variants_of(chosen, conditions)


MEASURE = Measure(
    name="mae",
    metric=ordinal.mean_absolute_error,
    worse=1,
    count=tables.joint_counts,
    errors=paired.absolute_errors,
    test=lambda aligned, pairs: paired.compare_errors(aligned, pairs, sign_flips=True, resamples=0),
)


def beyond(
    predictions: pd.DataFrame,
    variants: pd.DataFrame,
    items: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    resamples: int,
    seed: int,
) -> Beyond:
    """Hearing, robustness, prompts, trajectories and divergence, as far as they are asked for."""
    chosen = checked_settings(NAME, SETTINGS, settings)
    cells = by_condition(predictions, CONDITIONS)
    drawn = {"resamples": resamples, "seed": seed}
    asked = variants_of(chosen, list(cells))
    found = sections(asked, cells, variants, MEASURE, **drawn)
    if asked:
        of_variants = by_condition(variants, [variant.name for variant in asked])
        every = metrics_table(of_variants, **drawn)
        found.tables.append(Table("variants", "every metric of the variants", every, shown=False))
    if chosen["trajectories"] == "true":
        turns = trajectory(cells, items)
        followed = changes_table(cells, turns, **drawn)
        found.notes += few_sessions(turns)
        found.tables += [
            Table("changes", "trajectories: changes from turn to turn, as labelled", followed),
            Table("trajectories", "distress over each session", turns, shown=False),
        ]
    if most := int(chosen["divergence"]):
        apart = divergence(cells, items)
        found.tables += [
            Table("cases", "audio and words: turns like the study's cases", cases_table(apart)),
            Table("furthest", "audio and words furthest apart", furthest(apart, most)),
            Table("case_turns", "turns like a case", case_turns(apart), shown=False),
            Table("divergence", "every turn's three ratings", apart, shown=False),
        ]
    return found


def notes(
    settings: Mapping[str, str],
    selection: Selection,
    conditions: Sequence[str],
    clips_per_prompt: int,
) -> list[str]:
    """Nothing beyond the figures."""
    return []
