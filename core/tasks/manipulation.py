"""Study 2: does this conversation contain mental manipulation, by which tactic, in which words?

A labelled few are shown, then one question a dialogue and condition: A or B, five votes drawn
from its exact distribution. Dialogues found manipulative are asked for a tactic and a quote.

Source: SpeechMentalManip, section 4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from core.detection import scores, tables
from core.detection.questions import (
    PROMPTS,
    SERVANT_OR_VICTIM,
    Asking,
    answer_requests,
    ids_of,
    quote_request,
    shots_of,
    tactic_forms,
    tactic_request,
    used_templates,
    words_request,
)
from core.detection.quote import given_quote, is_empty, where_said
from core.detection.tactic import name_tactic
from core.detection.verdict import LABELS as LABELS
from core.detection.verdict import judge, needs_words
from core.exemplars import ExemplarError, Selection
from core.exemplars import select as selected
from core.manifest import is_nothing
from core.metrics.estimate import Estimate
from core.modality import CONDITIONS as CONDITIONS
from core.prompts import Template
from core.protocol import Part, Request, Response
from core.scoring import by_condition
from core.task_settings import Setting, text, whole, word
from core.tasks import Beyond, PlannedRequest, Table, TaskError, checked_settings
from core.variants import MISMATCHED, SILENCE, Variant, hearing_setting, robustness_settings
from core.variants import variants as variants_of
from core.variants.report import sections

NAME = "manipulation"
MANIFEST = "dialogues"
SETTINGS: Mapping[str, Setting] = {
    "prompt": word(
        "how it is asked: with examples, without, with definitions, or reasoned", PROMPTS
    ),
    "shots": Setting(
        "auto",
        "labelled dialogues shown first, half of each label; auto: 4, or 0 for zero_shot and cot",
        "a whole number, 0 or more, or auto",
        lambda said: said == "auto" or (said.isascii() and said.isdecimal()),
    ),
    "exemplars": text("", "their ids, comma-joined, in the order shown; else drawn by the seed"),
    "include_exemplars": word("true evaluates on the exemplars too", ("false", "true")),
    "swap": word("true: A is No; both: asked in both orders", ("false", "true", "both")),
    "tactic_scoring": word(
        "whole_label, or first_token as in the study", ("whole_label", "first_token")
    ),
    "max_new_tokens": whole("16", "room for the answer's text", least=1),
    "cot_tokens": whole("320", "room for a chain of thought", least=1),
    "hearing": hearing_setting((MISMATCHED, SILENCE)),
    **robustness_settings(),
}
"""Neutral speech is no way of hearing here: the study's clips are TTS themselves."""
BESIDE = ("hearing", "robustness", "robustness_on")
WRITTEN = {"prompt": ("cot",)}
COLUMNS = (
    *("votes", "paths", "position_bias", "tactic", "tactic_votes", "tactic_path"),
    *("tactic_reason", "tactic_shares", "gold_tactics", "quote", "quote_reason", "quote_retried"),
    *("quote_match", "quote_turn", "quote_speaker", "quote_ratio", "voices", "exemplar"),
    "fallbacks",
)
ASKED_ABOUT = ("item_id", "transcript")
"""Columns of the manifest that requests are made of."""
EXEMPLARS_AS_TRANSCRIPTS = "exemplars_as_transcripts"


def check(settings: Mapping[str, str]) -> None:
    """Raises TaskError for settings that do not fit the task or one another."""
    chosen = checked_settings(NAME, SETTINGS, settings)
    shots = shots_of(chosen)
    if shots % 2 and not ids_of(chosen):
        raise TaskError(f"shots: expected an even number, half of each label, found {shots}.")
    if chosen["prompt"] == "cot" and chosen["swap"] == "both":
        raise TaskError("swap: both needs probabilities, which cot has not; give true or false.")


def prompts(settings: Mapping[str, str]) -> tuple[Template, ...]:
    """Every template a run with these settings may use."""
    return used_templates(checked_settings(NAME, SETTINGS, settings))


def select(items: pd.DataFrame, *, seed: int, settings: Mapping[str, str]) -> Selection:
    """The dialogues asked about and the exemplars; see `core.exemplars`."""
    check(settings)
    chosen = checked_settings(NAME, SETTINGS, settings)
    try:
        return selected(
            items,
            shots=shots_of(chosen),
            ids=ids_of(chosen),
            seed=seed,
            include=chosen["include_exemplars"] == "true",
        )
    except ExemplarError as error:
        raise TaskError(str(error)) from error


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
    """The yes-or-no question of every dialogue; see `core.tasks.Task.plan`."""
    if condition not in CONDITIONS:
        raise TaskError(f"{NAME}: expected a condition of {CONDITIONS}, found {condition!r}.")
    asking = _asking(items, seed, settings, audio, model_digest, exemplars, clips_per_prompt)
    return answer_requests(asking, _rows(items, *ASKED_ABOUT), condition)


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
    """YES or NO in words where letters failed; tactic and quote of YES; a quote's one retry."""
    asking = _asking(items, seed, settings, audio, model_digest, exemplars, clips_per_prompt)
    rows = {str(row["item_id"]): row for row in _rows(items, *ASKED_ABOUT)}
    swapped = asking.chosen["swap"] == "true"
    more: list[PlannedRequest] = []
    for item_id, condition, entries in _by_item(planned):
        row, asked = rows[item_id], {entry.purpose: entry for entry in entries}
        if "tactic" in asked:
            # The verdict was YES, and its answers are not asked for again.
            if "quote_retry" not in asked and is_empty(responses.get(asked["quote"].request.id)):
                more.append(quote_request(asking, row, condition, short=True))
        elif needs_words(entries, responses):
            more.append(words_request(asking, row, condition))
        elif judge(entries, responses, swapped=swapped).prediction == "YES":
            more.append(tactic_request(asking, row, condition))
            more.append(quote_request(asking, row, condition, short=False))
    return more


def predict(
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
    items: pd.DataFrame,
    settings: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """One row a dialogue and condition: `prediction` is the votes' majority, `expected` p(YES)."""
    chosen = checked_settings(NAME, SETTINGS, settings or {})
    told = _rows(items, *ASKED_ABOUT, "label", "techniques", "voices")
    rows = {str(row["item_id"]): row for row in told}
    found = [
        _row(rows[item_id], condition, entries, responses, chosen)
        for item_id, condition, entries in _by_item(planned)
    ]
    return tables.typed(found, LABELS, COLUMNS)


def score(predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
    """Figures of each condition and pair; see `core.detection.scores`."""
    return scores.score(predictions, CONDITIONS, resamples=resamples, seed=seed)


def report(predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Table]:
    """The study's Tables 3 to 5 for each condition, and accuracy by voice and accent."""
    return tables.report(predictions, CONDITIONS, resamples=resamples, seed=seed)


def variants(settings: Mapping[str, str], conditions: Sequence[str]) -> tuple[Variant, ...]:
    """What hearing and robustness ask for; see `core.variants`."""
    return variants_of(checked_settings(NAME, SETTINGS, settings), conditions)


def beyond(
    predictions: pd.DataFrame,
    variants: pd.DataFrame,
    items: pd.DataFrame,
    *,
    settings: Mapping[str, str],
    resamples: int,
    seed: int,
) -> Beyond:
    """Hearing and robustness, as far as they are asked for."""
    cells = by_condition(predictions, CONDITIONS)
    asked = variants_of(checked_settings(NAME, SETTINGS, settings), list(cells))
    found = sections(asked, cells, variants, scores.MEASURE, resamples=resamples, seed=seed)
    if names := [variant.name for variant in asked]:
        every = scores.long_table(scores.score(variants, names, resamples=resamples, seed=seed))
        found.tables.append(Table("variants", "every metric of the variants", every, shown=False))
    return found


def notes(
    settings: Mapping[str, str],
    selection: Selection,
    conditions: Sequence[str],
    clips_per_prompt: int,
) -> list[str]:
    """What a reader of the figures has to know, a sentence each."""
    chosen = checked_settings(NAME, SETTINGS, settings)
    said = []
    shown = selection.exemplars
    if len(shown):
        labels = shown["label"].value_counts()
        said.append(
            f"{len(shown)} exemplars ({labels.get('YES', 0)} YES, {labels.get('NO', 0)} NO): "
            f"{', '.join(shown['item_id'])}."
        )
        if clips_per_prompt <= len(shown) and set(conditions) != {"TO"}:
            said.append(
                f"The model takes {clips_per_prompt} clips per prompt, so exemplars are shown as "
                "transcripts in every condition."
            )
        if chosen["include_exemplars"] == "true":
            said.append("The exemplars are evaluated too: these figures are too good.")
    twins = [f"{k} ({why})" for k, why in selection.excluded.items() if why != "an exemplar"]
    if twins:
        said.append(f"Not evaluated: {', '.join(twins)}.")
    if chosen["tactic_scoring"] == "first_token":
        said.append(
            "tactic_scoring=first_token cannot tell Playing Servant Role from Playing Victim Role: "
            f'both begin with "Playing" and are counted as {SERVANT_OR_VICTIM}.'
        )
    return said


def _asking(
    items: pd.DataFrame,
    seed: int,
    settings: Mapping[str, str],
    audio: Mapping[str, str],
    model_digest: str,
    exemplars: pd.DataFrame | None,
    clips_per_prompt: int,
) -> Asking:
    chosen = checked_settings(NAME, SETTINGS, settings)
    shown = items.head(0) if exemplars is None else exemplars
    return Asking(chosen, seed, audio, model_digest, shown, clips_per_prompt)


def _rows(items: pd.DataFrame, *columns: str) -> list[dict[Hashable, Any]]:
    """The items, row by row, with those of the columns they have."""
    kept = items[[column for column in columns if column in items]]
    # Out of a column of strings one text at a time takes longer than all of them at once.
    return kept.astype(object).to_dict("records")


def _by_item(
    planned: Sequence[PlannedRequest],
) -> Iterator[tuple[str, str, list[PlannedRequest]]]:
    """All requests of each dialogue and condition, in the order first planned."""
    place: dict[tuple[str, str], int] = {}
    for entry in planned:
        place.setdefault((entry.condition, entry.item_id), len(place))
    ordered = sorted(planned, key=lambda entry: place[entry.condition, entry.item_id])
    for key, entries in groupby(ordered, key=lambda entry: (entry.item_id, entry.condition)):
        yield *key, list(entries)


def _row(
    item: Mapping[Any, Any],
    condition: str,
    entries: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
    chosen: Mapping[str, str],
) -> dict[str, Any]:
    asked = {entry.purpose: entry for entry in entries}
    verdict = judge(entries, responses, swapped=chosen["swap"] == "true")
    first = responses.get(entries[0].request.id)
    came = [found for entry in entries if (found := responses.get(entry.request.id))]
    shares = verdict.shares or {}
    took = {name for response in came for name in response.fallbacks}
    before, own = _apart(entries[0].request)
    shown, played = _exemplars(before)
    if condition != "TO" and shown and not played:
        took.add(EXEMPLARS_AS_TRANSCRIPTS)
    return {
        "item_id": str(item["item_id"]),
        "prediction": verdict.prediction,
        "gold": item["label"],
        "condition": condition,
        "status": verdict.status,
        "reason": verdict.reason,
        "expected": verdict.expected,
        "choice_mass": first and first.choice_mass,
        **{f"p_{label}": shares.get(label) for label in LABELS},
        "text": first.text if first else "",
        "group_id": str(item["item_id"]),
        "seconds_given": first and first.audio_seconds,
        "seconds_used": first and first.audio_seconds_used,
        "latency_s": sum(r.latency_s or 0.0 for r in came) if came else None,
        "request_id": entries[0].request.id,
        "votes": _joined(vote or "-" for vote in verdict.votes),
        "paths": _joined(verdict.paths),
        "position_bias": verdict.position_bias,
        "gold_tactics": _given(item.get("techniques")),
        "voices": _given(item.get("voices")),
        "exemplar": any(part["audio"] in played for part in own if "audio" in part)
        or str(item["transcript"]) in shown,
        "fallbacks": _joined(sorted(took)),
        **_of_tactic(asked, responses, chosen),
        **_of_quote(asked, responses, str(item["transcript"])),
    }


def _given(cell: Any) -> Any:
    """A cell of the manifest, None where it is empty."""
    return None if is_nothing(cell) else cell


def _apart(request: Request) -> tuple[Sequence[Part], Sequence[Part]]:
    """The parts shown before the dialogue, and those about it."""
    return request.parts[: request.prefix_parts], request.parts[request.prefix_parts :]


def _exemplars(before: Sequence[Part]) -> tuple[list[str], list[str]]:
    """Transcripts and clips of exemplars."""
    shown = [part["text"] for part in before if part.get("slot") == "exemplar"]
    return shown, [part["audio"] for part in before if "audio" in part]


def _of_tactic(
    asked: Mapping[str, PlannedRequest],
    responses: Mapping[str, Response],
    chosen: Mapping[str, str],
) -> dict[str, Any]:
    if "tactic" not in asked:
        return {}
    request = asked["tactic"].request
    options = list(tactic_forms(chosen["tactic_scoring"]))
    found = name_tactic(responses.get(request.id), options, seed=request.seed)
    return {
        "tactic": found.named,
        "tactic_votes": _joined(found.votes),
        "tactic_path": found.path or None,
        "tactic_reason": found.reason,
        "tactic_shares": json.dumps(
            {option: round(share, 6) for option, share in (found.shares or {}).items()}
        ),
    }


def _of_quote(
    asked: Mapping[str, PlannedRequest], responses: Mapping[str, Response], transcript: str
) -> dict[str, Any]:
    if "quote" not in asked:
        return {}
    retry = asked.get("quote_retry")
    quote = given_quote(
        responses.get(asked["quote"].request.id),
        responses.get(retry.request.id) if retry else None,
        retried=retry is not None,
    )
    row: dict[str, Any] = {
        "quote": quote.text,
        "quote_reason": quote.reason,
        "quote_retried": quote.retried,
    }
    if quote.text:
        said = where_said(quote.text, transcript)
        row |= {
            "quote_match": said.match,
            "quote_turn": said.turn if said.turn is not None else math.nan,
            "quote_speaker": said.speaker,
            "quote_ratio": said.ratio,
        }
    return row


def _joined(words: Any) -> str | None:
    return ",".join(words) or None
