"""What an import of annotations leaves: ratings, consensus, ties to adjudicate, faults."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from core.replacing import replace_text
from experiments.table import Grid, print_grid
from validation.annotation_answers import Problem, Rated
from validation.annotation_design import Modality
from validation.annotation_key import Shown
from validation.consensus import ItemLabel, assign_adjudicators

Consensus = Mapping[Modality, Sequence[ItemLabel]]
STATUSES = ("MAJORITY", "ADJUDICATED", "TIE_BROKEN", "UNRESOLVED", "UNRATED")


def write_problems(problems: Iterable[Problem], path: Path) -> None:
    """A row a fault; a header alone where there is none."""
    rows = [(each.file, each.place, each.expected, each.found) for each in problems]
    _write(path, ("file", "place", "expected", "found"), rows)


def write_tables(
    ratings: Sequence[Rated],
    consensus: Consensus,
    reference: Mapping[str, str],
    codes: Mapping[str, Shown],
    folder: Path,
) -> tuple[list[Path], list[str]]:
    """For each modality its ratings, a row each, and its consensus, a row an item; and the ties.

    Modalities are kept apart because agreement is measured within one (section 6.1); the
    reference label goes along so that it can be compared with.

    Returns:
        The files, and a line for each tie that nobody can be asked about now.
    """
    files: list[Path] = []
    unheard: list[str] = []
    ties: list[tuple[str, ...]] = []
    code_of = {(each.modality, each.item_id): code for code, each in codes.items()}
    for mode, records in consensus.items():
        place = {record.item_id: at for at, record in enumerate(records)}
        mine = sorted(
            (each for each in ratings if each.modality == mode),
            key=lambda each: (place[each.item_id], each.rater),
        )
        rows = [
            (e.item_id, e.rater, str(e.rating), e.modality, reference.get(e.item_id, ""))
            for e in mine
        ]
        files += [folder / f"ratings_{mode}.csv", folder / f"consensus_{mode}.csv"]
        _write(files[-2], ("item_id", "rater", "rating", "modality", "reference"), rows)
        _write_consensus(files[-1], mode, records, reference)
        # In the order in which `agreement` meets them, so that both ask the same people.
        raters = list(dict.fromkeys(each.rater for each in mine))
        listed, nobody = _ties(mode, records, raters, code_of)
        ties += listed
        unheard += nobody
    files.append(_free(folder))
    _write(files[-1], ("item_id", "modality", "rater", "rating", "role", "code"), ties)
    return files, unheard


def _ties(
    mode: Modality,
    records: Sequence[ItemLabel],
    raters: Sequence[str],
    code_of: Mapping[tuple[Modality, str], str],
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Rows for those who may decide each tie, and what stands in the way of the others."""
    judged = {each.item_id: each.adjudicators for each in records if each.adjudicators}
    rows: list[tuple[str, ...]] = []
    lines = []
    for each in assign_adjudicators(records, raters):
        where = f"UNRESOLVED {mode} {each.item_id}"
        if each.item_id in judged:
            names = " and ".join(judged[each.item_id])
            lines.append(f"{where}: {names} differ; add a third judgement below theirs.")
            continue
        who = (("first", each.first), ("second", each.second), ("third", each.tie_breaker))
        code = code_of.get((mode, each.item_id), "")
        rows += [(each.item_id, mode, name, "", role, code) for role, name in who if name]
        if each.reason:
            lines.append(f"{where}: {each.reason}.")
    return rows, lines


def _free(folder: Path) -> Path:
    """Where the ties go: a list that was filled in holds somebody's work and stays."""
    number = 1
    while True:
        path = folder / f"to_adjudicate{'' if number == 1 else f'_{number}'}.csv"
        if not path.exists() or not _filled(path):
            return path
        number += 1


def _filled(path: Path) -> bool:
    # Whatever a spreadsheet made of it, a list that is not plainly empty is kept.
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        return any("rating" not in row or (row["rating"] or "").strip() for row in rows)
    except (UnicodeDecodeError, csv.Error):
        return True


def _write_consensus(
    path: Path, mode: Modality, records: Sequence[ItemLabel], reference: Mapping[str, str]
) -> None:
    header = ("item_id", "modality", "label", "status", "votes_YES", "votes_NO", "raters")
    rows = [
        (
            each.item_id,
            mode,
            each.label or "",
            each.status,
            str(each.histogram["YES"]),
            str(each.histogram["NO"]),
            str(len(each.voters)),
            " ".join(each.adjudicators),
            reference.get(each.item_id, ""),
        )
        for each in records
    ]
    _write(path, (*header, "adjudicators", "reference"), rows)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    replace_text(path, text.getvalue())


def before_after(before: Consensus, after: Consensus) -> Grid:
    """How many items have each status and label, before and after adjudication."""
    rows = []
    for mode in before:
        for when, records in (("before", before[mode]), ("after", after[mode])):
            status: Counter[str] = Counter(each.status for each in records)
            label = Counter(each.label for each in records)
            counts = [*(status[name] for name in STATUSES), label["YES"], label["NO"], label[None]]
            rows.append((mode, when, *map(str, counts)))
    return Grid(("modality", "adjudication", *STATUSES, "YES", "NO", "no label"), tuple(rows))


def print_before_after(before: Consensus, after: Consensus, stream: TextIO) -> None:
    """The grid, then an item a line that adjudication decided."""
    print_grid(before_after(before, after), "Consensus", stream)
    for mode in before:
        for was, now in zip(before[mode], after[mode], strict=True):
            if now != was:
                votes = ", ".join(f"{count} {label}" for label, count in now.histogram.items())
                print(
                    f"{mode} {now.item_id}: {was.status} ({votes}) -> {now.status} "
                    f"{now.label or 'without a label'} by {', '.join(now.adjudicators)}",
                    file=stream,
                )
