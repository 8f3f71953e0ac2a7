"""From responses to the predictions table: one row an item and condition, whatever came back.

The text decides the prediction; the distribution over the labels stands beside it. A
row without a prediction has a status and a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from core.parsing import Parsed
from core.protocol import Response

if TYPE_CHECKING:
    from core.tasks import PlannedRequest

HEARD_TOLERANCE_S = 0.2
"""An encoder's last, unfilled frame: less than this unheard is not a cut."""

_TEXTS = ("item_id", "condition", "status", "reason", "text", "group_id", "request_id")


class Parser(Protocol):
    """Reads an answer's text; `cut` says that it ended at its limit of tokens."""

    def __call__(self, text: str, *, cut: bool) -> Parsed[Any]: ...


def labels_of(columns: Iterable[str]) -> list[str]:
    """The labels a predictions table has a p_<label> column for, in their order."""
    return [name.removeprefix("p_") for name in columns if name.startswith("p_")]


def predictions(
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
    items: pd.DataFrame,
    *,
    labels: Sequence[str],
    group: str,
    parse: Parser,
    expected: Callable[[Mapping[str, float]], float],
) -> pd.DataFrame:
    """The table of a task that asks each item once a condition.

    Args:
        planned: requests whose purpose is "answer" make rows, others are left to their task.
        responses: by request id. A request without one is a model_error.
        items: with item_id, label and the column `group`.
        labels: in order; each has a column `p_<label>`.
        group: column of items that names what an item belongs to.
        parse: reads the text.
        expected: one number from the distribution over labels.

    Returns:
        Columns item_id, prediction, gold, condition, status, reason, expected, choice_mass,
        p_<label>..., text, group_id, seconds_given, seconds_used, latency_s, request_id.

    A clip that was not heard to its end ("truncated") gives no prediction: an answer about
    half a turn is not about the turn. A text cut at its limit gives one where the answer
    was complete before the cut.
    """
    golds = dict(zip(items["item_id"], items["label"], strict=True))
    groups = dict(zip(items["item_id"], items[group], strict=True))
    rows: list[dict[str, Any]] = []
    for entry in planned:
        if entry.purpose != "answer":
            continue
        response = responses.get(entry.request.id)
        outcome = _outcome(response, parse)
        shares = distribution(response, labels)
        rows.append(
            {
                "item_id": entry.item_id,
                "prediction": outcome.value,
                "gold": golds[entry.item_id],
                "condition": entry.condition,
                "status": outcome.status,
                "reason": outcome.reason,
                "expected": expected(shares) if shares else math.nan,
                "choice_mass": response and response.choice_mass,
                **{f"p_{label}": shares.get(label) for label in labels},
                "text": response.text if response else "",
                "group_id": str(groups[entry.item_id]),
                "seconds_given": response and response.audio_seconds,
                "seconds_used": response and response.audio_seconds_used,
                "latency_s": response and response.latency_s,
                "request_id": entry.request.id,
            }
        )
    return _typed(rows, labels)


def distribution(response: Response | None, labels: Sequence[str]) -> dict[str, float]:
    """Probabilities of the labels at the first answer position, made to sum to 1.

    A label the response does not name has probability 0: an endpoint gives its likeliest
    tokens only. Empty where there is no response or none of the labels has any probability.
    """
    logprobs = (response.choice_logprobs if response else None) or {}
    found = [logprobs.get(label, -math.inf) for label in labels]
    if not any(map(math.isfinite, found)):
        return {}
    # Less the largest, so that labels of tiny mass do not all round to 0.
    most = max(found)
    weights = [math.exp(logprob - most) for logprob in found]
    total = sum(weights)
    return {label: weight / total for label, weight in zip(labels, weights, strict=True)}


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: a status, its reason, and the value that was read."""

    status: str
    reason: str | None
    value: Any = None


def _outcome(response: Response | None, parse: Parser) -> Outcome:
    if fault := unusable(response):
        return fault
    assert response is not None
    parsed = parse(response.text, cut=response.finish_reason == "length")
    return Outcome(parsed.status, parsed.reason, parsed.value)


def unusable(response: Response | None) -> Outcome | None:
    """Why an answer cannot be read at all; None where it can.

    A clip that was not heard to its end is such a reason, a text cut at its limit is not.
    """
    if response is None:
        return Outcome("model_error", "no response")
    if response.status not in ("ok", "truncated"):
        # Its text may be an error's, and an error may hold a digit.
        return Outcome(response.status, response.reason or "no reason given")
    if response.status == "truncated" and not _only_text_was_cut(response):
        return Outcome("truncated", response.reason or "the clip was not heard to its end")
    return None


def _only_text_was_cut(response: Response) -> bool:
    unheard = (response.audio_seconds or 0.0) - (response.audio_seconds_used or 0.0)
    return response.finish_reason == "length" and unheard <= HEARD_TOLERANCE_S


def _typed(rows: Sequence[dict[str, Any]], labels: Sequence[str]) -> pd.DataFrame:
    columns = [
        *("item_id", "prediction", "gold", "condition", "status", "reason", "expected"),
        *("choice_mass", *(f"p_{label}" for label in labels), "text", "group_id"),
        *("seconds_given", "seconds_used", "latency_s", "request_id"),
    ]
    kinds = dict.fromkeys(columns, "float64") | dict.fromkeys(_TEXTS, "object")
    numbered = all(label.isdecimal() for label in labels)
    kinds |= dict.fromkeys(("prediction", "gold"), "Int64" if numbered else "object")
    # A column at a time: a frame made of rows is made again for the type of each column.
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=kinds[name]) for name in columns}
    )
