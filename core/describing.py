"""Requests for what SSR rates: a description of the patient's state, some runs a turn.

The model hears the turn and reads its context, never its transcript and never the scale.
For comparison the same turns can be asked for a number directly (appendix B.3).

Source: CBT-Audio, section 3.1 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from core.modality import assert_modality
from core.parsing import rating
from core.parsing.answer import without_thinking
from core.parsing.refusal import is_refusal
from core.predictions import unusable
from core.prompts import Template, fill, template
from core.protocol import Request, Response, request_id
from core.seeds import seed_of
from core.tasks.distress import NO_CONTEXT

DESCRIPTIONS, SCORES = "descriptions", "scores"
PROMPTS = {DESCRIPTIONS: "ssr/describe", SCORES: "ssr/score"}
# One or two sentences; the study's own limit is in its table 4, which we do not have.
# "Distressed" says how somebody feels; "Rating: 3" does not.
WORDS_AROUND_A_NUMBER = 8
MAX_NEW_TOKENS = {DESCRIPTIONS: 128, SCORES: 16}


@dataclass(frozen=True)
class Run:
    """One question about one turn; `number` counts runs from 1."""

    request: Request
    item_id: str
    number: int


def plan(
    items: pd.DataFrame,
    audio: Mapping[str, str],
    *,
    kind: str,
    runs: int,
    temperature: float,
    top_p: float,
    seed: int,
    model_digest: str,
) -> list[Run]:
    """Every run of every turn that has a clip, all runs of a turn together.

    Args:
        items: item_id, context and transcript; the transcript only to check that no request
            holds it.
        audio: item id -> clip name.
        kind: DESCRIPTIONS or SCORES.

    Raises:
        ModalityError: a context that holds its turn's transcript.
    """
    prompt = template(PROMPTS[kind])
    planned = []
    for number in range(1, runs + 1):
        requests: dict[str, Request] = {}
        for row in items.to_dict("records"):
            item_id = str(row["item_id"])
            if item_id not in audio:
                continue
            request = _request(prompt, kind, audio[item_id], str(row["context"]))
            request = replace(
                request,
                temperature=temperature,
                top_p=top_p,
                seed=seed_of(seed, item_id, kind, str(number)),
            )
            requests[item_id] = replace(request, id=request_id(item_id, request, model_digest))
        assert_modality(
            requests, "AO", dict(zip(items["item_id"], items["transcript"], strict=True))
        )
        planned += [Run(request, item_id, number) for item_id, request in requests.items()]
    order = {item_id: place for place, item_id in enumerate(items["item_id"])}
    return sorted(planned, key=lambda run: (order[run.item_id], run.number))


def descriptions(
    planned: Sequence[Run], responses: Mapping[str, Response], model: str
) -> pd.DataFrame:
    """A row a run; no words where there was no whole answer, and then a reason.

    Args:
        model: name that the rows carry.
    """
    rows = []
    for run in planned:
        response = responses.get(run.request.id)
        text, status, reason = _words(response)
        rows.append((run.item_id, run.number, text, model, status, reason))
    columns = ["item_id", "run", "description", "model", "status", "reason"]
    return pd.DataFrame(rows, columns=columns).astype({"description": object, "reason": object})


def scores(planned: Sequence[Run], responses: Mapping[str, Response]) -> pd.DataFrame:
    """A row a run: item_id, run, score (1-5 or empty)."""
    rows = []
    for run in planned:
        response = responses.get(run.request.id)
        score = None
        if response is not None and unusable(response) is None:
            score = rating(response.text, cut=response.finish_reason == "length").value
        rows.append((run.item_id, run.number, score))
    return pd.DataFrame(rows, columns=["item_id", "run", "score"]).astype({"score": "Int64"})


def _request(prompt: Template, kind: str, clip: str, context: str) -> Request:
    shown = context if context.strip() else NO_CONTEXT
    return Request(
        id="",
        system=None,
        parts=({"audio": clip}, *fill(prompt, context=shown)),
        choices=None,
        max_new_tokens=MAX_NEW_TOKENS[kind],
    )


def _words(response: Response | None) -> tuple[str | None, str, str | None]:
    if fault := unusable(response):
        return None, fault.status, fault.reason
    assert response is not None
    if response.finish_reason == "length":
        return None, "truncated", "the description was cut at its limit"
    text = without_thinking(response.text).strip()
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    if not words:
        return None, "unparsed", f"no words in {text[:60]!r}" if text else "no words"
    if is_refusal(text):
        return None, "refused", text[:80]
    # Any string has a nearest anchor, so what is no description would get a label all the same.
    if len(words) < WORDS_AROUND_A_NUMBER and rating(text).value is not None:
        return None, "unparsed", f"a level, not a description: {text[:60]!r}"
    return text, "ok", None
