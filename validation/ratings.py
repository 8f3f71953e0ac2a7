"""Human ratings, read from a CSV: who gave which item which value on which scale.

Takes a wide table (a row an item, a column a rater) or a long one (a row a
rating) and gives one array with NaN where a rater did not rate. Refuses what is
not on the scale, naming the row, and states everything it left out. What the
ratings say is for `validation.agreement` and `validation.consensus`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from validation.scale import Scale
from validation.table import Table, UnreadableTableError, read_table

Float = NDArray[np.float64]

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "-", "."})
ITEM_NAMES = ("item_id", "item", "id", "dialogue_id", "clip_id", "turn_id")
RATER_NAMES = ("rater", "annotator", "rater_id", "annotator_id", "coder")
RATING_NAMES = ("rating", "score", "vote", "value", "label")
REFERENCE_NAMES = ("reference", "reference_label", "gold", "mentalmanip", "manipulative")
SHOWN = 3


class RatingsError(ValueError):
    """Ratings that cannot be trusted: names the file, the row and what to do."""


@dataclass(frozen=True)
class Ratings:
    """Every rating of every item.

    Attributes:
        source: file name, for messages.
        scale: what the values mean.
        items: ids, in the order of the file.
        raters: names, in the order of the file.
        values: (items, raters), NaN where not rated.
        reference: (items,), NaN where missing; None where the table has no such column.
        reference_name: its column, or "".
        notes: what was left out or read differently than written, and why.
    """

    source: str
    scale: Scale
    items: tuple[str, ...]
    raters: tuple[str, ...]
    values: Float
    reference: Float | None
    reference_name: str
    notes: tuple[str, ...]


def read_ratings(path: Path, scale: Scale, *, reference: str = "") -> Ratings:
    """Ratings from a wide or a long CSV.

    Long is recognised by its columns for item, rater and rating; everything else is
    wide. In a wide table a column is a rater's when most of its filled cells are
    numbers or labels of the scale, so that one wrong cell is refused and does not
    quietly turn the column into a comment.

    Args:
        path: CSV in UTF-8 (with or without BOM), UTF-16 with BOM, or cp1252.
        scale: what a rating may be.
        reference: column with the label to compare with; empty: the first column
            named like one (`REFERENCE_NAMES`), "none": no reference.

    Raises:
        RatingsError: no such file, a broken table, ratings off the scale, or one rater
            giving one item two different ratings.
    """
    try:
        table = read_table(path)
    except UnreadableTableError as error:
        raise RatingsError(str(error)) from error
    item = _column(table, ITEM_NAMES) or table.header[0]
    reference_column = _reference_column(table, reference)
    rater, rating = _column(table, RATER_NAMES), _rating_column(table, reference_column)
    notes = list(table.notes)
    if rater and rating:
        cells = [(row.number, row[item], row[rater], row[rating]) for row in table.rows]
        raters = list(dict.fromkeys(name for _, _, name, _ in cells if name))
        rating_column: str | None = rating
    else:
        raters, unused = _rater_columns(table, scale, {item, reference_column})
        notes += unused
        cells = [(row.number, row[item], name, row[name]) for row in table.rows for name in raters]
        rating_column = None
    _refuse_bad_names(table, item, rater if rating_column else None)
    if not raters:
        found = ", ".join(table.header)[:80]
        raise RatingsError(
            f"{table.name}, row 1: expected a column of ratings for each rater, found {found}."
        )
    return _assembled(table, scale, item, raters, cells, rating_column, reference_column, notes)


def _assembled(
    table: Table,
    scale: Scale,
    item: str,
    raters: Sequence[str],
    cells: Iterable[tuple[int, str, str, str]],
    rating_column: str | None,
    reference_column: str,
    notes: list[str],
) -> Ratings:
    ids = {row[item]: item_id(row[item]) for row in table.rows}
    changed = [written for written, read in ids.items() if written != read]
    if changed:
        notes.append(
            f"{len(changed)} item ids written as floats, such as {changed[0]}, "
            f"were read as {ids[changed[0]]}."
        )
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    faults: list[str] = []
    repeats = 0
    for number, written_id, name, text in cells:
        if text.casefold() in MISSING:
            continue
        where = f"{table.name}, row {number} (item {ids[written_id]:.60}), {rating_column or name}"
        value = scale.parse(text)
        if value is None:
            faults.append(f"{where}: expected {scale.expected()}, found {text!r:.80}.")
            continue
        before = seen.setdefault((ids[written_id], name), (value, number))
        if before[1] == number:
            continue
        repeats += 1
        if before[0] != value:
            faults.append(
                f"{where}: {name} gave this item {before[0]:g} in row {before[1]} "
                f"and {value:g} here; one rating per rater and item."
            )
    references, bad = _references(table, scale, item, ids, reference_column)
    faults += bad
    if faults:
        raise RatingsError(
            _summary(faults) + " Fix the rows; if the scale is another one, name its levels."
        )
    if repeats:
        notes.append(f"{repeats} repeated ratings (same rater, item and value) were dropped.")
    return _compacted(table, scale, ids, raters, seen, references, reference_column, notes)


def _references(
    table: Table, scale: Scale, item: str, ids: dict[str, str], column: str
) -> tuple[dict[str, float], list[str]]:
    found: dict[str, float] = {}
    faults: list[str] = []
    for row in table.rows if column else ():
        text = row[column]
        if text.casefold() in MISSING:
            continue
        key, value = ids[row[item]], scale.parse(text)
        where = f"{table.name}, row {row.number} (item {key:.60}), {column}"
        if value is None:
            faults.append(f"{where}: expected {scale.expected()}, found {text!r:.80}.")
        elif found.setdefault(key, value) != value:
            faults.append(f"{where}: {text} differs from {found[key]:g} in an earlier row.")
    return found, faults


def _compacted(
    table: Table,
    scale: Scale,
    ids: dict[str, str],
    raters: Sequence[str],
    seen: dict[tuple[str, str], tuple[float, int]],
    references: dict[str, float],
    reference_column: str,
    notes: list[str],
) -> Ratings:
    every = list(dict.fromkeys(ids.values()))
    rated, active = {key for key, _ in seen}, {name for _, name in seen}
    idle = [name for name in raters if name not in active]
    if idle:
        notes.append(f"Dropped raters without a single rating: {', '.join(idle)}.")
    unrated = [key for key in every if key not in rated]
    if unrated:
        notes.append(f"Dropped {len(unrated)} items without a single rating: {_first(unrated)}.")
    items = tuple(key for key in every if key in rated)
    names = tuple(name for name in raters if name in active)
    row_of, column_of = _places(items), _places(names)
    values = np.full((len(items), len(names)), np.nan)
    for (key, name), (value, _) in seen.items():
        values[row_of[key], column_of[name]] = value
    reference = None
    if reference_column:
        reference = np.array([references.get(key, np.nan) for key in items], dtype=float)
        if gaps := int(np.isnan(reference).sum()):
            notes.append(f"{gaps} items have no reference label in {reference_column}.")
    return Ratings(
        table.name, scale, items, names, values, reference, reference_column, tuple(notes)
    )


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def item_id(written: str) -> str:
    """An id as meant: a spreadsheet that met an empty cell writes 85514414 as 85514414.0."""
    return re.sub(r"(?<=\d)\.0+$", "", written) if re.fullmatch(r"\d+\.0+", written) else written


def of_group(ratings: Ratings, group: str) -> Ratings:
    """The ratings of some raters only, over the same items.

    Args:
        group: one-letter names run together ("BFGH") or names with commas; empty: all.

    Raises:
        RatingsError: a name that is no rater, or fewer than two.
    """
    if not group:
        return ratings
    split = "," in group or group in ratings.raters
    names = [name.strip() for name in group.split(",")] if split else list(group)
    names = list(dict.fromkeys(name for name in names if name))
    unknown = [name for name in names if name not in ratings.raters]
    if unknown:
        raise RatingsError(
            f"group: {', '.join(unknown)} not among the raters of {ratings.source}, "
            f"which are {', '.join(ratings.raters) or 'none'}."
        )
    if len(names) < 2:
        raise RatingsError(f"group: expected two or more raters, found {group!r}.")
    columns = [ratings.raters.index(name) for name in names]
    left_out = [name for name in ratings.raters if name not in names]
    note = f"Left out raters not in the group: {', '.join(left_out)}."
    return replace(
        ratings,
        raters=tuple(names),
        values=ratings.values[:, columns],
        notes=(*ratings.notes, note) if left_out else ratings.notes,
    )


def _column(table: Table, names: Sequence[str]) -> str | None:
    by_name = {column.strip().casefold(): column for column in reversed(table.header)}
    return next((by_name[name] for name in names if name in by_name), None)


def _rating_column(table: Table, reference: str) -> str | None:
    return _column(
        replace(table, header=tuple(name for name in table.header if name != reference)),
        RATING_NAMES,
    )


def _reference_column(table: Table, asked: str) -> str:
    if asked.casefold() == "none":
        return ""
    if not asked:
        return _column(table, REFERENCE_NAMES) or ""
    if asked not in table.header:
        raise RatingsError(
            f"{table.name}: reference: no column {asked!r}; found {', '.join(table.header)}."
        )
    return asked


def _rater_columns(table: Table, scale: Scale, taken: set[str]) -> tuple[list[str], list[str]]:
    raters: list[str] = []
    unused: list[str] = []
    for name in table.header:
        if name in taken:
            continue
        if not name:
            unused.append("Left out the column without a name.")
            continue
        filled = [row[name] for row in table.rows if row[name].casefold() not in MISSING]
        likely = sum(_looks_like_a_rating(text, scale) for text in filled)
        if not filled or likely * 2 > len(filled):
            raters.append(name)
        else:
            unused.append(f"Left out column {name!r}: its cells are text, not ratings.")
    return raters, unused


def _looks_like_a_rating(text: str, scale: Scale) -> bool:
    return scale.parse(text) is not None or re.fullmatch(r"[+-]?\d+([.,]\d+)?", text) is not None


def _refuse_bad_names(table: Table, item: str, rater: str | None) -> None:
    blank = [
        f"{table.name}, row {row.number}, {column}: expected a name, found nothing. "
        "Give the row its id or delete it."
        for row in table.rows
        for column in (item, rater)
        if column and not row[column]
    ]
    if blank:
        raise RatingsError(_summary(blank))
    guessed = item.casefold() not in ITEM_NAMES
    if guessed and not rater and len({row[item] for row in table.rows}) < len(table.rows):
        raise RatingsError(
            f"{table.name}: found no column of item ids, and the first one, {item!r}, repeats "
            "its values. Name the ids' column item_id."
        )


def _summary(faults: Sequence[str]) -> str:
    more = f" And {len(faults) - SHOWN} more." if len(faults) > SHOWN else ""
    return " ".join(faults[:SHOWN]) + more


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
