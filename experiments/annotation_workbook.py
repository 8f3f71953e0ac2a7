"""The workbook of one annotator: Guideline, Text Only and Audio Only, written and read back.

As in study 2 (SpeechMentalManip, appendix C): one modality a tab, 0 or 1 in a cell
that takes nothing else, no label anywhere. Words are written as words: a line that
begins with = + - or @ is never a formula. What the answers mean is for
`validation.annotation_answers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.replacing import replacing
from validation.annotation_answers import Answer, Problem, Read
from validation.annotation_design import MODALITIES, Modality
from validation.annotation_key import Shown, fingerprint

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

GUIDELINE = "Guideline"
TABS: dict[Modality, str] = {"text": "Text Only", "audio": "Audio Only"}
HEADERS: dict[Modality, tuple[str, str, str]] = {
    "text": ("Item", "Conversation", "Manipulative? (0 = no, 1 = yes)"),
    "audio": ("Item", "Recording", "Manipulative? (0 = no, 1 = yes)"),
}
OWNER_CELL = "B1"
AUDIO_FOLDER = "audio"
# A row can be 409 points high and shows what fits; text beyond it goes on in the next row,
# which also stays far below the 32,767 characters that a cell can hold.
LINES_A_ROW, CHARACTERS_A_LINE, POINTS_A_LINE = 26, 90, 15
_CONTINUED = re.compile(r"(\S+) \((\d+)\)")
# XML 1.0 has no way to write these, so no workbook can hold them.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# A reader takes this for the escape of another character; the escape of its own "_" prevents it.
_ESCAPE_LIKE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_ESCAPED = re.compile(r"_x005F_(?=x[0-9A-Fa-f]{4}_)")


def writable(text: str) -> tuple[str, int]:
    """The text with a replacement character for each one no workbook can hold, and their number."""
    return _UNWRITABLE.subn("\N{REPLACEMENT CHARACTER}", re.sub("\r\n?", "\n", text))


def rows_of(text: str) -> list[str]:
    """A conversation cut where a row is full, at line ends if it can be."""
    parts: list[str] = []
    room = 0
    for line in text.split("\n"):
        widest = LINES_A_ROW * CHARACTERS_A_LINE
        for piece in [line[at : at + widest] for at in range(0, len(line), widest)] or [""]:
            lines = max(1, ceil(len(piece) / CHARACTERS_A_LINE))
            if not parts or lines > room:
                parts.append(piece)
                room = LINES_A_ROW - lines
            else:
                parts[-1] += "\n" + piece
                room -= lines
    return parts


def write_workbook(
    path: Path,
    annotator: str,
    asked: Sequence[tuple[Modality, Sequence[Shown]]],
    texts: Mapping[str, str],
) -> None:
    """One annotator's workbook.

    Args:
        asked: modality and items, in the order to work on them: that of the tabs.
        texts: item -> words that are `writable`.
    """
    from openpyxl import Workbook

    book = Workbook()
    book.properties.creator = "Undertone"
    guideline = book.active
    assert guideline is not None
    _write_guideline(guideline, annotator)
    for mode, items in asked:
        sheet = book.create_sheet(TABS[mode])
        row = 2
        for each in items:
            parts = rows_of(texts[each.item_id]) if mode == "text" else [each.content]
            for number, part in enumerate(parts, start=1):
                _write_row(sheet, row, mode, each.code, part, number)
                row += 1
        _finish(sheet, mode, row - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        book.save(stream)


def _write_guideline(sheet: Any, annotator: str) -> None:
    from openpyxl.styles import Alignment, Font

    sheet.title = GUIDELINE
    put(sheet["A1"], "This workbook is for")
    put(sheet[OWNER_CELL], annotator)
    sheet["A1"].font = sheet[OWNER_CELL].font = Font(bold=True)
    guideline = Path(__file__).with_name("annotation_guideline.txt").read_text(encoding="utf-8")
    for row, line in enumerate(guideline.splitlines(), start=3):
        put(sheet.cell(row, 1), line)
        sheet.merge_cells(start_row=row, end_row=row, start_column=1, end_column=2)
        sheet.cell(row, 1).alignment = Alignment(wrap_text=True, vertical="top")
        sheet.row_dimensions[row].height = POINTS_A_LINE * max(1, ceil(len(line) / 110))
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 30, 80
    sheet.protection.sheet = True


def _write_row(
    sheet: Worksheet, row: int, mode: Modality, code: str, content: str, part: int
) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill, Protection

    put(sheet.cell(row, 1), code if part == 1 else f"{code} ({part})")
    cell = sheet.cell(row, 2)
    put(cell, content)
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    answer = sheet.cell(row, 3)
    if part == 1:
        answer.protection = Protection(locked=False)
    else:
        answer.fill = PatternFill("solid", fgColor="DDDDDD")
    if mode == "audio":
        cell.hyperlink = f"{AUDIO_FOLDER}/{content}"
        cell.font = Font(color="0563C1", underline="single")
    lines = sum(max(1, ceil(len(line) / CHARACTERS_A_LINE)) for line in content.split("\n"))
    sheet.row_dimensions[row].height = POINTS_A_LINE * (lines + 0.5)


def put(cell: Any, text: str) -> None:
    """Words into a cell as words: never a formula, and the same when read back."""
    cell.value = _ESCAPE_LIKE.sub("_x005F_", text)
    # Set after the value, which makes a formula of every text that begins with "=".
    cell.data_type = "s"
    # So that it stays text when somebody edits the cell.
    cell.number_format, cell.quotePrefix = "@", text[:1] in "=+-@\t" and text != ""


def _finish(sheet: Worksheet, mode: Modality, last: int) -> None:
    from openpyxl.styles import Alignment, Font
    from openpyxl.worksheet.datavalidation import DataValidation

    for number, title in enumerate(HEADERS[mode], start=1):
        put(sheet.cell(1, number), title)
        sheet.cell(1, number).font = Font(bold=True)
        sheet.cell(1, number).alignment = Alignment(wrap_text=True)
    for column, width in zip("ABC", (18, CHARACTERS_A_LINE + 5, 18), strict=True):
        sheet.column_dimensions[column].width = width
    sheet.freeze_panes = "A2"
    rule = DataValidation(type="list", formula1='"0,1"', allow_blank=True, showErrorMessage=True)
    rule.errorTitle, rule.error = "0 or 1", "Write 1 for manipulative or 0 for not manipulative."
    sheet.add_data_validation(rule)
    rule.add(f"C2:C{max(last, 2)}")
    # Without a password: it is there against slips, and stops a sort of one column alone.
    sheet.protection.sheet = True
    sheet.protection.formatRows = sheet.protection.formatColumns = False


def read_workbook(path: Path, annotators: Sequence[str]) -> Read:
    """The answers in one workbook, faulty or not.

    Args:
        annotators: who may own it, by the guideline's cell or else by the file's name.
    """
    from openpyxl import load_workbook

    try:
        book = load_workbook(path)
    # openpyxl raises whatever the part of the file that is broken leads to.
    except Exception as error:
        problem = Problem(path.name, "", "an XLSX workbook", f"a file that is none ({error})")
        return Read("", (), (), (problem,), ())
    owner = _owner(book, path, annotators)
    if owner is None:
        found = "nobody's name there or in the file's name"
        expected = f"one of {annotators[0]} to {annotators[-1]}"
        problem = Problem(path.name, f"{GUIDELINE}!{OWNER_CELL}", expected, found)
        return Read("", (), (), (problem,), ())
    if path.stem in annotators and path.stem != owner:
        expected = f"{path.stem}, as the file's name has it"
        problem = Problem(path.name, f"{GUIDELINE}!{OWNER_CELL}", expected, owner)
        return Read("", (), (), (problem,), ())
    tabs = {sheet.title: sheet for sheet in book.worksheets}
    answers: list[Answer] = []
    problems: list[Problem] = []
    notes = [
        f"{path.name}: sheet {name!r} was not read."
        for name in book.sheetnames
        if name not in (GUIDELINE, *TABS.values())
    ]
    there: list[Modality] = []
    for mode in MODALITIES:
        if TABS[mode] not in tabs:
            names = ", ".join(book.sheetnames)
            problems.append(Problem(path.name, "", f'a sheet "{TABS[mode]}"', names))
            continue
        there.append(mode)
        tab = _read_tab(tabs[TABS[mode]], path.name, owner, mode)
        answers += tab.answers
        problems += tab.problems
        notes += tab.notes
    return Read(owner, tuple(there), tuple(answers), tuple(problems), tuple(notes))


def _owner(book: Workbook, path: Path, annotators: Sequence[str]) -> str | None:
    for sheet in book.worksheets:
        said = str(sheet[OWNER_CELL].value or "").strip() if sheet.title == GUIDELINE else ""
        if said in annotators:
            return said
    return path.stem if path.stem in annotators else None


def _read_tab(sheet: Worksheet, file: str, owner: str, mode: Modality) -> Read:
    answers: dict[int, Answer] = {}
    contents: dict[int, list[str]] = {}
    problems: list[Problem] = []
    notes: list[str] = []
    # One answer in a cell merged over two rows is nobody's for sure, the upper row's included.
    merged = {
        place: str(area)
        for area in sheet.merged_cells.ranges
        for places in area.rows
        for place in places
    }
    latest = 0
    for cells in sheet.iter_rows(min_row=2, min_col=1, max_col=max(sheet.max_column, 3)):
        code, content, rating = (cell.value for cell in cells[:3])
        row = int(cells[0].row or 0)
        notes += _beside(sheet, file, cells[3:])
        if code is None and content is None and rating is None:
            continue
        written = "" if code is None else str(code).strip()
        place = f"{sheet.title}!A{row}"
        if continued := _CONTINUED.fullmatch(written):
            if rating is not None:
                found = f"{rating!r} in a row that goes on with {continued[1]}"
                problems.append(Problem(file, f"{sheet.title}!C{row}", "nothing", found))
            if latest and answers[latest].code == continued[1]:
                contents[latest].append(text_of(content))
            else:
                found = "this row somewhere else"
                problems.append(Problem(file, place, f"it right below {continued[1]}", found))
            continue
        instead = f"a merged cell ({merged[row, 3]})" if (row, 3) in merged else None
        if cells[2].data_type == "f":
            instead = f"the formula {getattr(rating, 'text', rating)}"
        latest = row
        contents[row] = [text_of(content)]
        answers[row] = Answer(
            file, owner, mode, written, rating, f"{sheet.title}!C{row}", place, None, instead
        )
    return Read(
        owner, (mode,), tuple(_with(answers, contents, mode)), tuple(problems), tuple(notes)
    )


def _with(
    answers: Mapping[int, Answer], contents: Mapping[int, Sequence[str]], mode: Modality
) -> Iterator[Answer]:
    for row, answer in answers.items():
        words = "\n".join(contents[row])
        yield replace(answer, content=fingerprint(words) if mode == "text" else words.strip())


def _beside(sheet: Worksheet, file: str, cells: Sequence[Any]) -> list[str]:
    return [
        f"{file}, {sheet.title}!{cell.coordinate}: beside the table, not read: {str(cell.value)!r}."
        for cell in cells
        if cell.value is not None
    ]


def text_of(value: object) -> str:
    """What `put` was given, from a cell's value."""
    text = "" if value is None else str(value)
    return _ESCAPED.sub("_", text.replace("_x000D_", ""))
