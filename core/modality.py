"""What each condition withholds, checked on every request before it is sent.

AO is audio without the transcript, TO the transcript without audio, AT both. A
transcript that reaches an AO request through the context would make hearing look
better than it is, so that is looked for as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from core.protocol import Request
from core.tasks import TaskError

CONDITIONS = ("AO", "AT", "TO")

SHORTEST_LEAK_WORDS = 8
"""Words from which on a transcript found in another part counts as leaked.

People say "Yes." and "I don't know what to do." more than once, and a context that
holds an earlier one is no leak. Eight words are hardly ever repeated to the letter; a
builder that puts the current turn into its context does so with long turns too.
"""

SHOWN = 10
"""Faults spelled out in an error; the rest are counted."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


class ModalityError(TaskError):
    """Requests that show what their condition withholds, or conditions that cannot be paired."""


def assert_modality(
    requests: Mapping[str, Request], condition: str, transcripts: Mapping[str, str]
) -> None:
    """Check that each request shows what its condition allows and nothing else.

    Args:
        requests: by item id.
        transcripts: of the items asked about, by item id.

    Raises:
        ModalityError: naming each item, what it shows and what to do.
    """
    faults = [
        f"item {item_id}, {condition}: {fault}"
        for item_id, request in requests.items()
        if (fault := _fault(request, condition, transcripts[item_id]))
    ]
    _raise_if(faults)


def _fault(request: Request, condition: str, transcript: str) -> str | None:
    asked = request.parts[request.prefix_parts :]
    clips = sum("audio" in part for part in asked)
    shown = sum(part.get("slot") == "transcript" for part in asked)
    wanted = (int(condition != "TO"), int(condition != "AO"))
    if (clips, shown) != wanted:
        return (
            f"expected {wanted[0]} clips and {wanted[1]} transcripts in the request, "
            f"found {clips} and {shown}. Mend the task's plan."
        )
    spoken = _words(transcript)
    if not _is_told(spoken):
        return None
    before = [part.get("text", "") for part in request.parts[: request.prefix_parts]]
    # Hundreds of requests begin alike: their words are looked through at once.
    suspects = request.parts if spoken in _words_of_all(tuple(before)) else asked
    for part in suspects:
        if part.get("slot") != "transcript" and spoken in _words(part.get("text", "")):
            where = part.get("slot", "prompt")
            return (
                f"its transcript stands in the {where} too ({transcript[:60]!r}). The context "
                "must end before the current turn: correct the row or drop it."
            )
    return None


def holds_transcript(text: str, transcript: str) -> bool:
    """Whether a text holds a transcript's words in a row; never for one of under 8 words."""
    spoken = _words(transcript)
    return _is_told(spoken) and spoken in _words(text)


def _is_told(spoken: str) -> bool:
    # One space stands before each word, and one behind the last.
    return spoken.count(" ") - 1 >= SHORTEST_LEAK_WORDS


@lru_cache(maxsize=1024)
def _words(text: str) -> str:
    """The words of a text with a space around each; kept, since requests share most of theirs."""
    words = _WORD.findall(text.replace("’", "'").casefold())
    return f" {' '.join(words)} "


@lru_cache(maxsize=16)
def _words_of_all(texts: tuple[str, ...]) -> str:
    """The words of each text, a line each: no row of words goes over the end of one."""
    return "\n".join(map(_words, texts))


def assert_paired(conditions: Mapping[str, Mapping[str, Request]]) -> None:
    """Check that all conditions ask about the same items, in the same order and context.

    Args:
        conditions: condition -> item id -> request.

    Raises:
        ModalityError: naming the items.
    """
    (first, reference), *others = conditions.items()
    faults: list[str] = []
    for condition, requests in others:
        if list(requests) != list(reference):
            odd = sorted(set(requests) ^ set(reference))[:SHOWN]
            faults.append(
                f"{first} and {condition}: expected the same items in the same order, found "
                + (f"{', '.join(odd)} in one only." if odd else "another order.")
            )
            continue
        faults += [
            f"item {item_id}: expected the same context in {first} and {condition}."
            for item_id, request in requests.items()
            if _context(request) != _context(reference[item_id])
        ]
    _raise_if(faults)


def _context(request: Request) -> tuple[str | None, str]:
    slotted = (part["text"] for part in request.parts if part.get("slot") == "context")
    return request.system, "".join(slotted)


def _raise_if(faults: Sequence[str]) -> None:
    if faults:
        more = [f"and {len(faults) - SHOWN} more."] if len(faults) > SHOWN else []
        raise ModalityError("\n".join([*faults[:SHOWN], *more]))
