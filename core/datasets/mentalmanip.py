"""MentalManip's CSV (ID, Dialogue, Manipulative, Technique, Vulnerability) as dialogues.

Exact: every line of a dialogue is a turn, an empty turn stays one, and a row that is
not understood is listed with its id and the reason. Works for any file of that layout.

Source: Wang et al. 2024; SpeechMentalManip, section 3.1 and table 1.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from core.datasets.dialogue import TECHNIQUES, VULNERABILITIES, Dialogue
from core.faults import zero_byte_line

COLUMNS = ("ID", "Dialogue", "Manipulative", "Technique", "Vulnerability")

# The first space after the colon is the file's, any further one the writer's.
_TURN = re.compile(r"(Person\d+):[ ]?(.*)", re.DOTALL)
_NOBODY = re.compile(r":\s*")
_LINE_END = re.compile(r"\r\n|\r|\n")


class MentalManipError(ValueError):
    """A file that is not of this layout at all."""


@dataclass(frozen=True)
class NotUnderstood:
    """A row that became no dialogue.

    Attributes:
        row: data row counted from 1, the header not counted.
        line: of the file, where the row begins, counted from 1.
    """

    row: int
    line: int
    dialogue_id: str
    column: str
    expected: str
    found: str

    def said(self, source: str) -> str:
        return (
            f"{source}, row {self.row} (line {self.line}), id {self.dialogue_id or 'none'}, "
            f"{self.column}: expected {self.expected}, found {self.found}."
        )


@dataclass(frozen=True)
class Parsed:
    """A file that was read.

    Attributes:
        sha256: of the file's bytes.
        dialogues: in the file's order.
        not_understood: rows that are no dialogue; with `dialogues`, every row.
        notes: (dialogue id, remark) for what was understood and is unusual.
    """

    source: str
    sha256: str
    dialogues: tuple[Dialogue, ...]
    not_understood: tuple[NotUnderstood, ...]
    notes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Counts:
    """What a file holds. `same_speaker` counts dialogues where one speaks twice in a row."""

    dialogues: int
    manipulative: int
    not_manipulative: int
    turns: int
    empty_turns: int
    longest: int
    same_speaker: int
    techniques: Mapping[str, int]
    vulnerabilities: Mapping[str, int]

    @property
    def technique_labels(self) -> int:
        return sum(self.techniques.values())


# Of MentalManip_con, as published: section 3.1 and table 1.
PUBLISHED_DIALOGUES = (2915, 2016, 899)
PUBLISHED_TECHNIQUES: Mapping[str, int] = {
    "Persuasion or Seduction": 607,
    "Shaming or Belittlement": 384,
    "Accusation": 361,
    "Intimidation": 321,
    "Rationalization": 213,
    "Brandishing Anger": 133,
    "Denial": 87,
    "Evasion": 83,
    "Playing Victim Role": 69,
    "Feigning Innocence": 58,
    "Playing Servant Role": 30,
}


def read_mentalmanip(path: Path) -> Parsed:
    """Every dialogue of a file, and every row that is none.

    Raises:
        MentalManipError: not UTF-8, not CSV, or without the five columns.
    """
    content = path.read_bytes()
    dialogues: list[Dialogue] = []
    refused: list[NotUnderstood] = []
    notes: list[tuple[str, str]] = []
    first_row: dict[str, int] = {}
    for row, (line, cells) in enumerate(_rows(path, _text(path, content)), start=1):
        found = _dialogue(row, line, cells)
        if isinstance(found, NotUnderstood):
            refused.append(found)
        elif found.dialogue_id in first_row:
            other = f"the id of row {first_row[found.dialogue_id]} again"
            refused.append(
                NotUnderstood(row, line, found.dialogue_id, "ID", "an id of its own", other)
            )
        else:
            first_row[found.dialogue_id] = row
            dialogues.append(found)
            notes += ((found.dialogue_id, note) for note in _notes(found))
    digest = sha256(content).hexdigest()
    return Parsed(path.name, digest, tuple(dialogues), tuple(refused), tuple(notes))


def turns_of(cell: str) -> tuple[tuple[str, str], ...]:
    """The (speaker, text) turns of a Dialogue cell.

    A line "PersonN: text" is a turn, also when its text is empty; ":" alone is an empty
    turn of nobody; a line without a speaker goes on with the turn before it. Blank lines
    are no turns.

    Raises:
        ValueError: a line with words that belong to no speaker.
    """
    turns: list[tuple[str, str]] = []
    for line in _LINE_END.split(cell):
        if match := _TURN.fullmatch(line.lstrip()):
            turns.append((match[1], match[2]))
        elif _NOBODY.fullmatch(line):
            turns.append(("", ""))
        elif line.strip():
            if not turns or not turns[-1][0] or line.lstrip().startswith(":"):
                raise ValueError(line.strip())
            speaker, text = turns[-1]
            turns[-1] = (speaker, f"{text} {line.strip()}".lstrip())
    return tuple(turns)


def counted(dialogues: Sequence[Dialogue]) -> Counts:
    """The counts of these dialogues, techniques most frequent first."""
    manipulative = sum(dialogue.manipulative for dialogue in dialogues)
    techniques = Counter(name for dialogue in dialogues for name in dialogue.techniques)
    weak = Counter(name for dialogue in dialogues for name in dialogue.vulnerabilities)
    return Counts(
        dialogues=len(dialogues),
        manipulative=manipulative,
        not_manipulative=len(dialogues) - manipulative,
        turns=sum(len(dialogue.turns) for dialogue in dialogues),
        empty_turns=sum(not text.strip() for d in dialogues for _, text in d.turns),
        longest=max((len(dialogue.turns) for dialogue in dialogues), default=0),
        same_speaker=sum(_speaks_twice(dialogue) for dialogue in dialogues),
        techniques=dict(techniques.most_common()),
        vulnerabilities=dict(weak.most_common()),
    )


def is_published(counts: Counts) -> bool:
    """Whether these are the counts published for MentalManip_con."""
    shape = (counts.dialogues, counts.manipulative, counts.not_manipulative)
    return shape == PUBLISHED_DIALOGUES and dict(counts.techniques) == dict(PUBLISHED_TECHNIQUES)


def _text(path: Path, content: bytes) -> str:
    if line := zero_byte_line(content):
        raise MentalManipError(
            f"{path}, line {line}: expected text, found a zero byte. Save the file as text again."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise MentalManipError(
            f"{path}, line {line}: expected UTF-8, found byte 0x{content[error.start]:02x}. Save "
            "the file as UTF-8 (it may be cp1252, the encoding of Windows spreadsheets)."
        ) from error


def _rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if cells:
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise MentalManipError(f"{path}, line {line}: not readable as CSV ({error}).") from error
    header = tuple(cell.strip() for cell in rows[0][1]) if rows else ()
    if header != COLUMNS:
        raise MentalManipError(
            f"{path}: expected the columns {', '.join(COLUMNS)}, found {', '.join(header)[:80]!r}."
        )
    return rows[1:]


def _dialogue(row: int, line: int, cells: list[str]) -> Dialogue | NotUnderstood:
    dialogue_id = cells[0].strip()

    def refused(column: str, expected: str, found: str) -> NotUnderstood:
        return NotUnderstood(row, line, dialogue_id, column, expected, found)

    if len(cells) != len(COLUMNS):
        return refused("the row", f"{len(COLUMNS)} cells", str(len(cells)))
    if not dialogue_id:
        return refused("ID", "an id", "none")
    label, techniques, weak = cells[2].strip(), _listed(cells[3]), _listed(cells[4])
    if label not in ("0", "1"):
        return refused("Manipulative", "0 or 1", repr(label))
    for column, names, known in (
        ("Technique", techniques, TECHNIQUES),
        ("Vulnerability", weak, VULNERABILITIES),
    ):
        if unknown := [name for name in names if name not in known]:
            return refused(column, f"one of {', '.join(known)}", repr(unknown[0]))
        if names and label == "0":
            return refused(column, "none in a dialogue that is not manipulative", repr(names[0]))
    try:
        turns = turns_of(cells[1])
    except ValueError as error:
        return refused("Dialogue", 'lines of the form "PersonN: text"', repr(str(error)[:60]))
    if not any(text.strip() for _, text in turns):
        return refused("Dialogue", "a turn with words", "none")
    return Dialogue(dialogue_id, label == "1", techniques, turns, weak)


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(name for part in cell.split(",") if (name := part.strip()))


def _notes(dialogue: Dialogue) -> list[str]:
    notes = []
    for number, (speaker, text) in enumerate(dialogue.turns, start=1):
        if not text.strip():
            notes.append(f"turn {number} of {speaker or 'nobody'} is empty")
        if "\N{REPLACEMENT CHARACTER}" in text:
            notes.append(f"turn {number} of {speaker} has a letter that was lost in the source")
    return notes


def _speaks_twice(dialogue: Dialogue) -> bool:
    speakers = [speaker for speaker, _ in dialogue.turns]
    return any(one == other for one, other in pairwise(speakers))
