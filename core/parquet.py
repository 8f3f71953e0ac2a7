"""A parquet file as a table or as rows; one that is none is one error, wherever it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd


class ParquetError(ValueError):
    """The file holds no table; the message says what is wrong with it, in one line."""


def read_frame(path: Path) -> pd.DataFrame:
    """The table, its columns typed as the file says.

    Raises:
        ParquetError: it holds none.
        OSError: it cannot be opened.
    """
    with _one_error():
        return pd.read_parquet(path)


def read_rows(path: Path) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Names of the columns, and each row with values of Python's own types; raises as `read_frame`.

    Unlike a data frame it keeps whole numbers beside gaps as they are.
    """
    from pyarrow import parquet

    with _one_error(), parquet.ParquetFile(path) as file:
        # A part at a time, so that the file and its rows are not held at once.
        parts = file.iter_batches(batch_size=4096, use_threads=False)
        rows = [row for part in parts for row in part.to_pylist()]
        return tuple(file.schema_arrow.names), rows


@contextmanager
def _one_error() -> Iterator[None]:
    import pyarrow

    try:
        yield
    except FileNotFoundError:
        raise
    # Damage shows as whatever the damaged part led to: a type's name, a letter, a length.
    except (
        pyarrow.ArrowException,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        NotImplementedError,
        OverflowError,
        MemoryError,
    ) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ParquetError(lines[0].encode("utf-8", "replace").decode()) from error
