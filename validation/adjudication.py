"""The adjudication round: judgements of tied items, read from a CSV and applied.

Study 2 (SpeechMentalManip, section 6.1): two raters who did not vote on an item
judge it, a third where they differ. Who may and what follows is
`validation.consensus`'s; here is the file and where its faults are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.faults import shown
from validation.annotation_answers import EXPECTED, Problem, binary
from validation.annotation_design import MODALITIES, Modality
from validation.annotation_key import Shown
from validation.consensus import AdjudicationError, ItemLabel, adjudicated
from validation.ratings import ITEM_NAMES, MISSING, RATER_NAMES, RATING_NAMES, item_id
from validation.table import Row, Table, UnreadableTableError, read_table

LABELS = ("NO", "YES")
Place = tuple[Modality, str]


@dataclass(frozen=True)
class Judgements:
    """(modality, item) -> adjudicator -> label, in the order of the file; its faults and notes."""

    given: Mapping[Place, Mapping[str, str]]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def read_judgements(
    path: Path, codes: Mapping[str, Shown], modalities: Sequence[Modality]
) -> Judgements:
    """Judgements from a CSV with columns item, rater and rating; modality where there are two.

    Args:
        codes: code -> item, for files that name items as their annotators saw them.
        modalities: those that were rated.

    Raises:
        UnreadableTableError: no such table.
    """
    table = read_table(path)
    columns = {
        what: _column(table, names)
        for what, names in (("item", ITEM_NAMES), ("rater", RATER_NAMES), ("rating", RATING_NAMES))
    }
    given: dict[Place, dict[str, str]] = {}
    problems: list[Problem] = []
    blank = 0
    for row in table.rows:
        item, rater, rating = (row[columns[what]] for what in ("item", "rater", "rating"))
        if rating.casefold() in MISSING:
            blank += 1
            continue
        where = f"row {row.number}"
        mode, item = _meant(row, item, codes, modalities)
        value = binary(rating)
        if mode is None:
            expected = f"one of {', '.join(modalities)} in a column modality"
            problems.append(Problem(table.name, where, expected, shown(row.cells.get("modality"))))
        elif value is None:
            problems.append(
                Problem(table.name, f"{where}, {columns['rating']}", EXPECTED, shown(rating))
            )
        elif not rater:
            problems.append(
                Problem(table.name, f"{where}, {columns['rater']}", "a name", "nothing")
            )
        elif rater in given.setdefault((mode, item), {}):
            found = f"a second one by {rater} of {item}"
            problems.append(
                Problem(table.name, where, "one judgement by a rater of an item", found)
            )
        else:
            given[mode, item][rater] = LABELS[value]
    notes = [*table.notes]
    if blank:
        notes.append(f"{table.name}: {blank} rows without a rating were left out.")
    return Judgements({at: who for at, who in given.items() if who}, tuple(problems), tuple(notes))


def _column(table: Table, names: Sequence[str]) -> str:
    by_name = {column.casefold(): column for column in table.header}
    for name in names:
        if name in by_name:
            return by_name[name]
    found = ", ".join(table.header)
    raise UnreadableTableError(f"{table.name}: expected a column {names[0]}, found {found}.")


def _meant(
    row: Row, item: str, codes: Mapping[str, Shown], modalities: Sequence[Modality]
) -> tuple[Modality | None, str]:
    if item in codes:
        return codes[item].modality, codes[item].item_id
    said = row.cells.get("modality", "").casefold()
    if not said and len(modalities) == 1:
        return modalities[0], item_id(item)
    return next((mode for mode in MODALITIES if mode == said), None), item_id(item)


def completed(
    records: Mapping[Modality, Sequence[ItemLabel]], judgements: Judgements, file: str
) -> tuple[dict[Modality, list[ItemLabel]], list[Problem]]:
    """The records with UNRESOLVED items decided where their adjudicators decided.

    Returns:
        All records in their order, and what could not be applied and why.
    """
    problems: list[Problem] = []
    left = dict(judgements.given)
    after: dict[Modality, list[ItemLabel]] = {}
    for mode, of_mode in records.items():
        after[mode] = []
        for record in of_mode:
            judged = left.pop((mode, record.item_id), None)
            try:
                after[mode].append(adjudicated(record, judged) if judged else record)
            except AdjudicationError as error:
                after[mode].append(record)
                problems.append(Problem(file, mode, "judgements of a tied item", str(error)))
    problems += [
        Problem(file, mode, "an item that was rated", f"item {item}") for mode, item in left
    ]
    return after, problems
