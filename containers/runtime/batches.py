"""Which requests share a forward pass.

Requests with the same exemplars stay together, then those of equal length, so
that little is padded; requests about one clip are neighbours, so that it is
encoded once. The longest come first: what does not fit shows at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from containers.runtime.card import Budget
from containers.runtime.prompts import clip_names
from core.protocol import Request, digest

# A cautious English rate for byte-pair vocabularies, and the densest audio encoder
# of the ten models: both only bound a batch, no answer depends on them.
CHARACTERS_PER_TOKEN = 3.5
AUDIO_TOKENS_PER_S = 25.0


@dataclass(frozen=True, slots=True)
class Sized:
    """The measures of a request; the request itself is read when its turn comes.

    Attributes:
        id: of the request.
        clips: its audio files in order, repeats kept.
        prefix: digest of the exemplars it begins with; "" for none.
        free_text: whether it has no labels to choose from.
        worded: whether it shows a transcript.
        audio_s: seconds of audio.
        tokens: estimated positions, answer included.
        read: gives the request.
    """

    id: str
    clips: tuple[str, ...]
    prefix: str
    free_text: bool
    worded: bool
    audio_s: float
    tokens: float
    read: Callable[[], Request]


def sized(
    request: Request, seconds: Mapping[str, float], read: Callable[[], Request] | None = None
) -> Sized:
    """Measure a request.

    Args:
        seconds: the length of each of its clips by name.
        read: reads the request again; None to keep it.
    """
    clips = tuple(map(sys.intern, clip_names(request)))
    audio_s = float(sum(seconds[name] for name in clips))
    texts = [request.system or "", *(part.get("text", "") for part in request.parts)]
    characters = sum(map(len, texts))
    tokens = characters / CHARACTERS_PER_TOKEN + audio_s * AUDIO_TOKENS_PER_S
    return Sized(
        id=request.id,
        clips=clips,
        prefix=_prefix(request),
        free_text=request.choices is None,
        worded=any(part.get("slot") == "transcript" for part in request.parts),
        audio_s=audio_s,
        tokens=tokens + request.max_new_tokens,
        read=read or (lambda: request),
    )


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
    longest_s = most_tokens = 0.0
    for entry in ordered:
        last = batches[-1] if batches else []
        longer_s, more_tokens = max(longest_s, entry.audio_s), max(most_tokens, entry.tokens)
        fits = _fits(len(last) + 1, longer_s, more_tokens, budget)
        if last and fits and _shares_prefix(last[0], entry):
            last.append(entry)
            longest_s, most_tokens = longer_s, more_tokens
        else:
            batches.append([entry])
            longest_s, most_tokens = entry.audio_s, entry.tokens
    return batches


def padded_tokens(batch: list[Sized]) -> float:
    """Positions of a batch once every member is as long as the longest."""
    return len(batch) * max(entry.tokens for entry in batch)


def _fits(items: int, longest_s: float, most_tokens: float, budget: Budget) -> bool:
    return (
        items <= budget.items
        and items * longest_s <= budget.audio_s
        and items * most_tokens <= budget.tokens
    )


def _order(entry: Sized) -> tuple[str, bool, float, tuple[str, ...], float, str]:
    return (
        entry.prefix,
        entry.free_text,
        -entry.audio_s,
        entry.clips,
        -entry.tokens,
        entry.id,
    )


def _shares_prefix(one: Sized, other: Sized) -> bool:
    return (one.prefix, one.free_text) == (other.prefix, other.free_text)


def _prefix(request: Request) -> str:
    if not request.prefix_parts:
        return ""
    return sys.intern(digest([request.system, *request.parts[: request.prefix_parts]]))
