"""What may be with raters already is not written over: a round's key, and sheets with answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from experiments.options import OptionError

K = TypeVar("K")


def keep_handed_out(
    path: Path,
    key: K,
    read_key: Callable[[Path], K],
    workbooks: Iterable[Path],
    *,
    sheets: Sequence[str],
    column: str,
) -> None:
    """Refuse to write over the key of another round, or over a workbook somebody began to fill in.

    Args:
        path: of the key, there or not.
        key: the one to write.
        read_key: raises ValueError for a file that holds none.
        workbooks: of the round before, if there are any.
        sheets, column: where their answers are, from the second row on.

    Raises:
        OptionError: naming the file and what to do.
    """
    if path.exists() and not _holds(path, key, read_key):
        raise OptionError(
            f"output: {path} is the key of another round, whose answers nobody could read without "
            "it; give another folder."
        )
    for workbook in sorted(workbooks):
        if found := _answers(workbook, sheets, column):
            raise OptionError(
                f"output: {workbook} has {found}; give another folder, or move the file away."
            )


def _holds(path: Path, key: K, read_key: Callable[[Path], K]) -> bool:
    try:
        return read_key(path) == key
    except ValueError:
        return False


def _answers(workbook: Path, sheets: Sequence[str], column: str) -> str:
    """What a workbook holds that would be lost, in words; "" for nothing."""
    from openpyxl import load_workbook

    try:
        book = load_workbook(workbook)
        cells = [cell for name in sheets if name in book.sheetnames for cell in book[name][column]]
    # openpyxl raises whatever the part of the file that is broken leads to.
    except Exception:
        return "something in it that cannot be read"
    filled = sum(cell.value is not None for cell in cells if cell.row > 1)
    return f"{filled} answer{'s' if filled > 1 else ''} in it" if filled else ""
