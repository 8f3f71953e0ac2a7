"""Schemas of every table that crosses a boundary, and the one way to apply them.

    items = validated(dataset.items, turns(), str(dataset.manifest))

`validated` gives the table with its types settled, or raises a `TableError` that
lists every faulty row. No score is ever coerced: 3.7 is not a 3. Rows are numbered
from 1, the header not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd
import pandera.pandas as pa

from core.faults import Fault, FaultsError, shown
from core.manifest import is_nothing
from core.protocol import SCHEMA, STATUSES, Request, Response
from validation.rules import (
    DIGEST,
    FORMS,
    LOG_PROBABILITIES,
    NAME,
    NAMES,
    PARTS,
    PATH,
    PROBABILITY,
    TEXT,
    Rule,
    integer,
    number,
    one_of,
)

CONDITIONS = ("AO", "AT", "TO")
_ADVICE = "Correct these and run again."


class TableError(FaultsError):
    """A table that breaks its schema: `faults` holds every fault, the message the first 20."""


def validated(frame: pd.DataFrame, schema: pa.DataFrameSchema, source: str) -> pd.DataFrame:
    """The table, checked whole, with integer and number columns as int64 and float64.

    An integer column with gaps becomes Int64; objects stay what they are.

    Args:
        source: file the table came from, as the error names it.

    Raises:
        TableError: with every faulty row: its number, column, value and the rule.
    """
    frame = frame.reset_index(drop=True)
    if twice := sorted({str(name) for name in frame.columns[frame.columns.duplicated()]}):
        faults = [Fault(None, name, "a name of its own", "it twice") for name in twice]
        raise TableError(source, faults, _ADVICE)
    if frame.empty and (schema.metadata or {}).get("needs_rows"):
        raise TableError(source, [Fault(None, None, "rows", "none")], _ADVICE)
    try:
        checked = schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as error:
        raise TableError(source, _faults(error.failure_cases, frame, schema), _ADVICE) from None
    return _settled(checked, schema)


def turns(*, audio: bool = True) -> pa.DataFrameSchema:
    """Items of study 1: one turn of a patient a row.

    Args:
        audio: whether every turn must have a recording; False where only transcripts
            are asked about.
    """
    return _schema(
        {
            "item_id": _column(NAME),
            "session_id": _column(NAME),
            "turn_index": _column(integer(0)),
            **_recording(audio),
            "transcript": _column(TEXT),
            "context": _column(TEXT),
            "label": _column(integer(1, 5)),
            "speaker": _optional(NAME),
            "voice": _optional(NAME),
        },
        [
            *_of_recordings(),
            _unique(["item_id"]),
            _unique(["session_id", "turn_index"]),
        ],
        needs_rows=True,
    )


def dialogues(*, audio: bool = True) -> pa.DataFrameSchema:
    """Items of study 2: one dialogue a row, `transcript` with a line a turn; see `turns`."""
    return _schema(
        {
            "item_id": _column(NAME),
            **_recording(audio),
            "transcript": _column(TEXT),
            "label": _column(one_of(("YES", "NO"))),
            "techniques": _optional(TEXT),
            "vulnerability": _optional(TEXT),
            "voices": _optional(TEXT),
        },
        [*_of_recordings(), _unique(["item_id"])],
        needs_rows=True,
    )


def requests() -> pa.DataFrameSchema:
    """Requests as `as_table` gives them. There is no column a gold label could hide in."""
    return _schema(
        {
            "id": _column(NAME),
            "system": _column(TEXT, nullable=True),
            "parts": _column(PARTS),
            "choices": _column(FORMS, nullable=True),
            "max_new_tokens": _column(integer(1)),
            "temperature": _column(number(0)),
            "top_p": _column(number(0, 1, above=True)),
            "seed": _column(integer(0)),
            "prefix_parts": _column(integer(0)),
            "schema": _column(integer(SCHEMA, SCHEMA)),
        },
        [
            _unique(["id"]),
            _rows(
                "prefix_parts",
                ("parts",),
                "at most as many as there are parts",
                lambda row: _no_more_than(row["prefix_parts"], row["parts"]),
            ),
        ],
    )


def responses() -> pa.DataFrameSchema:
    """Responses as `as_table` gives them."""
    return _schema(
        {
            "id": _column(NAME),
            "status": _column(one_of(STATUSES)),
            "text": _column(TEXT),
            "reason": _column(NAME, nullable=True),
            "finish_reason": _column(NAME, nullable=True),
            "choice_logprobs": _column(LOG_PROBABILITIES, nullable=True),
            "choice_mass": _column(PROBABILITY, nullable=True),
            "prompt_tokens": _column(integer(0), nullable=True),
            "audio_seconds": _column(number(0), nullable=True),
            "audio_seconds_used": _column(number(0), nullable=True),
            "latency_s": _column(number(0), nullable=True),
            "card": _column(NAME, nullable=True),
            "image": _column(NAME, nullable=True),
            "precision": _column(NAME, nullable=True),
            "fallbacks": _column(NAMES),
            "schema": _column(integer(SCHEMA, SCHEMA)),
        },
        [_unique(["id"]), _reason_for_failure()],
    )


def predictions(labels: Sequence[str], *, extra: Sequence[str] = ()) -> pa.DataFrameSchema:
    """Predictions of a task: one row an item and condition, whatever came back.

    Args:
        labels: the task's; each has a column `p_<label>`.
        extra: further columns of the task, of any content.
    """
    label = one_of(labels)
    return _schema(
        {
            "item_id": _column(NAME),
            "prediction": _column(label, nullable=True),
            "gold": _column(label),
            "condition": _column(one_of(CONDITIONS)),
            "status": _column(one_of(STATUSES)),
            "reason": _column(TEXT, nullable=True),
            "expected": _column(number(), nullable=True),
            "choice_mass": _column(PROBABILITY, nullable=True),
            **{f"p_{name}": _column(PROBABILITY, nullable=True) for name in labels},
            "text": _column(TEXT, nullable=True),
            "group_id": _column(NAME),
            "seconds_given": _column(number(0), nullable=True),
            "seconds_used": _column(number(0), nullable=True),
            "latency_s": _column(number(0), nullable=True),
            "request_id": _column(NAME, nullable=True),
            **{name: pa.Column(None, required=False, nullable=True) for name in extra},
        },
        [
            _unique(["item_id", "condition"]),
            _reason_for_failure(),
            _rows(
                "prediction",
                ("status",),
                "a label where the status is ok, and nothing elsewhere",
                lambda row: (row["status"] == "ok") != is_nothing(row["prediction"]),
            ),
        ],
    )


def ratings(low: int, high: int) -> pa.DataFrameSchema:
    """Ratings of people, one a row; an item somebody did not rate has no row for them."""
    return _schema(
        {
            "item": _column(NAME),
            "rater": _column(NAME),
            "rating": _column(integer(low, high)),
        },
        [_unique(["item", "rater"])],
        needs_rows=True,
    )


def as_table(records: Sequence[Request] | Sequence[Response], kind: type) -> pd.DataFrame:
    """Records of core.protocol as a table with a column a field; `kind` for when there are none."""
    names = [field.name for field in fields(kind)]
    # Objects keep None, int and float as the record has them.
    columns = {name: [getattr(record, name) for record in records] for name in names}
    return pd.DataFrame({name: pd.Series(columns[name], dtype=object) for name in names})


def _schema(
    columns: dict[str, pa.Column], checks: list[pa.Check], *, needs_rows: bool = False
) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(
        columns, checks=checks, strict=True, metadata={"needs_rows": needs_rows}
    )


def _column(rule: Rule, *, nullable: bool = False, required: bool = True) -> pa.Column:
    def holds(column: pd.Series[Any]) -> pd.Series[bool]:
        return pd.Series([rule.holds(value) for value in column], index=column.index, dtype=bool)

    # No dtype: a dtype that does not fit is one error without a row.
    return pa.Column(
        None,
        pa.Check(holds, error=rule.expected),
        nullable=nullable,
        required=required,
        metadata={"dtype": rule.dtype, "expected": rule.expected},
    )


def _optional(rule: Rule) -> pa.Column:
    return _column(rule, nullable=True, required=False)


def _recording(audio: bool) -> dict[str, pa.Column]:
    return {
        "audio": _column(PATH, nullable=not audio),
        "audio_sha256": _optional(DIGEST),
        "start_s": _optional(number(0)),
        "end_s": _optional(number(0, above=True)),
        "seconds": _optional(number(0, above=True)),
    }


def _of_recordings() -> list[pa.Check]:
    return [
        _rows(
            "end_s",
            ("start_s",),
            "a time after start_s",
            lambda row: not _is_at_or_before(row["end_s"], row["start_s"]),
        ),
        _rows(
            "audio_sha256",
            ("audio",),
            "nothing where there is no audio",
            lambda row: is_nothing(row["audio_sha256"]) or not is_nothing(row["audio"]),
        ),
        _rows(
            "transcript",
            ("audio",),
            "words, since there is no audio",
            lambda row: not is_nothing(row["audio"]) or _has_words(row["transcript"]),
        ),
    ]


def _reason_for_failure() -> pa.Check:
    return _rows(
        "reason",
        ("status",),
        "a reason, since the status is not ok",
        lambda row: row["status"] == "ok" or _has_words(row["reason"]),
    )


def _unique(columns: list[str]) -> pa.Check:
    others = f" within its {columns[0]}" if len(columns) > 1 else ""

    def first(frame: pd.DataFrame) -> pd.Series[bool]:
        if not set(columns) <= set(frame.columns):
            return pd.Series(True, index=frame.index)
        return ~frame[columns].astype(str).duplicated()

    return pa.Check(first, name=columns[-1], error=f"a value no row above has{others}")


def _rows(
    column: str,
    others: tuple[str, ...],
    expected: str,
    holds: Callable[[dict[str, Any]], bool],
) -> pa.Check:
    """A rule on several columns of a row; the fault is said to be in `column`.

    It has nothing to say where a column is missing: that is a fault of its own, or
    an optional column.
    """
    names = (column, *others)

    def each(frame: pd.DataFrame) -> pd.Series[bool]:
        if not set(names) <= set(frame.columns):
            return pd.Series(True, index=frame.index)
        rows = zip(*(frame[name] for name in names), strict=True)
        fits = [holds(dict(zip(names, row, strict=True))) for row in rows]
        return pd.Series(fits, index=frame.index, dtype=bool)

    return pa.Check(each, name=column, error=expected)


def _faults(cases: pd.DataFrame, frame: pd.DataFrame, schema: pa.DataFrameSchema) -> list[Fault]:
    # pandera reports a rule on a row once for each column of the table.
    columns_of = {check.error: check.name for check in schema.checks}
    found: dict[tuple[int | None, str | None, str], Fault] = {}
    for context, column, check, case, index in zip(
        cases["schema_context"],
        cases["column"],
        cases["check"],
        cases["failure_case"],
        cases["index"],
        strict=True,
    ):
        if is_nothing(index):
            fault = _table_fault(str(check), case, schema)
        else:
            on_row = context == "DataFrameSchema"
            name = columns_of[check] if on_row else column
            expected = check if check != "not_nullable" else _expected(schema, name)
            fault = Fault(int(index) + 1, name, expected, shown(frame[name].iloc[int(index)]))
        found.setdefault((fault.row, fault.column, fault.expected), fault)
    return sorted(found.values(), key=lambda fault: (fault.row or 0, fault.column or ""))


def _table_fault(check: str, case: Any, schema: pa.DataFrameSchema) -> Fault:
    if check == "column_in_schema":
        allowed = f"no column but {', '.join(schema.columns)}"
        return Fault(None, str(case), allowed, "this one too")
    if check == "column_in_dataframe":
        return Fault(None, str(case), "a column of this name", "none")
    return Fault(None, None, check, shown(case))


def _expected(schema: pa.DataFrameSchema, name: str) -> str:
    return str((schema.columns[name].metadata or {}).get("expected", "a value"))


def _settled(frame: pd.DataFrame, schema: pa.DataFrameSchema) -> pd.DataFrame:
    dtypes = {}
    for name in frame.columns:
        dtype = (schema.columns[name].metadata or {}).get("dtype", "object")
        if dtype == "int64" and frame[name].isna().any():
            dtype = "Int64"
        if dtype != "object":
            dtypes[name] = dtype
    return frame.astype(dtypes)


def _has_words(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_at_or_before(end: Any, start: Any) -> bool:
    numbers = all(isinstance(value, int | float) for value in (end, start))
    return numbers and end <= start


def _no_more_than(count: Any, among: Any) -> bool:
    return not isinstance(count, int) or not isinstance(among, list | tuple) or count <= len(among)
