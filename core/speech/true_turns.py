"""What is known of a recording: our sidecar, or an STM transcript as speech corpora have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.words import Stretch

SIDECAR, STM, RTTM = ".turns.json", ".stm", ".rttm"


class TruthError(ValueError):
    """A file that is not as described; names file and line."""


@dataclass(frozen=True)
class TrueTurn:
    """Who said what from when to when."""

    speaker: str
    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True)
class Truth:
    """A recording's turns; `stretches` of speech are the turns unless an RTTM says more exactly.

    `roles` is whether the speakers' names are roles.
    """

    session_id: str
    turns: tuple[TrueTurn, ...]
    stretches: tuple[Stretch, ...]
    roles: bool


def read_truths(folder: Path) -> list[Truth]:
    """Every sidecar and STM of a folder, by name.

    Raises:
        TruthError: a file that is not as described.
    """
    truths = []
    for path in sorted([*folder.glob(f"*{SIDECAR}"), *folder.glob(f"*{STM}")]):
        ours = path.name.endswith(SIDECAR)
        turns = read_sidecar(path) if ours else _stm(path)
        rttm = path.with_suffix(RTTM)
        stretches = tuple(Stretch(turn.start_s, turn.end_s, turn.speaker) for turn in turns)
        if not ours and rttm.is_file():
            stretches = _rttm(rttm)
        name = path.name.removesuffix(SIDECAR if ours else STM)
        truths.append(Truth(name, turns, stretches, ours))
    return truths


def read_sidecar(path: Path) -> tuple[TrueTurn, ...]:
    """The turns of a sidecar of ours. Raises TruthError where it is not as described."""
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))["turns"]
        return tuple(
            TrueTurn(turn["speaker"], turn["start_s"], turn["end_s"], turn["text"])
            for turn in turns
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TruthError(f"{path}: expected turns with speaker, start_s, end_s, text.") from error


def _stm(path: Path) -> tuple[TrueTurn, ...]:
    """Lines of: recording, channel, speaker, start, end, words; a `<label>` before the words."""
    turns = []
    for number, cells in _lines(path, 6):
        words = " ".join(word for word in cells[5:] if not word.startswith("<"))
        start, end = _seconds(path, number, cells[3]), _seconds(path, number, cells[4])
        turns.append(TrueTurn(cells[2], start, end, words))
    return tuple(turns)


def _rttm(path: Path) -> tuple[Stretch, ...]:
    """Lines of: SPEAKER, recording, channel, start, length, two blanks, speaker."""
    stretches = []
    for number, cells in _lines(path, 8):
        start = _seconds(path, number, cells[3])
        stretches.append(Stretch(start, start + _seconds(path, number, cells[4]), cells[7]))
    return tuple(stretches)


def _lines(path: Path, least: int) -> Sequence[tuple[int, list[str]]]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split()
        if not cells or line.startswith(";;"):
            continue
        if len(cells) < least:
            raise TruthError(
                f"{path}, line {number}: expected {least} words or more, found {len(cells)}."
            )
        found.append((number, cells))
    return found


def _seconds(path: Path, number: int, said: str) -> float:
    try:
        return float(said)
    except ValueError as error:
        raise TruthError(f"{path}, line {number}: expected seconds, found {said!r}.") from error
