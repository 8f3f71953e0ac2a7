"""A transcription's words, each with a time and a speaker: what recognisers leave open, settled.

A table of words has a row a word, in the order they were recognised. Aligners give no
time to what they cannot spell out ("2014", "£5") and diarizers no speaker to what they
did not hear; both are filled in from the segment the word belongs to, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

WORDS = (
    "segment",
    "segment_start_s",
    "segment_end_s",
    "segment_speaker",
    "word",
    "start_s",
    "end_s",
    "speaker",
    "probability",
)
"""Columns of a table of words. `segment` counts the recogniser's segments; times are seconds
of the recording; `start_s`, `end_s`, `speaker`, `segment_speaker`, `probability` may be empty."""

UNKNOWN = "unknown"
"""Speaker of a word that nobody was heard to say."""


@dataclass(frozen=True)
class Stretch:
    """Somebody speaks from `start_s` to `end_s`; how a diarizer tells it."""

    start_s: float
    end_s: float
    speaker: str


@dataclass(frozen=True)
class Settled:
    """Words that all have times and a speaker, and how many had to be given them."""

    words: pd.DataFrame
    without_times: int
    without_speaker: int


def settle(words: pd.DataFrame) -> Settled:
    """Fill in times and speakers.

    Untimed words share the room between their timed neighbours, or the segment's ends,
    evenly. A word without a speaker has its segment's; in a segment without one, that of
    the nearest word of the segment that has one; else `UNKNOWN`.

    Args:
        words: columns WORDS.
    """
    filled = words.reset_index(drop=True).copy()
    start, end = (filled[name].to_numpy(float, copy=True) for name in ("start_s", "end_s"))
    # An end before its start is a slip of the aligner, not a time.
    untimed = ~(end >= start)
    speakers = [None if pd.isna(name) or not name else str(name) for name in filled["speaker"]]
    unheard = sum(name is None for name in speakers)
    for _, rows in filled.groupby("segment", sort=False):
        at = rows.index.to_numpy()
        first = rows.iloc[0]
        bounds = (float(first["segment_start_s"]), float(first["segment_end_s"]))
        start[at], end[at] = _spread(start[at], end[at], untimed[at], bounds)
        named = None if pd.isna(first["segment_speaker"]) else str(first["segment_speaker"])
        for place, name in zip(at, _named([speakers[i] for i in at], named), strict=True):
            speakers[place] = name
    filled["start_s"], filled["end_s"] = start, end
    filled["speaker"] = pd.Series(speakers, dtype=object)
    return Settled(filled, int(untimed.sum()), unheard)


def with_speakers(words: pd.DataFrame, stretches: Sequence[Stretch]) -> pd.DataFrame:
    """Words and their segments with the speaker of the diarizer's stretch they overlap.

    The stretch that holds most of the word; of several that hold all of it the shortest,
    since a diarizer may give one long stretch that covers another's short one. A word or
    segment that no stretch overlaps has no speaker.
    """
    heard = words.copy()
    for prefix in ("", "segment_"):
        spans = zip(words[f"{prefix}start_s"], words[f"{prefix}end_s"], strict=True)
        names = [_speaker(float(start), float(end), stretches) for start, end in spans]
        heard[f"{prefix}speaker"] = pd.Series(names, index=words.index, dtype=object)
    return heard


def over_silence(
    words: pd.DataFrame, voiced: Sequence[tuple[float, float]], tolerance_s: float = 0.2
) -> NDArray[np.bool_]:
    """(n,) which words lie where a voice detector hears nobody; words without times do not.

    Recognisers invent text for silence ("Thank you for watching").

    Args:
        voiced: (start, end) in seconds of every stretch with a voice.
        tolerance_s: a word this near to a voice is that voice's; detectors cut soft ends.
    """
    silent = np.zeros(len(words), dtype=bool)
    for place, (start, end) in enumerate(zip(words["start_s"], words["end_s"], strict=True)):
        if not (end >= start):
            continue
        silent[place] = not any(
            start < to + tolerance_s and end > since - tolerance_s for since, to in voiced
        )
    return silent


def trimmed(words: pd.DataFrame, voiced: Sequence[tuple[float, float]]) -> pd.DataFrame:
    """Words without the silence round them, cut to the voiced stretch that holds most of each.

    A recogniser lets a turn's first and last word reach far into the pause beside it.
    Words without times, or where nobody speaks, stay as they are.
    """
    cut = words.copy()
    times = zip(words["start_s"], words["end_s"], strict=True)
    spans = [_voiced(float(start), float(end), voiced) for start, end in times]
    cut["start_s"], cut["end_s"] = ([span[side] for span in spans] for side in (0, 1))
    return cut


def in_speech(
    stretches: Sequence[Stretch],
    voiced: Sequence[tuple[float, float]],
    breath_s: float = 0.5,
) -> tuple[Stretch, ...]:
    """A diarizer's stretches without the pauses between speakers they reach into, by start.

    A pause of one speaker no longer than `breath_s` is still that speaker's.
    """
    parts = [
        Stretch(max(one.start_s, since), min(one.end_s, to), one.speaker)
        for one in stretches
        for since, to in voiced
        if min(one.end_s, to) > max(one.start_s, since)
    ]
    joined: list[Stretch] = []
    for part in sorted(parts, key=lambda one: (one.start_s, one.end_s)):
        last = joined[-1] if joined else None
        if last and last.speaker == part.speaker and part.start_s - last.end_s <= breath_s:
            joined[-1] = Stretch(last.start_s, max(last.end_s, part.end_s), part.speaker)
        else:
            joined.append(part)
    return tuple(joined)


def reaching(
    words: pd.DataFrame, stretches: Sequence[Stretch], most_s: float = 0.5
) -> pd.DataFrame:
    """Words of which the first and last of each stretch reach to its ends.

    Recognisers place a first word late; the sound before it is still its speaker's. Only
    over `most_s`: more than that is a word that was not recognised.
    """
    reached = words.copy()
    start, end = (words[name].to_numpy(float, copy=True) for name in ("start_s", "end_s"))
    middle, speakers = (start + end) / 2, words["speaker"].to_numpy(object)
    for one in stretches:
        inside = (middle >= one.start_s) & (middle <= one.end_s) & (speakers == one.speaker)
        places = np.flatnonzero(inside)
        if not len(places):
            continue
        first, last = places[np.argmin(start[places])], places[np.argmax(end[places])]
        if 0 < start[first] - one.start_s <= most_s:
            start[first] = one.start_s
        if 0 < one.end_s - end[last] <= most_s:
            end[last] = one.end_s
    reached["start_s"], reached["end_s"] = start, end
    return reached


def _voiced(start: float, end: float, voiced: Sequence[tuple[float, float]]) -> tuple[float, float]:
    shared = [(min(end, to) - max(start, since), since, to) for since, to in voiced]
    most = max(shared, default=(0.0, 0.0, 0.0))
    return (max(start, most[1]), min(end, most[2])) if most[0] > 0 else (start, end)


def _spread(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    untimed: NDArray[np.bool_],
    bounds: tuple[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times of a segment's words, those `untimed` put between their neighbours."""
    start, end = start.copy(), end.copy()
    count, place = len(start), 0
    while place < count:
        if not untimed[place]:
            place += 1
            continue
        stop = place
        while stop < count and untimed[stop]:
            stop += 1
        low = end[place - 1] if place else bounds[0]
        high = start[stop] if stop < count else bounds[1]
        edges = np.linspace(low, max(low, high), stop - place + 1)
        start[place:stop], end[place:stop] = edges[:-1], edges[1:]
        place = stop
    return start, end


def _named(names: list[str | None], of_segment: str | None) -> list[str]:
    known = [place for place, name in enumerate(names) if name is not None]

    def nearest(place: int) -> str:
        if not known:
            return UNKNOWN
        return names[min(known, key=lambda other: abs(other - place))] or UNKNOWN

    return [name or of_segment or nearest(place) for place, name in enumerate(names)]


def _speaker(start: float, end: float, stretches: Sequence[Stretch]) -> str | None:
    if not end >= start:
        return None

    def fit(stretch: Stretch) -> tuple[float, float]:
        # Rounded, so that two stretches that both hold the whole word are told apart by length.
        shared = min(end, stretch.end_s) - max(start, stretch.start_s)
        return (round(shared, 3), stretch.start_s - stretch.end_s)

    near = [s for s in stretches if s.start_s <= end and s.end_s >= start]
    return max(near, key=fit).speaker if near else None


def of_whisperx(result: Any) -> pd.DataFrame:
    """WhisperX's aligned and diarized result (its .json) as a table of words.

    Its words may lack times, and words and segments a speaker; `settle` fills them in. The
    text of a segment that could not be aligned is there too, word by word without times.

    Raises:
        ValueError: not such a result; says which segment and what of it.
    """
    segments = result.get("segments") if isinstance(result, dict) else None
    if not isinstance(segments, list):
        raise ValueError("expected an object with segments, as WhisperX writes it.")
    rows = []
    for number, segment in enumerate(segments):
        try:
            ends = {
                "segment_start_s": float(segment["start"]),
                "segment_end_s": float(segment["end"]),
            }
            # A segment that could not be aligned has its text and no words.
            aligned = segment["words"] or [
                {"word": one} for one in str(segment.get("text") or "").split()
            ]
            for word in aligned:
                if not str(word["word"]).strip():
                    continue
                rows.append(
                    {
                        "segment": number,
                        **ends,
                        "segment_speaker": segment.get("speaker"),
                        "word": str(word["word"]).strip(),
                        "start_s": word.get("start"),
                        "end_s": word.get("end"),
                        "speaker": word.get("speaker"),
                        "probability": word.get("score"),
                    }
                )
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"segment {number}: expected start, end and aligned words ({error!r})."
            ) from error
    return as_table(rows)


def as_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows of words as a table with every column of WORDS, also where there is no row."""
    table = pd.DataFrame(list(rows), columns=list(WORDS))
    numbers = ("segment_start_s", "segment_end_s", "start_s", "end_s", "probability")
    return table.astype(dict.fromkeys(numbers, "float64"))
