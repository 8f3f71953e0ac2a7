"""A CSV as people send it: every cell as text, every row with its number.

Spreadsheets save in several encodings and with several separators; this reader
settles both, refuses ragged rows and leaves the meaning of the cells to others.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from core.faults import zero_byte_line

SEPARATORS = (",", ";", "\t")


class UnreadableTableError(ValueError):
    """A file that is not a table: names the file, the row and what to do."""


@dataclass(frozen=True)
class Row:
    """One record.

    Attributes:
        number: as a spreadsheet shows it: the header is row 1, a record whose cells
            hold line breaks still counts as one.
        cells: column -> text without surrounding blanks.
    """

    number: int
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]


@dataclass(frozen=True)
class Table:
    """A header and its rows; `notes` say how the file was read where that was a choice."""

    name: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def read_table(path: Path) -> Table:
    """Every cell of a CSV file as text.

    Raises:
        UnreadableTableError: no such file, no rows, an empty or repeated column name, or a row
            with more or fewer cells than the header.
    """
    if not path.is_file():
        raise UnreadableTableError(f"{path}: no such file.")
    text, encoding = _decoded(path)
    separator = _separator(text)
    notes = []
    if encoding == "cp1252":
        notes.append(f"{path.name} is not UTF-8 and was read as cp1252.")
    if separator != ",":
        notes.append(f"{path.name} is separated by {separator!r}.")
    csv.field_size_limit(len(text) + 1)
    try:
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise UnreadableTableError(
            f"{path.name}: not a CSV table ({error}). Save it as CSV again."
        ) from error
    filled = [
        (place + 1, cells) for place, cells in enumerate(records) if any(map(str.strip, cells))
    ]
    if len(filled) < 2:
        raise UnreadableTableError(
            f"{path.name}: expected a header and rows, found {len(filled)} rows."
        )
    header = _header(path, filled[0][1])
    return Table(
        path.name, header, tuple(_row(path, header, *each) for each in filled[1:]), tuple(notes)
    )


def _decoded(path: Path) -> tuple[str, str]:
    raw = path.read_bytes()
    if line := zero_byte_line(raw):
        raise UnreadableTableError(
            f"{path.name}, line {line}: expected text, found a zero byte. Save it as UTF-8 again."
        )
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode("utf-16"), "utf-16"
        except UnicodeDecodeError as error:
            raise UnreadableTableError(
                f"{path.name}: begins like UTF-16 and is not ({error.reason} at byte "
                f"{error.start}). Save it as UTF-8."
            ) from error
    try:
        return raw.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        # A few bytes are no character in cp1252; text columns are not what is measured here.
        return raw.decode("cp1252", errors="replace"), "cp1252"


def _separator(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)


def _header(path: Path, cells: list[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in cells)
    while header and not header[-1]:
        header = header[:-1]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        names = ", ".join(repr(name) for name in repeated)
        raise UnreadableTableError(f"{path.name}, row 1: columns named twice: {names}. Rename one.")
    if "" in header[1:]:
        place = header.index("", 1) + 1
        raise UnreadableTableError(
            f"{path.name}, row 1: column {place} has no name. Name it or delete it."
        )
    return header


def _row(path: Path, header: tuple[str, ...], number: int, cells: list[str]) -> Row:
    while len(cells) > len(header) and not cells[-1].strip():
        cells = cells[:-1]
    if len(cells) != len(header):
        raise UnreadableTableError(
            f"{path.name}, row {number}: expected {len(header)} cells, found {len(cells)}. "
            "Quote cells that hold separators."
        )
    return Row(number, {name: cell.strip() for name, cell in zip(header, cells, strict=True)})
