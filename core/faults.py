"""How a faulty table is reported: every fault with its file, row, column and value.

Readers and schemas collect faults and raise once; whoever mends the file sees
all that is wrong with it, not the first thing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        row: data row counted from 1, the header not counted; None for the whole table.
        column: None where the fault is not one column's.
        expected: the rule, in words.
        found: the value as `shown`.
        line: of the file, where that is not the row.
    """

    row: int | None
    column: str | None
    expected: str
    found: str
    line: int | None = None

    def said(self, source: str) -> str:
        """The fault as a sentence, `source` being the file's name or path."""
        where = source
        if self.row is not None:
            where += f", row {self.row}"
        if self.line is not None and self.line != self.row:
            where += f" (line {self.line})" if self.row is not None else f", line {self.line}"
        if self.column is not None:
            where += f", {self.column:.{_LONGEST_VALUE}}"
        return f"{where}: expected {self.expected}, found {self.found}."


class FaultsError(ValueError):
    """A table that is not what it should be.

    Attributes:
        source: the file.
        faults: all of them; the message shows the first 20 and counts the rest.
        advice: what to do.
    """

    def __init__(self, source: str, faults: Sequence[Fault], advice: str) -> None:
        super().__init__(source, tuple(faults), advice)
        self.source, self.faults, self.advice = source, tuple(faults), advice

    def __str__(self) -> str:
        lines = [fault.said(self.source) for fault in self.faults[:SHOWN]]
        if (more := len(self.faults) - SHOWN) > 0:
            lines.append(f"{self.source}: and {more} more.")
        return "\n".join([*lines, self.advice])


def zero_byte_line(content: bytes) -> int | None:
    """The line of a file's first zero byte; None without one, and in UTF-16, which is full of them.

    Args:
        content: the file, its byte order mark included.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or (zero := content.find(b"\0")) < 0:
        return None
    return content[:zero].count(b"\n") + 1


def shown(value: Any) -> str:
    """A value as a message shows it: text in quotes, long values cut, None as nothing."""
    # NaN is how a data frame says nothing.
    if value is None or (isinstance(value, float) and value != value):
        return "nothing"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
