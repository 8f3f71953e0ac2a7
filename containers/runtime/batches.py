"""Which requests share a forward pass.

Requests with the same exemplars stay together, then those of equal length, so
that little is padded; requests about one clip are neighbours, so that it is
encoded once. The longest come first: what does not fit shows at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from containers.runtime.card import Budget
from containers.runtime.prompts import clip_names
from core.protocol import Request, digest

# A cautious English rate for byte-pair vocabularies, and the densest audio encoder
# of the ten models: both only bound a batch, no answer depends on them.
CHARACTERS_PER_TOKEN = 3.5
AUDIO_TOKENS_PER_S = 25.0


@dataclass(frozen=True)
class Sized:
    """A request with its length: seconds of audio and estimated positions, answer included."""

    request: Request
    audio_s: float
    tokens: float


def sized(request: Request, seconds: Mapping[str, float]) -> Sized:
    """Measure a request; `seconds` holds the length of each of its clips by name."""
    audio_s = float(sum(seconds[name] for name in clip_names(request)))
    texts = [request.system or "", *(part.get("text", "") for part in request.parts)]
    characters = sum(map(len, texts))
    tokens = characters / CHARACTERS_PER_TOKEN + audio_s * AUDIO_TOKENS_PER_S
    return Sized(request, audio_s, tokens + request.max_new_tokens)


def plan_batches(
    requests: Iterable[Sized], budget: Budget, *, together: bool = True
) -> list[list[Sized]]:
    """Batches in the order they are to be run; every request is in exactly one.

    Args:
        requests: in any order; the plan does not depend on it beyond ties.
        budget: bounds of a batch as it will be padded, every member as long as
            the longest. A request that exceeds them alone is a batch of one.
        together: False where the model takes one prompt at a time.
    """
    ordered = sorted(requests, key=_order)
    if not together:
        return [[entry] for entry in ordered]
    batches: list[list[Sized]] = []
    for entry in ordered:
        last = batches[-1] if batches else []
        if last and _shares_prefix(last[0], entry) and _fits([*last, entry], budget):
            last.append(entry)
        else:
            batches.append([entry])
    return batches


def padded_tokens(batch: list[Sized]) -> float:
    """Positions of a batch once every member is as long as the longest."""
    return len(batch) * max(entry.tokens for entry in batch)


def _fits(batch: list[Sized], budget: Budget) -> bool:
    padded_s = len(batch) * max(entry.audio_s for entry in batch)
    return (
        len(batch) <= budget.items
        and padded_s <= budget.audio_s
        and padded_tokens(batch) <= budget.tokens
    )


def _order(entry: Sized) -> tuple[str, bool, float, list[str], float, str]:
    request = entry.request
    free_text = request.choices is None
    return (
        _prefix(request),
        free_text,
        -entry.audio_s,
        clip_names(request),
        -entry.tokens,
        request.id,
    )


def _shares_prefix(one: Sized, other: Sized) -> bool:
    return _prefix(one.request) == _prefix(other.request) and (one.request.choices is None) == (
        other.request.choices is None
    )


def _prefix(request: Request) -> str:
    if not request.prefix_parts:
        return ""
    return digest([request.system, *request.parts[: request.prefix_parts]])
