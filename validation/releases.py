"""What the tables of CBT-Audio's release must hold, and how faulty rows are set aside.

A faulty row ends the build, unless its user asked to skip such rows; they are then
counted and named in the data report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pandera.pandas as pa

from core.faults import Fault
from core.manifest import is_nothing
from validation.columns import column, row_rule, table_schema, unique
from validation.rules import NAME, TEXT, Rule, integer, number, one_of
from validation.schemas import TableError, validated

_ADVICE = "Correct these, or leave these rows out with -P skip_invalid=true; they are then counted."
# Clips and recordings are files of this name.
_ID = Rule(
    "letters, digits, _ and -",
    lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w-]+", value)),
)
_HTTP = Rule(
    "a web address (https://...)",
    lambda value: isinstance(value, str) and value.startswith(("https://", "http://")),
)


def release_turns() -> pa.DataFrameSchema:
    """`labeled_patient_turns.csv`. An end before its start is a finding of the cut, no fault."""
    return table_schema(
        {
            "global_id": column(_ID),
            "video_id": column(_ID),
            "turn_id": column(integer(0)),
            "reference_label": column(integer(1, 5)),
            "patient_transcript": column(NAME),
            "context": column(TEXT, nullable=True),
            "start_time_sec": column(number(0)),
            "end_time_sec": column(number(0)),
        },
        [
            unique(["global_id"]),
            unique(["video_id", "turn_id"]),
            row_rule("global_id", ("video_id",), "video_id, _ and a number", _is_of_its_video),
        ],
        needs_rows=True,
    )


def release_recordings() -> pa.DataFrameSchema:
    """`source_recordings.csv`."""
    return table_schema(
        {
            "video_id": column(_ID),
            "youtube_url": column(_HTTP),
            "original_title": column(TEXT, nullable=True),
        },
        [unique(["video_id"])],
        needs_rows=True,
    )


def data_report() -> pa.DataFrameSchema:
    """`data_report.csv`: a finding a row, `item_id` empty where it is a whole recording's."""
    return table_schema(
        {
            "item_id": column(NAME, nullable=True),
            "session_id": column(NAME, nullable=True),
            "kind": column(NAME),
            "found": column(NAME),
            "turns": column(integer(0)),
            "kept": column(one_of(("yes", "no"))),
        },
        [],
    )


def sound_rows(
    frame: pd.DataFrame,
    faults: Sequence[Fault],
    schema: pa.DataFrameSchema,
    source: str,
    *,
    skip_invalid: bool,
) -> tuple[pd.DataFrame, list[Fault]]:
    """The rows without a fault, and the faults of the rows left out.

    Args:
        faults: those found while reading; the schema's are added.

    Raises:
        TableError: every fault, unless `skip_invalid`; then only those of the whole table.
    """
    found = list(faults)
    while True:
        left_out = {fault.row for fault in found}
        rows = [row for row in range(1, len(frame) + 1) if row not in left_out]
        rest = frame.iloc[[row - 1 for row in rows]]
        try:
            checked = validated(rest, schema, source)
            break
        except TableError as error:
            # Rows are those of what was left; the file's are meant.
            new = [replace(f, row=rows[f.row - 1]) if f.row else f for f in error.faults]
            found += new
            if not skip_invalid or any(fault.row is None for fault in new):
                raise TableError(source, _in_order(found), _ADVICE) from None
    if found and not skip_invalid:
        raise TableError(source, _in_order(found), _ADVICE)
    return checked, _in_order(found)


def _in_order(faults: Sequence[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: (fault.row or 0, fault.column or ""))


def _is_of_its_video(row: dict[str, Any]) -> bool:
    if is_nothing(row["global_id"]) or is_nothing(row["video_id"]):
        return True
    before, _, number_of_turn = str(row["global_id"]).rpartition("_")
    return before == row["video_id"] and number_of_turn.isdigit()
