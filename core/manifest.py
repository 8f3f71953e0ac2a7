"""A manifest file as a typed table: parquet, csv or jsonl, nothing guessed.

A cell becomes an integer, a number or text because its column says so; a cell
that is not one is a fault with its row, never a rounded value. What the values
mean (a label's range, unique ids) is for `validation.schemas`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from core.faults import Fault, FaultsError, shown
from core.parquet import ParquetError, read_rows

Type = Literal["text", "integer", "number"]
FORMATS = ("parquet", "csv", "jsonl")


class DatasetError(FaultsError):
    """A dataset folder that cannot be used: names file, row, column, value and rule."""


@dataclass(frozen=True)
class Column:
    """`needed` columns must be there; only `nullable` ones may have empty cells."""

    type: Type
    needed: bool = False
    nullable: bool = True


_ID = Column("text", needed=True, nullable=False)
_AUDIO = {"audio": Column("text", needed=True), "audio_sha256": Column("text")}
_TEXT = Column("text", needed=True, nullable=False)
# Columns by the kind of manifest. Optional ones are spelled out: a misspelt name is a
# fault, not a column nobody reads. start_s and end_s are a part of the audio file that
# the row names; an item whose file is its clip already has none.
COLUMNS: dict[str, dict[str, Column]] = {
    "turns": {
        "item_id": _ID,
        "session_id": _ID,
        "turn_index": Column("integer", needed=True, nullable=False),
        **_AUDIO,
        "transcript": _TEXT,
        "context": _TEXT,
        "label": Column("integer", needed=True, nullable=False),
        "start_s": Column("number"),
        "end_s": Column("number"),
        "speaker": Column("text"),
        "gender": Column("text"),
        "voice": Column("text"),
        "seconds": Column("number"),
    },
    "dialogues": {
        "item_id": _ID,
        **_AUDIO,
        "transcript": _TEXT,
        "label": _ID,
        "start_s": Column("number"),
        "end_s": Column("number"),
        "techniques": Column("text"),
        "vulnerability": Column("text"),
        "voices": Column("text"),
        "seconds": Column("number"),
    },
}
# Words may be empty (a silent turn, a first turn's context); an empty id or label may not.
_MAY_BE_EMPTY = ("transcript", "context")
_INTEGER = re.compile(r"[+-]?\d{1,400}(\.0+)?", re.ASCII)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ADVICE = "Correct these and run again."


@dataclass(frozen=True)
class Cells:
    """A table as it stands in its file: `rows` by column, and each row's line."""

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    lines: Sequence[int] | None = None

    def line(self, index: int) -> int | None:
        return None if self.lines is None else self.lines[index]


def read_cells(path: Path) -> Cells:
    """The cells of a manifest: text from csv, the file's own types from parquet and jsonl.

    Raises:
        DatasetError: for a file that is not a table: wrong encoding, ragged rows,
            a broken line, a column named twice.
    """
    readers: dict[str, Callable[[Path], Cells]] = {
        ".parquet": _parquet,
        ".csv": _csv,
        ".jsonl": _jsonl,
    }
    try:
        return readers[path.suffix](path)
    except OSError as error:
        raise _refused(path, None, "a readable file", error.strerror or str(error)) from error


def typed(source: str, kind: str, cells: Cells) -> tuple[pd.DataFrame, list[Fault]]:
    """Cells as a table of one kind, and every cell that does not fit its column.

    Text columns are objects (str or None), integers int64, numbers float64 with NaN
    for an empty cell. Columns the kind does not know come last, as text; whether they
    may be there is for the schema.

    Args:
        source: the file, for the error.
        kind: "turns" or "dialogues".

    Raises:
        DatasetError: for missing columns.
    """
    return typed_as(source, f"a manifest of {kind}", COLUMNS[kind], cells)


def typed_as(
    source: str, table_of: str, columns: Mapping[str, Column], cells: Cells
) -> tuple[pd.DataFrame, list[Fault]]:
    """As `typed`, for a table of any columns; `table_of` is what an error calls it."""
    absent = [
        name for name, column in columns.items() if column.needed and name not in cells.columns
    ]
    if absent:
        found = ", ".join(cells.columns)[:200] or "none"
        missing = [Fault(None, name, f"a column of {table_of}", found) for name in absent]
        raise DatasetError(source, missing, f"Add the missing columns: {', '.join(absent)}.")
    faults: list[Fault] = []
    table: dict[str, pd.Series[Any]] = {}
    known = [name for name in columns if name in cells.columns]
    for name in known + [name for name in cells.columns if name not in columns]:
        column = columns.get(name)
        values, wrong = _column_values(cells, name, column)
        faults += wrong
        table[name] = _series(values, column.type if column else "text")
    return pd.DataFrame(table), sorted(faults, key=lambda fault: fault.row or 0)


def _column_values(cells: Cells, name: str, column: Column | None) -> tuple[list[Any], list[Fault]]:
    if column is None:
        return [row.get(name) for row in cells.rows], []
    values: list[Any] = []
    faults = []
    for index, row in enumerate(cells.rows):
        cell = row.get(name)
        try:
            values.append(_value(cell, name, column))
        except ValueError as error:
            values.append(None)
            faults.append(Fault(index + 1, name, str(error), shown(cell), cells.line(index)))
    return values, faults


def _value(cell: Any, name: str, column: Column) -> Any:
    """A cell's value; raises ValueError with the rule it breaks."""
    rule = {"text": "text", "integer": "an integer", "number": "a finite number"}[column.type]
    if cell == "" or is_nothing(cell):
        if cell == "" and name in _MAY_BE_EMPTY:
            return ""
        if column.nullable:
            return None
        # A csv cannot tell empty text from none.
        raise ValueError(rule)
    fits = {"text": _text, "integer": _integer, "number": _number}[column.type](cell)
    if fits is None:
        raise ValueError(rule)
    return fits


def is_nothing(cell: Any) -> bool:
    """Whether a cell holds no value: None, or how pandas writes it."""
    return cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell))


def _text(cell: Any) -> str | None:
    if not isinstance(cell, str):
        return None
    if not is_whole(cell):
        raise ValueError("text of whole characters, without a zero byte")
    return cell


def is_whole(text: str) -> bool:
    """Whether a text can go everywhere: half a surrogate pair cannot be written to a file, and
    a tokenizer in C ends at a zero byte."""
    return "\0" not in text and _HALF_PAIR.search(text) is None


def _integer(cell: Any) -> int | None:
    if isinstance(cell, bool | np.bool_):
        return None
    value: int | None = None
    if isinstance(cell, str) and _INTEGER.fullmatch(cell.strip()):
        value = int(cell.strip().partition(".")[0])
    elif isinstance(cell, int | np.integer):
        value = int(cell)
    elif isinstance(cell, float | np.floating) and float(cell).is_integer():
        # 3.0 is how a data frame with gaps writes 3; 3.7 is no integer.
        value = int(cell)
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, str):
        if "_" in cell:
            return None
        try:
            cell = float(cell)
        except ValueError:
            return None
    if not isinstance(cell, int | float | np.integer | np.floating):
        return None
    try:
        return float(cell) if math.isfinite(cell) else None
    except OverflowError:
        # JSON's whole numbers have no largest.
        return None


def _series(values: list[Any], kind: Type) -> pd.Series[Any]:
    if kind == "number":
        return pd.Series(values, dtype=np.float64)
    if kind == "integer" and None not in values:
        return pd.Series(values, dtype=np.int64)
    # Objects keep None and str the same under every pandas.
    return pd.Series(values, dtype=object)


def _parquet(path: Path) -> Cells:
    try:
        names, rows = read_rows(path)
    except ParquetError as error:
        raise _refused(path, None, "a parquet file", str(error)) from error
    _check_names(path, names)
    return Cells(names, rows)


def _csv(path: Path) -> Cells:
    text = _utf8(path)
    # The module's own limit of 131,072 characters a cell is for what may be endless.
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for record in reader:
            if record:
                records.append((line, record))
            line = reader.line_num + 1
    except csv.Error as error:
        expected = "quotes that open and close round a cell, doubled inside it"
        raise _refused(path, line, expected, str(error)) from error
    if not records:
        raise _refused(path, 1, "a header", "an empty file")
    header = tuple(records[0][1])
    if len(header) == 1 and (separator := next((s for s in ";\t" if s in header[0]), None)):
        raise _refused(path, 1, "cells separated by commas", f"separator {separator!r}")
    _check_names(path, header)
    ragged = [
        Fault(index, None, f"{len(header)} cells", f"{len(record)}", line)
        for index, (line, record) in enumerate(records[1:], start=1)
        if len(record) != len(header)
    ]
    if ragged:
        raise DatasetError(path.name, ragged, "Quote the cells that hold commas or line breaks.")
    rows = [dict(zip(header, record, strict=True)) for _, record in records[1:]]
    return Cells(header, rows, [line for line, _ in records[1:]])


def _utf8(path: Path) -> str:
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _refused(path, 1, "UTF-8", "UTF-16", "Save it as UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Transcripts are shown to models: a guessed encoding would put wrong words there.
        line = raw[: error.start].count(b"\n") + 1
        advice = "Save it as UTF-8 (it may be cp1252, the encoding of Windows spreadsheets)."
        found = f"byte 0x{raw[error.start]:02x}"
        raise _refused(path, line, "UTF-8", found, advice) from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise _refused(path, line, "text", "a zero byte", "Save it as text again.")
    return text


def _jsonl(path: Path) -> Cells:
    rows, lines, names = [], [], dict[str, None]()
    for number, line in enumerate(_utf8(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_no_constant, object_pairs_hook=_once)
        # Brackets without end are beyond what the parser can nest.
        except (ValueError, RecursionError) as error:
            raise _refused(path, number, "a JSON object", str(error)) from error
        if not isinstance(row, dict):
            raise _refused(path, number, "a JSON object", shown(row))
        rows.append(row)
        lines.append(number)
        names.update(dict.fromkeys(row))
    _check_names(path, tuple(names))
    return Cells(tuple(names), rows, lines)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key appears twice")
    return row


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not all(name.strip() for name in names):
        found = f"{twice[0]!r} twice" if twice else "a column without a name"
        raise _refused(path, None, "a name of its own for each column", found)
    if broken := next((name for name in names if not is_whole(name)), None):
        raise _refused(path, None, "columns named in whole characters", repr(broken)[:60])


def _refused(
    path: Path, line: int | None, expected: str, found: str, advice: str = _ADVICE
) -> DatasetError:
    return DatasetError(str(path), [Fault(None, None, expected, found, line)], advice)
