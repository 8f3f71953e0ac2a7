"""A prompt as a chat completion, and a chat completion as an answer.

The text is what the server's greedy (or seeded) decoding gives, unconstrained as
in every other runner. The label log-probabilities are exact where the server
reads them by token id (vLLM): the whole distribution, before any constraint. A
server that only lists its likeliest tokens gives lower bounds, and none at all
where a label is not in the list: unknown is not zero.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import soundfile

from containers.runtime.adapter import Clip, Prompt
from containers.runtime.clips import RATE_HZ, read_clip

# What a server may list at most: OpenAI's limit and vLLM's default.
TOP_LOGPROBS = 20
# vLLM's own name for a token in an answer, when asked to name them by id.
_TOKEN_ID = "token_id:"

# Names of departures from what was asked, kept with each response.
LIKELIEST_ONLY = "logprobs_of_likeliest_tokens_only"
LABEL_NOT_LISTED = "label_not_among_likeliest_tokens"
LONG_FORMS_LEFT_OUT = "forms_of_several_tokens_not_scored"
NO_LOGPROBS = "server_gives_no_logprobs"
NOT_LOGPROBS = "logprobs_sum_to_more_than_1"
# Some servers round to two decimals.
MOST_ABOVE_1 = 0.02
CONSTRAINED = "text_constrained_to_choices"


@dataclass
class Dialect:
    """What a server understands beyond the common ground.

    Attributes:
        model: name the server knows the model by.
        vllm: its version, or "" for another server.
        logprobs: it gives log-probabilities; cleared when it says that it does not.
        forms: surface form -> its token ids, where they are known (vLLM).
    """

    model: str
    vllm: str = ""
    logprobs: bool = True
    forms: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of the labels as far as a server told them."""

    logprobs: dict[str, float] | None
    mass: float | None
    fallbacks: tuple[str, ...] = ()


def payload(prompt: Prompt, dialect: Dialect) -> dict[str, Any]:
    """The body of a chat completion for a prompt."""
    messages: list[dict[str, Any]] = []
    if prompt.system:
        messages.append({"role": "system", "content": prompt.system})
    messages.append({"role": "user", "content": _content(prompt)})
    body: dict[str, Any] = {
        "model": dialect.model,
        "messages": messages,
        "max_tokens": prompt.max_new_tokens,
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        # Servers differ in how large a seed may be; all take 31 bits.
        "seed": prompt.seed % 2**31,
    }
    if prompt.choices and dialect.logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if ids := _single_ids(prompt.choices, dialect):
            body |= {"logprob_token_ids": ids, "return_tokens_as_token_ids": True}
    if is_constrained(prompt, dialect):
        assert prompt.choices is not None
        body["structured_outputs"] = {"choice": [forms[0] for forms in prompt.choices.values()]}
    return body


def is_constrained(prompt: Prompt, dialect: Dialect) -> bool:
    """Whether the text must be one of the labels: where their probabilities cannot be read by
    token id, a vLLM server is held to the choices, so that there is an answer to go by."""
    if not prompt.choices or not dialect.vllm:
        return False
    return not dialect.logprobs or any(
        not _single(forms, dialect) for forms in prompt.choices.values()
    )


def scores(
    choices: Mapping[str, Sequence[str]], first: Mapping[str, float], dialect: Dialect
) -> Scores:
    """Each label's log-probability from what the server listed at the first position.

    Args:
        choices: label -> surface forms.
        first: token (or "token_id:N") -> log p, as listed.

    Returns:
        `logprobs` None where any label was not listed; `mass` is of those that were.
    """
    if not first:
        return Scores(None, None, (NO_LOGPROBS,))
    if sum(math.exp(min(value, 1.0)) for value in first.values()) > 1 + MOST_ABOVE_1:
        return Scores(None, None, (NOT_LOGPROBS,))
    by_id = any(token.startswith(_TOKEN_ID) for token in first) and bool(dialect.forms)
    fallbacks = [] if by_id else [LIKELIEST_ONLY]
    found: dict[str, list[float]] = {}
    for label, forms in choices.items():
        single = _single(forms, dialect) if by_id else ()
        names = [f"{_TOKEN_ID}{i}" for i in single] if by_id else list(dict.fromkeys(forms))
        found[label] = [first[name] for name in names if name in first]
        if by_id and len(single) < len(_whole(forms, dialect)):
            fallbacks.append(LONG_FORMS_LEFT_OUT)
    listed = {label: _log_sum_exp(values) for label, values in found.items() if values}
    mass = min(1.0, sum(math.exp(value) for value in listed.values()))
    if len(listed) < len(choices):
        fallbacks.append(LABEL_NOT_LISTED)
    complete = listed if len(listed) == len(choices) else None
    return Scores(complete, mass, tuple(dict.fromkeys(fallbacks)))


def first_position(choice: Mapping[str, Any]) -> dict[str, float]:
    """Token -> log p at the first position of a choice; {} where the server listed none.

    -inf is a token without a probability and left out.

    Raises:
        ValueError: a log-probability that is none, or two of one token.
    """
    content = (choice.get("logprobs") or {}).get("content") or []
    if not content:
        return {}
    found: dict[str, float] = {}
    for entry in (content[0], *(content[0].get("top_logprobs") or [])):
        if "token" not in entry or "logprob" not in entry:
            continue
        token, logprob = str(entry["token"]), float(entry["logprob"])
        # The chosen token is listed twice, once as such.
        if math.isnan(logprob) or found.get(token, logprob) != logprob:
            raise ValueError(f"the log-probability of {token!r} is {logprob}")
        found[token] = logprob
    return {token: logprob for token, logprob in found.items() if logprob > -math.inf}


def _content(prompt: Prompt) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in prompt.parts:
        if isinstance(part, Clip):
            audio = {"data": _encoded(part.path), "format": "wav"}
            content.append({"type": "input_audio", "input_audio": audio})
        elif content and content[-1]["type"] == "text":
            # Neighbouring parts are one text, as they are in every adapter.
            content[-1]["text"] += part.text
        else:
            content.append({"type": "text", "text": part.text})
    return content


@lru_cache(maxsize=32)
def _encoded(path: str) -> str:
    """A clip as base64 of a 16-bit WAV: what every server's decoder reads, at half the bytes."""
    stream = io.BytesIO()
    soundfile.write(stream, read_clip(Path(path)).samples, RATE_HZ, subtype="PCM_16", format="WAV")
    return base64.b64encode(stream.getvalue()).decode("ascii")


def _whole(forms: Sequence[str], dialect: Dialect) -> set[tuple[int, ...]]:
    """The forms' token sequences, less those that begin with another one of them: a longer
    one is part of the shorter one's probability."""
    known = {dialect.forms[form] for form in forms if form in dialect.forms}
    return {
        ids
        for ids in known
        if not any(len(ids) > len(other) and ids[: len(other)] == other for other in known)
    }


def _single(forms: Sequence[str], dialect: Dialect) -> list[int]:
    return sorted(ids[0] for ids in _whole(forms, dialect) if len(ids) == 1)


def _single_ids(choices: Mapping[str, Sequence[str]], dialect: Dialect) -> list[int]:
    return sorted({i for forms in choices.values() for i in _single(forms, dialect)})


def _log_sum_exp(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values))
