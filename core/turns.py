"""Words to turns, and turns to the patient's turns that are asked about.

Segments of one speaker with less than five seconds between them are one turn. Turns
keep the order they begin in, and may overlap. Every turn stays in the table, since the
context is made of all of them; rules only say which of the patient's are asked about.

Source: CBT-Audio, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

TURNS = ("turn_index", "speaker", "start_s", "end_s", "text", "words", "probability")
"""Columns of a table of turns; `words` counts them, `probability` is their mean, or empty."""

MERGE_GAP_S = 5.0
LEAST_S = 2.0
CONTEXT_TURNS = 3
THERAPIST, PATIENT, OTHER = "therapist", "patient", "other"

_BACKCHANNELS = Path(__file__).with_name("backchannels.txt")
# Times come as sums of frames: 4.999999 s between two turns are five.
_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Rule:
    """What one rule left of the patient's turns."""

    name: str
    before: int
    after: int


@dataclass(frozen=True)
class Kept:
    """`turns` that all rules kept, rows of the table of turns; `rules` in order."""

    turns: pd.DataFrame
    rules: tuple[Rule, ...]


@dataclass
class _Run:
    speaker: str
    start_s: float
    end_s: float
    words: list[str]
    probabilities: list[float]


def merge(words: pd.DataFrame, gap_s: float = MERGE_GAP_S) -> pd.DataFrame:
    """The turns of a recording.

    Args:
        words: settled, see `core.words.settle`.
        gap_s: segments of one speaker this far apart or more are two turns.

    Returns:
        Columns TURNS.
    """
    runs = sorted(_runs(words), key=lambda run: run.start_s)
    turns: list[_Run] = []
    for run in runs:
        last = turns[-1] if turns else None
        if last and last.speaker == run.speaker and run.start_s - last.end_s < gap_s - _ROUNDING_S:
            last.end_s = max(last.end_s, run.end_s)
            last.words += run.words
            last.probabilities += run.probabilities
        else:
            turns.append(run)
    rows = [
        {
            "turn_index": index,
            "speaker": turn.speaker,
            "start_s": turn.start_s,
            "end_s": turn.end_s,
            "text": " ".join(turn.words),
            "words": len(turn.words),
            "probability": np.mean(turn.probabilities) if turn.probabilities else np.nan,
        }
        for index, turn in enumerate(turns)
    ]
    return pd.DataFrame(rows, columns=list(TURNS))


def patient_turns(turns: pd.DataFrame, roles: Mapping[str, str]) -> Kept:
    """The patient's turns of at least two seconds that are more than a backchannel.

    Args:
        turns: columns TURNS.
        roles: speaker -> THERAPIST, PATIENT or OTHER; a speaker without one is no patient.
    """
    seconds = turns["end_s"].to_numpy(float) - turns["start_s"].to_numpy(float)
    rules: list[tuple[str, NDArray[np.bool_]]] = [
        ("spoken by the patient", np.array([roles.get(s) == PATIENT for s in turns["speaker"]])),
        (f"{LEAST_S:g} s or longer", seconds >= LEAST_S - _ROUNDING_S),
        ("more than a backchannel", np.array([not is_backchannel(t) for t in turns["text"]])),
    ]
    kept = np.ones(len(turns), dtype=bool)
    told = []
    for name, holds in rules:
        before = int(kept.sum())
        kept &= holds.astype(bool)
        told.append(Rule(name, before, int(kept.sum())))
    return Kept(turns[kept], tuple(told))


def is_backchannel(text: str) -> bool:
    """Whether a turn is one backchannel, perhaps said again ("Yeah, yeah."), or no word at all.

    The study leaves out single words; that one said twice is no more is our choice.
    """
    said = " ".join(re.findall(r"[a-z]+", text.lower().replace("'", "")))
    if not said:
        return not re.search(r"\w", text)
    return any(
        re.fullmatch(rf"{re.escape(one)}( {re.escape(one)})*", said) for one in backchannels()
    )


@cache
def backchannels() -> tuple[str, ...]:
    """The list of backchannels.txt."""
    lines = _BACKCHANNELS.read_text(encoding="utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def context(
    turns: pd.DataFrame, roles: Mapping[str, str], turn_index: int, most: int = CONTEXT_TURNS
) -> str:
    """The turns before one, a line each: "Therapist: ..." and "Patient: ...".

    Of either role and of any length: what was too short to be asked about was still said.
    A turn that begins before this one and runs into it is among them, whole.
    """
    before = turns[turns["turn_index"] < turn_index].sort_values("turn_index").tail(most)
    rows = zip(before["speaker"], before["text"], strict=True)
    return "\n".join(f"{roles.get(name, OTHER).capitalize()}: {text}" for name, text in rows)


def _runs(words: pd.DataFrame) -> Sequence[_Run]:
    """Words of one speaker in a row within a segment.

    By the recogniser's order, not by time: two who speak at once would be cut to pieces.
    """
    runs: list[_Run] = []
    segment: object = None
    columns = ("segment", "speaker", "start_s", "end_s", "word", "probability")
    for place, speaker, start, end, word, probability in zip(
        *(words[name] for name in columns), strict=True
    ):
        if not runs or place != segment or runs[-1].speaker != speaker:
            runs.append(_Run(str(speaker), float(start), float(end), [], []))
            segment = place
        run = runs[-1]
        run.start_s, run.end_s = min(run.start_s, float(start)), max(run.end_s, float(end))
        run.words.append(str(word).strip())
        if probability == probability:
            run.probabilities.append(float(probability))
    return runs
