"""Clips whose words are not those of their transcript, by offline speech recognition.

A shifted time or another cut of the same video shows as a clip that says something
else, often what the turn before or after says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from core.audio import Samples, read_clip
from core.datasets.cutting import Finding
from core.speech.listening import word_errors, words

# Whisper tiny mishears a fifth of the words of a poor recording; over half is another text.
RATE = 0.5
# Of two or three words one wrong one is half of them.
LEAST_WORDS = 4


def misheard(
    folder: Path, items: pd.DataFrame, recognise: Callable[[Samples], str]
) -> list[Finding]:
    """A finding for each clip in which most words are others, with the turn it sounds like.

    Args:
        items: manifest rows; `audio` relative to the folder.
    """
    findings = []
    for row in items.to_dict("records"):
        if len(words(row["transcript"])) < LEAST_WORDS:
            continue
        heard = recognise(read_clip(folder / row["audio"]).samples)
        rate = _rate(row["transcript"], heard)
        if rate <= RATE:
            continue
        found = f"{rate:.0%} of the words differ, heard {heard[:120]!r}"
        others = items[
            (items["session_id"] == row["session_id"]) & (items["item_id"] != row["item_id"])
        ]
        rates = [_rate(other, heard) for other in others["transcript"]]
        near = min(zip(rates, others["item_id"], strict=True), default=(1.0, ""))
        if near[0] <= RATE:
            found += f", which is what {near[1]} says"
        session_id = str(row["session_id"])
        findings.append(
            Finding(str(row["item_id"]), session_id, "heard_otherwise", found, 1, kept=True)
        )
    return findings


def _rate(transcript: str, heard: str) -> float:
    wrong, total = word_errors(transcript, heard)
    return wrong / total if total else 1.0
