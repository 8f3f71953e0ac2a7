"""Telling a model that declines from one that answers badly."""

from __future__ import annotations

import re

_UNABLE = (
    r"(?:can't|cannot|can not|couldn't|won't|will not|unable to|not able to|not capable of"
    r"|don't have the ability to|not comfortable|refuse to|must decline|have to decline"
    r"|not appropriate for me|not qualified to)"
)
_REFUSAL = re.compile(
    rf"\b(?:i|i'm|i am|we)\b[^.!?\n]{{0,40}}\b{_UNABLE}"
    rf"|\bsorry\b[^.!?\n]{{0,40}}\b(?:{_UNABLE}|but i\b)"
    r"|\bas an? (?:ai|artificial intelligence|(?:large )?language model|llm|assistant)\b"
    r"|\b(?:i'm|i am) (?:just |only )?an? (?:ai|(?:large )?language model|assistant)\b"
    r"|\b(?:please|could you) (?:provide|upload|share|attach|send)\b[^.!?\n]{0,40}"
    r"\b(?:audio|clip|transcript|file|recording)"
    r"|\b(?:no|any) audio\b[^.!?\n]{0,20}\b(?:provided|attached|received|uploaded|included)"
    r"|^\W*unable to\b"
    r"|\bi (?:decline|refuse)\b",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether the model says that it will not or cannot answer.

    Args:
        text: cleaned, with straight apostrophes. Only asked of a text without an
            answer: "As an AI I feel nothing, but I would rate it 4" is an answer.
    """
    return _REFUSAL.search(text) is not None
