import pytest
from openpyxl import load_workbook
from openpyxl.chart import BarChart

from experiments.annotation_workbook import read_workbook, rows_of, writable, write_workbook
from validation.annotation_key import Shown, fingerprint

CLIP = "0123456789abcdef0123456789abcdef.flac"
NASTY = [
    '=HYPERLINK("http://example.org")',
    "+1 and more",
    "-1 or less",
    "@SUM(A1:A9)",
    "\tbegins with a tab",
    "_x0041_ is no escape here",
    "Person1: \U0001f600 “Ünïcode”\r\nPerson2:  two  blanks",
    "",
]


def book(folder, texts, name="annotator_1.xlsx"):
    shown = [Shown(f"T{at}", f"d{at}", "text", fingerprint(t)) for at, t in enumerate(texts)]
    words = {f"d{at}": writable(text)[0] for at, text in enumerate(texts)}
    audio = [Shown("A0", "d9", "audio", CLIP)]
    write_workbook(
        folder / name, "annotator_1", [("audio", audio), ("text", shown)], {**words, "d9": "no"}
    )
    return folder / name


def read(path):
    return read_workbook(path, ["annotator_1", "annotator_2"])


def test_the_tabs_are_those_of_the_study_in_the_order_to_work_on_them(tmp_path):
    made = load_workbook(book(tmp_path, ["Person1: Hello."]))
    assert made.sheetnames == ["Guideline", "Audio Only", "Text Only"]
    assert [cell.value for cell in made["Text Only"][2]] == ["T0", "Person1: Hello.", None]
    assert made["Audio Only"]["B2"].value == CLIP
    assert made["Audio Only"]["B2"].hyperlink.target == f"audio/{CLIP}"
    (rule,) = made["Text Only"].data_validations.dataValidation
    assert (rule.type, rule.formula1, str(rule.sqref)) == ("list", '"0,1"', "C2")
    assert not made["Text Only"]["C2"].protection.locked
    assert made["Text Only"]["B2"].protection.locked
    assert made["Text Only"].protection.sheet


@pytest.mark.parametrize("text", NASTY)
def test_words_stay_words_and_come_back_as_they_went(tmp_path, text):
    path = book(tmp_path, [text])
    cell = load_workbook(path)["Text Only"]["B2"]
    assert cell.data_type != "f"
    answer = next(each for each in read(path).answers if each.modality == "text")
    assert answer.content == fingerprint(text)
    if text[:1] in "=+-@" and text:
        assert cell.value == text
        assert cell.quotePrefix


def test_characters_no_workbook_can_hold_are_replaced_and_counted():
    assert writable("a\x00b\x0bc\ud800d\uffff\te\r\nf") == ("a\ufffdb\ufffdc\ufffdd\ufffd\te\nf", 4)


@pytest.mark.parametrize(
    "text",
    ["word " * 20_000, "x" * 40_000, "\n".join(f"Person{n % 2 + 1}: line {n}" for n in range(89))],
)
def test_a_conversation_longer_than_a_row_goes_on_below_it(tmp_path, text):
    assert all(len(part) <= 32_767 and part.count("\n") < 26 for part in rows_of(text))
    path = book(tmp_path, [text, "Person1: Short."])
    sheet = load_workbook(path)["Text Only"]
    assert [sheet["A2"].value, sheet["A3"].value] == ["T0", "T0 (2)"]
    assert sheet["C3"].protection.locked
    found = [each for each in read(path).answers if each.modality == "text"]
    assert [each.code for each in found] == ["T0", "T1"]
    assert [each.content for each in found] == [fingerprint(text), fingerprint("Person1: Short.")]


def test_a_row_that_goes_on_takes_no_answer_and_stays_where_it_is(tmp_path):
    path = book(tmp_path, ["line\n" * 40, "Person1: Short."])
    changed = load_workbook(path)
    sheet = changed["Text Only"]
    sheet["C3"] = 1
    sheet.move_range("A3:B3", rows=2)
    changed.save(path)
    said = [problem.said() for problem in read(path).problems]
    assert "annotator_1.xlsx, Text Only!A5: expected it right below T0" in said[-1]


def test_the_owner_is_the_guideline_s_or_else_the_file_s_name(tmp_path):
    path = book(tmp_path, ["x"], "final (2).xlsx")
    assert read(path).annotator == "annotator_1"
    changed = load_workbook(path)
    del changed["Guideline"]
    changed.save(tmp_path / "annotator_2.xlsx")
    changed.save(tmp_path / "mine.xlsx")
    assert read(tmp_path / "annotator_2.xlsx").annotator == "annotator_2"
    (problem,) = read(tmp_path / "mine.xlsx").problems
    assert problem.said().startswith("mine.xlsx, Guideline!B1: expected one of annotator_1 to")


def test_a_file_that_is_no_workbook_is_a_problem_of_its_own(tmp_path):
    path = tmp_path / "annotator_1.xlsx"
    path.write_bytes(b"PK\x03\x04 cut")
    (problem,) = read(path).problems
    assert problem.said().startswith("annotator_1.xlsx: expected an XLSX workbook, found a file")


def test_a_part_that_breaks_the_reader_is_a_problem_too(tmp_path):
    path = book(tmp_path, ["x"])
    changed = load_workbook(path)
    changed.create_chartsheet("empty")
    changed.save(path)
    (problem,) = read(path).problems
    assert "expected an XLSX workbook" in problem.said()


def test_what_stands_beside_the_table_is_told(tmp_path):
    path = book(tmp_path, ["x"])
    changed = load_workbook(path)
    changed["Text Only"]["D2"] = "not sure"
    changed.save(path)
    assert read(path).notes == (
        "annotator_1.xlsx, Text Only!D2: beside the table, not read: 'not sure'.",
    )


def test_another_annotator_s_workbook_under_one_s_own_name_is_refused(tmp_path):
    found = read(book(tmp_path, ["x"], "annotator_2.xlsx"))
    assert found.answers == ()
    assert [problem.said() for problem in found.problems] == [
        "annotator_2.xlsx, Guideline!B1: expected annotator_2, as the file's name has it, "
        "found annotator_1"
    ]


def test_a_sheet_that_was_added_is_told_and_a_chart_is_no_tab(tmp_path):
    path = book(tmp_path, ["x"])
    changed = load_workbook(path)
    changed.copy_worksheet(changed["Text Only"])
    del changed["Audio Only"]
    changed.create_chartsheet("Audio Only").add_chart(BarChart())
    changed.save(path)
    found = read(path)
    assert found.notes == ("annotator_1.xlsx: sheet 'Text Only Copy' was not read.",)
    assert found.modalities == ("text",)
    assert 'expected a sheet "Audio Only"' in found.problems[0].said()
