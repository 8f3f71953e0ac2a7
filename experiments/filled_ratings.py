"""Filled rating sheets to a CSV of ratings that validate_labels reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments.options import OptionError
from experiments.rating_workbook import CHOICE, HEADERS, read_export, read_workbook
from experiments.ratings_export import KEY_FILE
from experiments.spoken_files import write_table
from validation.rating_sheets import Cell, RatingKey, SheetError, checked, read_key

RATINGS = "ratings.csv"
FIRST = 20


@dataclass(frozen=True)
class Filled:
    """What came back: the CSV written, the key, and what a reader should know."""

    path: Path
    key: RatingKey
    notes: tuple[str, ...]


def read_filled(folder: Path, key_file: Path | None, *, skip_invalid: bool) -> Filled:
    """Every workbook and export under a folder, as folder/ratings.csv.

    Args:
        key_file: of the round; None for the one that ratings_export left in the folder.
        skip_invalid: leave faulty cells out and say so, instead of ending.

    Raises:
        OptionError: no key, no filled sheet, or faulty cells: all are named.
    """
    try:
        key = read_key(key_file or folder / KEY_FILE)
    except SheetError as error:
        raise OptionError(f"key: {error}") from error
    cells: list[Cell] = []
    problems, files = [], []
    looked_at = _files(folder)
    for path in looked_at:
        read = read_workbook if path.suffix.lower() == ".xlsx" else read_export
        found, wrong = read(path, key)
        # What ratings_export wrote and nobody has filled in stays out of the way.
        if not wrong and not any(str(cell.given or "").strip() for cell in found):
            continue
        files.append(path.name)
        cells += found
        problems += wrong
    ratings = checked(key, cells)
    problems += ratings.problems
    if problems and not skip_invalid:
        said = [f"  {problem.said()}" for problem in problems[:FIRST]]
        more = len(problems) - FIRST
        said += [f"  and {more} more"] if more > 0 else []
        raise OptionError(
            "ratings: {} faults; mend them, or leave them out with skip_invalid=true:\n{}".format(
                len(problems), "\n".join(said)
            )
        )
    if not ratings.given:
        many = "1 sheet" if len(looked_at) == 1 else f"{len(looked_at)} sheets"
        raise OptionError(
            f"ratings: {folder} holds no filled sheet of this round: {many} looked at, none with a "
            f"rating; fill in column {HEADERS[-1]!r} of a workbook, or give exports of Label "
            f"Studio with {CHOICE!r} chosen."
        )
    table = pd.DataFrame(ratings.given, columns=["rater", "item", "rating"])
    path = folder / RATINGS
    write_table(path, table.sort_values(["item", "rater"])[["item", "rater", "rating"]])
    experts = table["rater"].nunique()
    asked = len(key.turns) * experts
    notes = [
        f"{len(table):,} of {asked:,} ratings by {experts} of {len(key.orders)} experts, from "
        f"{', '.join(files)}: {path}",
        f"{ratings.empty:,} cells left empty, {len(problems):,} faulty and left out",
    ]
    return Filled(path, key, (*notes, *(f"  {one.said()}" for one in problems[:FIRST])))


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in (".xlsx", ".json")
        and path.relative_to(folder).parts[0] != KEY_FILE.parts[0]
        and not path.name.startswith(("~", "."))
        and path.is_file()
    )
