"""Schemas of the tables between a recording and its labelled turns."""

from __future__ import annotations

import pandera.pandas as pa

from core.ssr import LEVELS
from validation.columns import column, optional, row_rule, table_schema, unique
from validation.rules import NAME, PATH, PROBABILITY, TEXT, WHOLE, integer, number, one_of


def words() -> pa.DataFrameSchema:
    """See `core.words.WORDS`; times and speakers may be missing, a segment's times not."""
    return table_schema(
        {
            "segment": column(integer(0)),
            "segment_start_s": column(number(0)),
            "segment_end_s": column(number(0)),
            "segment_speaker": column(NAME, nullable=True),
            "word": column(WHOLE),
            "start_s": column(number(0), nullable=True),
            "end_s": column(number(0), nullable=True),
            "speaker": column(NAME, nullable=True),
            "probability": column(PROBABILITY, nullable=True),
        },
        [_not_before("segment_end_s", "segment_start_s"), _not_before("end_s", "start_s")],
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
    return row_rule(
        end, (start,), f"a time not before {start}", lambda row: not row[end] < row[start]
    )


def unlabelled() -> pa.DataFrameSchema:
    """Turns that wait for a label, with their clips: `core.datasets.spoken_session.UNLABELLED`."""
    return table_schema(
        {
            "item_id": column(NAME),
            "session_id": column(NAME),
            "turn_index": column(integer(0)),
            "audio": column(PATH),
            "transcript": column(WHOLE),
            "context": column(TEXT),
            "start_s": column(number(0)),
            "end_s": column(number(0, above=True)),
            "speaker": column(NAME),
            "seconds": column(number(0, above=True)),
        },
        [unique(["item_id"]), _not_before("end_s", "start_s")],
        needs_rows=True,
    )


def roles_by_hand() -> pa.DataFrameSchema:
    """Who is who, told by somebody who listened."""
    return table_schema(
        {
            "session_id": column(NAME),
            "speaker": column(NAME),
            "role": column(one_of(("therapist", "patient", "other"))),
        },
        [unique(["session_id", "speaker"])],
        needs_rows=True,
    )


def descriptions() -> pa.DataFrameSchema:
    """What a model said of a turn, a run a row; a failed run has no words and a reason."""
    return table_schema(
        {
            "item_id": column(NAME),
            "run": column(integer(1)),
            "description": column(TEXT, nullable=True),
            "model": optional(NAME),
            "status": optional(NAME),
            "reason": optional(TEXT),
        },
        [unique(["item_id", "run"])],
        needs_rows=True,
    )


def rated_descriptions() -> pa.DataFrameSchema:
    """Descriptions with their cosine to each anchor, the nearest, and the soft label."""
    return table_schema(
        {
            "item_id": column(NAME),
            "run": column(integer(1)),
            "description": column(TEXT, nullable=True),
            **{f"cosine_{level}": column(number(-1, 1), nullable=True) for level in LEVELS},
            "label": column(integer(1, 5), nullable=True),
            **{f"p_{level}": column(PROBABILITY, nullable=True) for level in LEVELS},
        },
        [unique(["item_id", "run"])],
    )


def ssr_labels() -> pa.DataFrameSchema:
    """A turn's label, the votes it comes from ("3|4|3") and its soft label over all runs."""
    return table_schema(
        {
            "item_id": column(NAME),
            "label": column(integer(1, 5), nullable=True),
            "votes": column(TEXT),
            "runs": column(integer(0)),
            **{f"p_{level}": column(PROBABILITY, nullable=True) for level in LEVELS},
        },
        [unique(["item_id"])],
    )


def scores() -> pa.DataFrameSchema:
    """Levels that a model was asked for directly, a run a row."""
    return table_schema(
        {
            "item_id": column(NAME),
            "run": column(integer(1)),
            "score": column(integer(1, 5), nullable=True),
        },
        [unique(["item_id", "run"])],
        needs_rows=True,
    )
