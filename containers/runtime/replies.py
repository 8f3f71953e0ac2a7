"""From an adapter's answer to the response that is written: never a number that is none."""

from __future__ import annotations

import math
from dataclasses import dataclass

from containers.runtime.adapter import Answer, Prompt
from core.protocol import Response, Status

# The log of the smallest double: probability zero stays zero, and JSON has no -inf.
LEAST_LOGPROB = -745.0
SECONDS_TOLERANCE = 0.2
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
        reason=" ".join(reason.split())[:REASON_LENGTH],
        finish_reason="error",
        card=stamp.card,
        image=stamp.image,
        precision=stamp.precision,
    )


def reply(
    prompt: Prompt, fallbacks: tuple[str, ...], answer: Answer, latency_s: float, stamp: Stamp
) -> Response:
    """The response to one prompt.

    `truncated` where free text ended at its limit, or where less audio was used
    than was given; text and probabilities are kept, the status says how far to
    trust them. `model_error` where a probability is not a number.
    """
    if reason := _not_numbers(prompt, answer):
        return failure(prompt.id, "model_error", reason, stamp)
    given_s = float(sum(clip.seconds for clip in prompt.clips))
    cut = _cut(prompt, answer, given_s)
    logprobs = answer.choice_logprobs
    return Response(
        id=prompt.id,
        status="truncated" if cut else "ok",
        text=answer.text,
        reason=cut,
        finish_reason=answer.finish_reason,
        choice_logprobs=logprobs and {k: max(v, LEAST_LOGPROB) for k, v in logprobs.items()},
        choice_mass=answer.choice_mass,
        prompt_tokens=answer.prompt_tokens,
        audio_seconds=given_s,
        audio_seconds_used=answer.audio_seconds_used,
        latency_s=latency_s,
        card=stamp.card,
        image=stamp.image,
        precision=stamp.precision,
        fallbacks=tuple(dict.fromkeys((*fallbacks, *answer.fallbacks))),
    )


def _not_numbers(prompt: Prompt, answer: Answer) -> str | None:
    if prompt.choices is None:
        return None
    logprobs, mass = answer.choice_logprobs, answer.choice_mass
    if logprobs is None or mass is None or set(logprobs) != set(prompt.choices):
        return f"expected log-probabilities of {sorted(prompt.choices)}, found {logprobs}."
    # -inf is a probability of zero; +inf and NaN are no probability.
    if any(math.isnan(value) or value > 1e-3 for value in logprobs.values()):
        return f"the label log-probabilities are not log-probabilities: {logprobs}."
    if not -1e-3 <= mass <= 1 + 1e-3:
        return f"the labels' probability mass is {mass}, expected a number in [0, 1]."
    return None


def _cut(prompt: Prompt, answer: Answer, given_s: float) -> str | None:
    if given_s - answer.audio_seconds_used > SECONDS_TOLERANCE * len(prompt.clips):
        return f"used {answer.audio_seconds_used:.1f} s of {given_s:.1f} s of audio."
    if prompt.choices is None and answer.finish_reason == "length":
        return f"the text ended at its limit of {prompt.max_new_tokens} tokens."
    return None
