"""Schemas of the tables between a recording and its labelled turns."""

from __future__ import annotations

import pandera.pandas as pa

from validation.columns import column, row_rule, table_schema, unique
from validation.rules import NAME, PROBABILITY, TEXT, integer, number


def words() -> pa.DataFrameSchema:
    """See `core.words.WORDS`; times and speakers may be missing, a segment's times not."""
    return table_schema(
        {
            "segment": column(integer(0)),
            "segment_start_s": column(number(0)),
            "segment_end_s": column(number(0)),
            "segment_speaker": column(NAME, nullable=True),
            "word": column(NAME),
            "start_s": column(number(0), nullable=True),
            "end_s": column(number(0), nullable=True),
            "speaker": column(NAME, nullable=True),
            "probability": column(PROBABILITY, nullable=True),
        },
        [_not_before("segment_end_s", "segment_start_s")],
    )


def spoken_turns() -> pa.DataFrameSchema:
    """See `core.turns.TURNS`; turns may overlap, but begin in order."""
    return table_schema(
        {
            "turn_index": column(integer(0)),
            "speaker": column(NAME),
            "start_s": column(number(0)),
            "end_s": column(number(0)),
            "text": column(TEXT),
            "words": column(integer(1)),
            "probability": column(PROBABILITY, nullable=True),
        },
        [unique(["turn_index"]), _not_before("end_s", "start_s")],
    )


def _not_before(end: str, start: str) -> pa.Check:
    return row_rule(end, (start,), f"a time not before {start}", lambda row: row[end] >= row[start])
