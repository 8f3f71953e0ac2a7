"""Counting pairs of ratings: the one place where items become a table.

After this nothing depends on how many items there were. A rating that is no integer 1-5 is
refused here, so that no metric has to check again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Counts = NDArray[Any]
LEVELS = np.arange(1, 6)


def levels_of(ratings: ArrayLike | Sequence[Any], *, name: str, missing: bool) -> NDArray[np.int64]:
    """Ratings as integers 1-5, with 6 for no answer.

    Raises:
        ValueError: a rating that is no integer 1-5, naming its position; None or NaN too,
            unless `missing`.
    """
    # a list as objects, or one word in it would make strings of all its numbers
    column = np.asarray(ratings, dtype=None if hasattr(ratings, "dtype") else object).ravel()
    if column.dtype.kind in "iuf":
        found = column.astype(np.float64)
    elif set(map(type, column)) <= _NUMBERS:
        # what nearly every column is, and ten times faster than one value after the other
        found = np.array([np.nan if rating is None else rating for rating in column], np.float64)
    else:
        found = np.array([_number(rating) for rating in column], dtype=np.float64)
    absent = np.isnan(found)
    fits = np.isin(found, LEVELS) | (absent if missing else False)
    if not fits.all():
        row = int(np.flatnonzero(~fits)[0])
        expected = "an integer 1-5" + (" or None for no answer" if missing else "")
        culprit = column[row : row + 1].tolist()[0]
        raise ValueError(
            f"{name}, position {row}: expected {expected}, found {culprit!r}. "
            f"{int((~fits).sum())} of {len(column)} do not fit; correct them or leave them out."
        )
    return np.where(absent, 6, np.nan_to_num(found)).astype(np.int64)


_NUMBERS = {int, float, np.int64, np.float64, type(None)}


def _number(rating: Any) -> float:
    # pd.NA compares to nothing, NaN not even to itself
    if rating is None or type(rating).__name__ == "NAType" or rating != rating:
        return np.nan
    # a rating in words fits no level, and the error below shows it as it is
    numeric = isinstance(rating, (int, float, np.number)) and not isinstance(rating, bool)
    return float(rating) if numeric else np.inf


def _same_length(**columns: NDArray[Any]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"expected one entry an item in each, found {lengths}: "
            "give None as the prediction where there is no answer."
        )


def counts(gold: ArrayLike | Sequence[Any], predicted: ArrayLike | Sequence[Any]) -> Counts:
    """Count (gold, predicted) pairs.

    Args:
        gold: (n,) integers 1-5.
        predicted: (n,) integers 1-5, or None or NaN where there is no answer.

    Returns:
        (5, 6) integers; row gold 1-5, column predicted 1-5 and last no answer.

    Raises:
        ValueError: unequal lengths, or a rating outside 1-5, with its position.
    """
    rows = levels_of(gold, name="gold", missing=False)
    columns = levels_of(predicted, name="predicted", missing=True)
    _same_length(gold=rows, predicted=columns)
    return np.bincount((rows - 1) * 6 + columns - 1, minlength=30).reshape(5, 6)


def counts_by_session(
    gold: ArrayLike | Sequence[Any],
    predicted: ArrayLike | Sequence[Any],
    sessions: ArrayLike | Sequence[Any],
) -> Counts:
    """One table a session, for the cluster bootstrap; their sum is `counts`.

    Args:
        gold, predicted: as in `counts`.
        sessions: (n,) the session each turn belongs to.

    Returns:
        (S, 5, 6), sessions in the order of their names as text.
    """
    _, session = np.unique(np.asarray(sessions, dtype=str), return_inverse=True)
    rows = levels_of(gold, name="gold", missing=False)
    columns = levels_of(predicted, name="predicted", missing=True)
    _same_length(gold=rows, predicted=columns, sessions=session)
    number = int(session.max(initial=-1)) + 1
    cell = (session * 5 + rows - 1) * 6 + columns - 1
    return np.bincount(cell, minlength=number * 30).reshape(number, 5, 6)


def joint_counts(
    gold: ArrayLike | Sequence[Any],
    first: ArrayLike | Sequence[Any],
    second: ArrayLike | Sequence[Any],
) -> Counts:
    """Count (gold, first, second) triples of the same items, for paired differences.

    Returns:
        (5, 6, 6); summed over the last axis the table of `first`, over the one before it
        the table of `second`.
    """
    rows = levels_of(gold, name="gold", missing=False)
    one = levels_of(first, name="first", missing=True)
    two = levels_of(second, name="second", missing=True)
    _same_length(gold=rows, first=one, second=two)
    return np.bincount(((rows - 1) * 6 + one - 1) * 6 + two - 1, minlength=180).reshape(5, 6, 6)
