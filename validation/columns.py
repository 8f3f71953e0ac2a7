"""How a schema is put together: columns of one rule each, and rules on whole rows.

Built for `validation.schemas.validated`, which turns what breaks a rule into faults
that name row, column and value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pandera.pandas as pa

from validation.rules import Rule


def table_schema(
    columns: dict[str, pa.Column], checks: list[pa.Check], *, needs_rows: bool = False
) -> pa.DataFrameSchema:
    """A schema without further columns; `needs_rows` refuses an empty table."""
    return pa.DataFrameSchema(
        columns, checks=checks, strict=True, metadata={"needs_rows": needs_rows}
    )


def column(rule: Rule, *, nullable: bool = False, required: bool = True) -> pa.Column:
    """A column whose every value keeps the rule."""

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


def optional(rule: Rule) -> pa.Column:
    """A column that may be missing, and empty where it is there."""
    return column(rule, nullable=True, required=False)


def unique(columns: list[str]) -> pa.Check:
    """No two rows with the same values in these columns; the fault is said to be in the last."""
    others = f" within its {columns[0]}" if len(columns) > 1 else ""

    def first(frame: pd.DataFrame) -> pd.Series[bool]:
        if not set(columns) <= set(frame.columns):
            return pd.Series(True, index=frame.index)
        return ~frame[columns].astype(str).duplicated()

    error = f"a value no row above has{others}"
    return pa.Check(first, name=columns[-1], error=error, statistics={"columns": columns})


def row_rule(
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

    return pa.Check(each, name=column, error=expected, statistics={"columns": names})
