"""An expert's workbook and Label Studio project of a round of ratings, written and read back.

One row a turn: its code, the clip, the context, the transcript, and a cell that takes 1 to 5
and nothing else. What the ratings mean is for `validation.rating_sheets`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any

from core.replacing import replacing
from experiments.annotation_workbook import AUDIO_FOLDER, OWNER_CELL, POINTS_A_LINE, put, text_of
from validation.annotation_answers import Problem
from validation.rating_sheets import LEVELS, Cell, RatingKey, Turn, words_of

GUIDELINE, SHEET = "Guideline", "Ratings"
HEADERS = ("Item", "Recording", "Context", "Transcript", "Distress (1-5)")
WIDTHS = (14, 22, 60, 60, 14)
CHOICE = "distress"
# A row can be 409 points high; a longer text can still be read in its cell.
HIGHEST = 400
Shown = Mapping[str, tuple[str, str]]
"""Item id -> (transcript, context), writable."""


def write_workbook(path: Path, expert: str, turns: Sequence[Turn], shown: Shown) -> None:
    """One expert's workbook, turns in the order given."""
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font, Protection
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    book.properties.creator = "Undertone"
    guideline: Any = book.active
    guideline.title = GUIDELINE
    put(guideline["A1"], "This workbook is for")
    put(guideline[OWNER_CELL], expert)
    for row, line in enumerate(_guideline().splitlines(), start=3):
        put(guideline.cell(row, 1), line)
        guideline.merge_cells(start_row=row, end_row=row, start_column=1, end_column=2)
        guideline.cell(row, 1).alignment = Alignment(wrap_text=True, vertical="top")
        guideline.row_dimensions[row].height = POINTS_A_LINE * max(1, ceil(len(line) / 110))
    guideline.column_dimensions["A"].width, guideline.column_dimensions["B"].width = 30, 80
    guideline.protection.sheet = True

    sheet: Any = book.create_sheet(SHEET)
    for column, (title, width) in enumerate(zip(HEADERS, WIDTHS, strict=True), start=1):
        put(sheet.cell(1, column), title)
        sheet.cell(1, column).font = Font(bold=True)
        sheet.column_dimensions["ABCDE"[column - 1]].width = width
    for row, turn in enumerate(turns, start=2):
        transcript, context = shown[turn.item_id]
        for column, text in enumerate((turn.code, turn.clip, context, transcript), start=1):
            cell = sheet.cell(row, column)
            put(cell, text)
            cell.alignment = Alignment(wrap_text=True, vertical="top")
        sheet.cell(row, 2).hyperlink = f"{AUDIO_FOLDER}/{turn.clip}"
        sheet.cell(row, 2).font = Font(color="0563C1", underline="single")
        sheet.cell(row, 5).protection = Protection(locked=False)
        lines = max(_lines(text) for text in (transcript, context))
        sheet.row_dimensions[row].height = min(HIGHEST, POINTS_A_LINE * (lines + 0.5))
    sheet.freeze_panes = "A2"
    levels = ",".join(map(str, LEVELS))
    rule = DataValidation(
        type="list", formula1=f'"{levels}"', allow_blank=True, showErrorMessage=True
    )
    rule.errorTitle, rule.error = "1 to 5", "Write 1, 2, 3, 4 or 5, or leave the cell empty."
    sheet.add_data_validation(rule)
    rule.add(f"E2:E{len(turns) + 1}")
    # Without a password: it is there against slips, and stops a sort of one column alone.
    sheet.protection.sheet = True
    sheet.protection.formatRows = sheet.protection.formatColumns = False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        book.save(stream)


def _guideline() -> str:
    return Path(__file__).with_name("rating_guideline.txt").read_text(encoding="utf-8")


def _lines(text: str) -> int:
    return sum(max(1, ceil(len(line) / 58)) for line in text.split("\n"))


def read_workbook(path: Path, key: RatingKey) -> tuple[list[Cell], list[Problem]]:
    """The cells of one filled workbook, faulty or not, and what is wrong with the file."""
    from openpyxl import load_workbook

    try:
        book = load_workbook(path)
    # openpyxl raises whatever the part of the file that is broken leads to.
    except Exception as error:
        return [], [Problem(path.name, "", "an XLSX workbook", f"none ({error!r:.60})")]
    owner = ""
    if GUIDELINE in book.sheetnames:
        owner = str(book[GUIDELINE][OWNER_CELL].value or "").strip()
    if owner not in key.orders:
        place, expected = f"{GUIDELINE}!{OWNER_CELL}", f"one of {', '.join(key.orders)}"
        return [], [Problem(path.name, place, expected, repr(owner))]
    if SHEET not in book.sheetnames:
        return [], [Problem(path.name, "", f"a sheet {SHEET!r}", ", ".join(book.sheetnames))]
    return list(_cells(book[SHEET], path.name, owner)), []


def _cells(sheet: Any, file: str, owner: str) -> Iterator[Cell]:
    for row in sheet.iter_rows(min_row=2, min_col=1, max_col=5):
        code, clip, context, transcript, given = (cell.value for cell in row)
        if all(value is None for value in (code, clip, context, transcript, given)):
            continue
        if row[4].data_type == "f":
            given = f"the formula {getattr(given, 'text', given)}"
        yield Cell(
            owner,
            "" if code is None else str(code).strip(),
            given,
            file,
            f"{SHEET}!E{row[0].row}",
            text_of(clip).strip(),
            words_of(text_of(transcript), text_of(context)),
        )


def interface() -> str:
    """The labelling interface, for Settings > Labeling Interface > Code."""
    choices = "\n".join(f'    <Choice value="{n}" hotkey="{n}"/>' for n in LEVELS)
    scale = "; ".join(line for line in _guideline().splitlines() if line[1:4] == " = ")
    return f"""<View>
  <Header value="How distressed is the patient in this turn?"/>
  <Header value="{scale}" size="5"/>
  <Text name="context" value="$context"/>
  <Audio name="turn" value="$audio"/>
  <Text name="transcript" value="$transcript"/>
  <Choices name="{CHOICE}" toName="turn" choice="single" showInline="true">
{choices}
  </Choices>
</View>
"""


def tasks(
    expert: str, turns: Sequence[Turn], shown: Shown, audio_url: str
) -> list[dict[str, dict[str, str]]]:
    """The tasks of one expert's project, for Import; no label and no item id in them."""
    made = []
    for turn in turns:
        transcript, context = shown[turn.item_id]
        data = {"item": turn.code, "assigned_to": expert, "audio": audio_url + turn.clip}
        made.append({"data": {**data, "context": context, "transcript": transcript}})
    return made


def read_export(path: Path, key: RatingKey) -> tuple[list[Cell], list[Problem]]:
    """The ratings in an export of Label Studio, its JSON or its JSON-MIN."""
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        return [], [Problem(path.name, "", "an export of Label Studio", f"no JSON ({error})")]
    if not isinstance(said, list) or not all(isinstance(task, dict) for task in said):
        return [], [Problem(path.name, "", "a list of tasks", "something else")]
    cells, problems = [], []
    for number, task in enumerate(said, start=1):
        data = task.get("data", task)
        data = data if isinstance(data, dict) else {}
        place, owner = f"task {number}", str(data.get("assigned_to"))
        if owner not in key.orders:
            problems.append(Problem(path.name, place, "a task of ratings_export", repr(owner)))
            continue
        cells.append(
            Cell(
                owner,
                str(data.get("item", "")),
                _chosen(task),
                path.name,
                place,
                PurePosixPath(str(data.get("audio", ""))).name,
                words_of(str(data.get("transcript", "")), str(data.get("context", ""))),
            )
        )
    return cells, problems


def _chosen(task: Mapping[str, Any]) -> object:
    """The choice of a task, None where it was skipped; words that say so for several."""
    if "annotations" not in task:
        return task.get(CHOICE)
    drawn = [each for each in task["annotations"] or () if not each.get("was_cancelled")]
    found = [
        choice
        for each in drawn
        for result in each.get("result") or ()
        if result.get("from_name") == CHOICE
        for choice in (result.get("value") or {}).get("choices") or ()
    ]
    return f"{len(found)} choices" if len(found) > 1 else next(iter(found), None)
