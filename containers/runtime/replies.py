"""From an adapter's answer to the response that is written: never a number that is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

from containers.runtime.adapter import Answer, Prompt
from core.protocol import Response, Status

# The log of the smallest double: probability zero stays zero, and JSON has no -inf.
LEAST_LOGPROB = -745.0
SECONDS_TOLERANCE = 0.2
# What rounding may add to one probability, and to the sum of a few.
TOLERANCE = 1e-3
MOST_OVER = 1e-2
REASON_LENGTH = 500


@dataclass(frozen=True)
class Stamp:
    """What every response of a run carries: the card's digest, image and precision."""

    card: str
    image: str
    precision: str


def failure(request_id: str, status: Status, reason: str, stamp: Stamp) -> Response:
    """A failure on one line, with what the run knows about itself."""
    return Response(
        id=request_id,
        status=status,
        reason=whole(" ".join(reason.split())[:REASON_LENGTH]),
        finish_reason="error",
        card=stamp.card,
        image=stamp.image,
        precision=stamp.precision,
    )


def whole(text: str) -> str:
    """The text with "?" for half a surrogate pair, which no table and no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def reply(
    prompt: Prompt, fallbacks: tuple[str, ...], answer: Answer, latency_s: float, stamp: Stamp
) -> Response:
    """The response to one prompt.

    `truncated` where free text ended at its limit, or where less audio was used
    than was given; text and probabilities are kept, the status says how far to
    trust them. `model_error` where the answer is not one: a probability or a length
    that is no number, a text that is no text.
    """
    if reason := _malformed(answer) or _not_numbers(prompt, answer):
        return failure(prompt.id, "model_error", reason, stamp)
    given_s = float(sum(clip.seconds for clip in prompt.clips))
    cut = _cut(prompt, answer, given_s)
    logprobs = answer.choice_logprobs
    return Response(
        id=prompt.id,
        status="truncated" if cut else "ok",
        text=whole(answer.text),
        reason=cut,
        finish_reason=answer.finish_reason,
        # As floats and ints of Python: JSON knows no numpy scalar.
        choice_logprobs=logprobs and {k: max(float(v), LEAST_LOGPROB) for k, v in logprobs.items()},
        choice_mass=None if answer.choice_mass is None else float(answer.choice_mass),
        prompt_tokens=int(answer.prompt_tokens),
        audio_seconds=given_s,
        audio_seconds_used=float(answer.audio_seconds_used),
        latency_s=latency_s,
        card=stamp.card,
        image=stamp.image,
        precision=stamp.precision,
        fallbacks=tuple(dict.fromkeys((*fallbacks, *answer.fallbacks))),
    )


def _malformed(answer: object) -> str | None:
    """Why what an adapter gave is no answer at all: nothing of it is then believed."""
    if not isinstance(answer, Answer):
        return f"expected an Answer, the adapter gave {type(answer).__name__}."
    if not isinstance(answer.text, str):
        return f"expected text, the adapter gave {answer.text!r}."
    if not isinstance(answer.finish_reason, str):
        return f"expected a finish reason, the adapter gave {answer.finish_reason!r}."
    seconds = answer.audio_seconds_used
    if not (_is_number(seconds) and 0 <= seconds < math.inf):
        return f"expected seconds of audio used, 0 or more, the adapter gave {seconds!r}."
    tokens = answer.prompt_tokens
    if not isinstance(tokens, Integral) or tokens < 0:
        return f"expected a count of prompt tokens, the adapter gave {tokens!r}."
    if not isinstance(answer.fallbacks, tuple):
        return f"expected a tuple of fallbacks, the adapter gave {answer.fallbacks!r}."
    return None


def _not_numbers(prompt: Prompt, answer: Answer) -> str | None:
    if prompt.choices is None:
        return None
    logprobs, mass = answer.choice_logprobs, answer.choice_mass
    if logprobs is None or mass is None or set(logprobs) != set(prompt.choices):
        return f"expected log-probabilities of {sorted(prompt.choices)}, found {logprobs}."
    if all(value == -math.inf for value in logprobs.values()):
        return f"none of the labels {sorted(logprobs)} has any probability."
    # -inf is a probability of zero; +inf and NaN are no probability.
    if not all(_is_number(value) and value <= TOLERANCE for value in logprobs.values()):
        return f"the label log-probabilities are not log-probabilities: {logprobs}."
    if not _is_number(mass) or not -TOLERANCE <= mass <= 1 + TOLERANCE:
        return f"the labels' probability mass is {mass}, expected a number in [0, 1]."
    if (total := sum(math.exp(value) for value in logprobs.values())) > 1 + MOST_OVER:
        return f"the labels' probabilities sum to {total:.4f}, expected 1 at most."
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def _cut(prompt: Prompt, answer: Answer, given_s: float) -> str | None:
    if given_s - answer.audio_seconds_used > SECONDS_TOLERANCE * len(prompt.clips):
        return f"used {answer.audio_seconds_used:.1f} s of {given_s:.1f} s of audio."
    if prompt.choices is None and answer.finish_reason == "length":
        return f"the text ended at its limit of {prompt.max_new_tokens} tokens."
    return None
