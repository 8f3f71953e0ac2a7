"""Schemas of every table that crosses a boundary, and the one way to apply them.

    items = validated(dataset.items, turns(), str(dataset.manifest))

`validated` gives the table with its types settled, or raises a `TableError` that
lists every faulty row. No score is ever coerced: 3.7 is not a 3. Rows are numbered
from 1, the header not counted.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import fields
from typing import Any

import pandas as pd
import pandera.pandas as pa

from core.faults import Fault, FaultsError, shown
from core.manifest import is_nothing
from core.protocol import SCHEMA, STATUSES, Request, Response
from validation.columns import column, optional, row_rule, table_schema, unique
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
    if found := faults(frame, schema):
        raise TableError(source, found, _ADVICE)
    return _settled(frame, schema)


def faults(
    frame: pd.DataFrame,
    schema: pa.DataFrameSchema,
    told: Set[tuple[int | None, str | None]] = frozenset(),
) -> list[Fault]:
    """All that is wrong with a table, for whoever has more to say of it than its schema.

    Args:
        told: (row, column) of cells known to be faulty. They are not told again, nor is
            a rule on several cells of a row that rests on one of them.
    """
    frame = frame.reset_index(drop=True)
    if twice := sorted({str(name) for name in frame.columns[frame.columns.duplicated()]}):
        return [Fault(None, name, "a name of its own", "it twice") for name in twice]
    if frame.empty and (schema.metadata or {}).get("needs_rows"):
        return [Fault(None, None, "rows", "none")]
    try:
        schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as error:
        found = _faults(error.failure_cases, frame, schema)
        rests_on = {check.error: (check.statistics or {})["columns"] for check in schema.checks}
        return [
            fault
            for fault in found
            if told.isdisjoint(
                (fault.row, name) for name in rests_on.get(fault.expected, [fault.column])
            )
        ]
    return []


def turns(*, audio: bool = True) -> pa.DataFrameSchema:
    """Items of study 1: one turn of a patient a row.

    Args:
        audio: whether every turn must have a recording; False where only transcripts
            are asked about.
    """
    return table_schema(
        {
            "item_id": column(NAME),
            "session_id": column(NAME),
            "turn_index": column(integer(0)),
            **_recording(audio),
            "transcript": column(TEXT),
            "context": column(TEXT),
            "label": column(integer(1, 5)),
            "speaker": optional(NAME),
            "gender": optional(NAME),
            "voice": optional(NAME),
        },
        [
            *_of_recordings(),
            unique(["item_id"]),
            unique(["session_id", "turn_index"]),
        ],
        needs_rows=True,
    )


def dialogues(*, audio: bool = True) -> pa.DataFrameSchema:
    """Items of study 2: one dialogue a row, `transcript` with a line a turn; see `turns`."""
    return table_schema(
        {
            "item_id": column(NAME),
            **_recording(audio),
            "transcript": column(TEXT),
            "label": column(one_of(("YES", "NO"))),
            "techniques": optional(TEXT),
            "vulnerability": optional(TEXT),
            "voices": optional(TEXT),
        },
        [*_of_recordings(), unique(["item_id"])],
        needs_rows=True,
    )


def requests() -> pa.DataFrameSchema:
    """Requests as `as_table` gives them. There is no column a gold label could hide in."""
    return table_schema(
        {
            "id": column(NAME),
            "system": column(TEXT, nullable=True),
            "parts": column(PARTS),
            "choices": column(FORMS, nullable=True),
            "max_new_tokens": column(integer(1)),
            "temperature": column(number(0)),
            "top_p": column(number(0, 1, above=True)),
            "seed": column(integer(0)),
            "prefix_parts": column(integer(0)),
            "schema": column(integer(SCHEMA, SCHEMA)),
        },
        [
            unique(["id"]),
            row_rule(
                "prefix_parts",
                ("parts",),
                "at most as many as there are parts",
                lambda row: _no_more_than(row["prefix_parts"], row["parts"]),
            ),
        ],
    )


def responses() -> pa.DataFrameSchema:
    """Responses as `as_table` gives them."""
    return table_schema(
        {
            "id": column(NAME),
            "status": column(one_of(STATUSES)),
            "text": column(TEXT),
            "reason": column(NAME, nullable=True),
            "finish_reason": column(NAME, nullable=True),
            "choice_logprobs": column(LOG_PROBABILITIES, nullable=True),
            "choice_mass": column(PROBABILITY, nullable=True),
            "prompt_tokens": column(integer(0), nullable=True),
            "audio_seconds": column(number(0), nullable=True),
            "audio_seconds_used": column(number(0), nullable=True),
            "latency_s": column(number(0), nullable=True),
            "card": column(NAME, nullable=True),
            "image": column(NAME, nullable=True),
            "precision": column(NAME, nullable=True),
            "fallbacks": column(NAMES),
            "schema": column(integer(SCHEMA, SCHEMA)),
        },
        [unique(["id"]), _reason_for_failure()],
    )


def predictions(
    labels: Sequence[str], *, extra: Sequence[str] = (), variants: Sequence[str] | None = None
) -> pa.DataFrameSchema:
    """Predictions of a task: one row an item and condition, whatever came back.

    Args:
        labels: the task's; each has a column `p_<label>`.
        extra: further columns of the task, of any content.
        variants: names that stand where the conditions stand, for a table of variants.
    """
    label = one_of(labels)
    return table_schema(
        {
            "item_id": column(NAME),
            "prediction": column(label, nullable=True),
            "gold": column(label),
            "condition": column(one_of(CONDITIONS if variants is None else variants)),
            "status": column(one_of(STATUSES)),
            "reason": column(TEXT, nullable=True),
            "expected": column(number(), nullable=True),
            "choice_mass": column(PROBABILITY, nullable=True),
            **{f"p_{name}": column(PROBABILITY, nullable=True) for name in labels},
            "text": column(TEXT, nullable=True),
            "group_id": column(NAME),
            "seconds_given": column(number(0), nullable=True),
            "seconds_used": column(number(0), nullable=True),
            "latency_s": column(number(0), nullable=True),
            "request_id": column(NAME, nullable=True),
            **{name: pa.Column(None, required=False, nullable=True) for name in extra},
        },
        [
            unique(["item_id", "condition"]),
            _reason_for_failure(),
            row_rule(
                "prediction",
                ("status",),
                "a label where the status is ok, and nothing elsewhere",
                lambda row: (row["status"] == "ok") != is_nothing(row["prediction"]),
            ),
        ],
    )


def ratings(low: int, high: int) -> pa.DataFrameSchema:
    """Ratings of people, one a row; an item somebody did not rate has no row for them."""
    return table_schema(
        {
            "item": column(NAME),
            "rater": column(NAME),
            "rating": column(integer(low, high)),
        },
        [unique(["item", "rater"])],
        needs_rows=True,
    )


def as_table(records: Sequence[Request] | Sequence[Response], kind: type) -> pd.DataFrame:
    """Records of core.protocol as a table with a column a field; `kind` for when there are none."""
    names = [field.name for field in fields(kind)]
    # Objects keep None, int and float as the record has them.
    columns = {name: [getattr(record, name) for record in records] for name in names}
    return pd.DataFrame({name: pd.Series(columns[name], dtype=object) for name in names})


def _recording(audio: bool) -> dict[str, pa.Column]:
    return {
        "audio": column(PATH, nullable=not audio),
        "audio_sha256": optional(DIGEST),
        "start_s": optional(number(0)),
        "end_s": optional(number(0, above=True)),
        "seconds": optional(number(0, above=True)),
    }


def _of_recordings() -> list[pa.Check]:
    return [
        row_rule(
            "end_s",
            ("start_s",),
            "a time after start_s",
            lambda row: not _is_at_or_before(row["end_s"], row["start_s"]),
        ),
        row_rule(
            "audio_sha256",
            ("audio",),
            "nothing where there is no audio",
            lambda row: is_nothing(row["audio_sha256"]) or not is_nothing(row["audio"]),
        ),
        row_rule(
            "transcript",
            ("audio",),
            "words, since there is no audio",
            lambda row: not is_nothing(row["audio"]) or _has_words(row["transcript"]),
        ),
    ]


def _reason_for_failure() -> pa.Check:
    return row_rule(
        "reason",
        ("status",),
        "a reason, since the status is not ok",
        lambda row: row["status"] == "ok" or _has_words(row["reason"]),
    )


def _faults(cases: pd.DataFrame, frame: pd.DataFrame, schema: pa.DataFrameSchema) -> list[Fault]:
    # pandera reports a rule on a row once for each column of the table.
    columns_of = {check.error: check.name for check in schema.checks}
    found: dict[tuple[int | None, str | None, str], Fault] = {}
    for context, named, check, case, index in zip(
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
            name = columns_of[check] if on_row else named
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
