"""Recordings and the times of turns, to one clip a turn: 16 kHz mono FLAC.

Takes turns of any origin (a release, or our own transcription). What is odd about a turn
is a `Finding`; where no clip can be had of it the finding says so and the turn is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.audio import RATE_HZ, SHORTEST_S, SILENCE_DBFS, AudioError, Samples, read_clip
from core.datasets.file_names import file_name
from core.modality import holds_transcript
from core.speech.engine import Sound
from core.speech.turns import write_flac

TO_CUT = (
    "item_id",
    "session_id",
    "turn_index",
    "transcript",
    "context",
    "label",
    "start_s",
    "end_s",
)

# The study kept turns of two seconds or more; a release may hold what rounding made shorter.
LEAST_S = 2.0
# A fetched file may end some frames before the one that was transcribed; where more than a
# tenth of a turn is missing, what was labelled is not what would be heard.
LEAST_SHARE = 0.9
END_TOLERANCE_S = 0.05
_TIME_TOLERANCE_S = 1e-6


@dataclass(frozen=True)
class Finding:
    """One thing about a turn or a recording that a reader of the results should know.

    Attributes:
        item_id: None where it is about a whole recording.
        kind: a word to count by.
        found: what exactly, in words.
        turns: how many turns it concerns.
        kept: whether these turns are in the dataset all the same.
    """

    item_id: str | None
    session_id: str | None
    kind: str
    found: str
    turns: int
    kept: bool


@dataclass(frozen=True)
class Cut:
    """`rows` of a manifest of turns, `times` of each clip in its recording, what was found."""

    rows: tuple[dict[str, Any], ...]
    times: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]


def without_leaks(turns: pd.DataFrame) -> tuple[pd.DataFrame, list[Finding]]:
    """The turns with no context that holds the current transcript.

    The lines that hold it are taken out, since a model that is to listen would read the
    answer's words there; a turn whose context does so over several lines is left out.
    """
    findings: list[Finding] = []
    contexts, kept = [], []
    for row in turns.to_dict("records"):
        context = str(row["context"])
        leaks = holds_transcript(context, row["transcript"])
        if leaks:
            lines = context.splitlines()
            rest = [line for line in lines if not holds_transcript(line, row["transcript"])]
            context = "\n".join(rest)
            mended = not holds_transcript(context, row["transcript"])
            what = f"{len(lines) - len(rest)} of {len(lines)} lines taken out"
            found = what if mended else "the transcript runs over several lines"
            findings.append(_of(row, "context_holds_transcript", found, kept=mended))
            leaks = not mended
        contexts.append(context)
        kept.append(not leaks)
    # An array: an empty list would choose columns, none of them.
    chosen = np.array(kept, dtype=bool)
    return turns.assign(context=contexts)[chosen].reset_index(drop=True), findings


def odd_times(turns: pd.DataFrame) -> list[Finding]:
    """Turns that overlap, come in another order than their numbers, or are short; all kept."""
    findings = []
    for _, session in turns.groupby("session_id", sort=False):
        rows = session.sort_values("turn_index", kind="stable").to_dict("records")
        for before, row in pairwise(rows):
            if row["start_s"] < before["start_s"]:
                found = f"starts at {row['start_s']:g} s, before {before['item_id']}"
                findings.append(_of(row, "out_of_order", found, kept=True))
        by_time = sorted(rows, key=lambda row: (row["start_s"], row["end_s"]))
        # The one before need not be the one that reaches furthest.
        furthest = by_time[0]
        for row in by_time[1:]:
            shared = min(furthest["end_s"], row["end_s"]) - row["start_s"]
            if shared > _TIME_TOLERANCE_S:
                found = f"{shared:.2f} s are also in {furthest['item_id']}"
                findings.append(_of(row, "overlapping", found, kept=True))
            furthest = max(furthest, row, key=lambda one: one["end_s"])
    for row in turns.to_dict("records"):
        seconds = row["end_s"] - row["start_s"]
        if 0 < seconds < LEAST_S - _TIME_TOLERANCE_S:
            findings.append(_of(row, "short", f"{seconds:.2f} s", kept=True))
    return findings


def cut(
    turns: pd.DataFrame,
    recordings: Mapping[str, Path],
    folder: Path,
    *,
    padding_s: float = 0.0,
    progress: Callable[[str], None] = lambda line: None,
) -> Cut:
    """The clip of every turn whose recording is there, written to `folder/audio`.

    A recording is decoded once, whole, so that channels and level are settled alike for
    all its turns. A clip that is cut again has the same bytes.

    Args:
        turns: columns TO_CUT.
        recordings: session id -> file; turns of other sessions are not looked at.
        padding_s: taken before and after each turn as far as the recording goes. It may
            hold another speaker's words; the study has none.
    """
    rows: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    findings: list[Finding] = []
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    for session_id, session in turns.groupby("session_id", sort=False):
        path = recordings.get(str(session_id))
        if path is None:
            continue
        try:
            samples = read_clip(path).samples
        except AudioError as error:
            findings.append(
                Finding(None, str(session_id), "unreadable", str(error), len(session), False)
            )
            continue
        for row in session.to_dict("records"):
            span, found = _span(row, len(samples) / RATE_HZ, padding_s)
            findings += found
            if span is None:
                continue
            clip = samples[round(span[0] * RATE_HZ) : round(span[1] * RATE_HZ)]
            if _is_silent(clip):
                findings.append(_of(row, "silent", f"under {SILENCE_DBFS:g} dBFS", kept=True))
            rows.append(_row(folder, row, clip))
            times.append(_times(row, span))
        progress(f"{session_id}: {len(session)} turns")
    return Cut(tuple(rows), tuple(times), tuple(findings))


def _span(
    row: Mapping[Any, Any], seconds: float, padding_s: float
) -> tuple[tuple[float, float] | None, Sequence[Finding]]:
    """From where to where a turn's clip is, None where there is none."""
    start, end = float(row["start_s"]), float(row["end_s"])
    said = f"{start:g} to {end:g} s"
    if end - start <= _TIME_TOLERANCE_S:
        return None, [_of(row, "zero_length", said, kept=False)]
    there = min(end, seconds) - start
    findings = []
    if end > seconds + END_TOLERANCE_S:
        kept = there >= LEAST_SHARE * (end - start)
        found = f"{said} in a recording of {seconds:.2f} s"
        findings.append(_of(row, "past_the_end", found, kept=kept))
        if not kept:
            return None, findings
    if there < SHORTEST_S:
        return None, [_of(row, "zero_length", f"{said}, under {SHORTEST_S:g} s", kept=False)]
    return (max(0.0, start - padding_s), min(seconds, end + padding_s)), findings


def _row(folder: Path, row: Mapping[Any, Any], clip: Samples) -> dict[str, Any]:
    name = f"audio/{file_name(str(row['item_id']))}.flac"
    write_flac(folder / name, Sound(clip, RATE_HZ))
    return {
        "item_id": row["item_id"],
        "session_id": row["session_id"],
        "turn_index": row["turn_index"],
        "audio": name,
        "transcript": row["transcript"],
        "context": row["context"],
        "label": row["label"],
        "seconds": round(len(clip) / RATE_HZ, 3),
    }


def _times(row: Mapping[Any, Any], span: tuple[float, float]) -> dict[str, Any]:
    start, end = span
    names = ("item_id", "session_id", "start_s", "end_s")
    return {
        **{name: row[name] for name in names},
        "clip_start_s": round(start, 4),
        "clip_end_s": round(end, 4),
    }


def _is_silent(clip: Samples) -> bool:
    return bool(np.sqrt(np.mean(np.square(clip, dtype=np.float64))) < 10 ** (SILENCE_DBFS / 20))


def _of(row: Mapping[Any, Any], kind: str, found: str, *, kept: bool) -> Finding:
    return Finding(str(row["item_id"]), str(row["session_id"]), kind, found, 1, kept)
