"""Faults of a workbook are named by their cells, and nothing faulty is counted."""

import pytest
from openpyxl import load_workbook

from tests.experiments.annotation_round import changed, faults, rows, run, set_cell
from validation.annotation_key import read_key


@pytest.mark.parametrize("given", [1, 1.0, "1", " 1 ", "1.0", "yes", "YES\n"])
def test_one_written_in_any_of_its_forms_is_one(filled, given):
    changed(filled, set_cell("C2", given))
    code = load_workbook(filled / "annotators/annotator_3/annotator_3.xlsx")["Text Only"][
        "A2"
    ].value
    assert run(filled) == 0
    item = read_key(filled / "private" / "design.json").by_code()[code].item_id
    (found,) = (
        row["rating"]
        for row in rows(filled / "ratings" / "ratings_text.csv")
        if (row["item_id"], row["rater"]) == (item, "annotator_3")
    )
    assert found == "1"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("maybe", '"maybe"'),
        (None, "nothing"),
        (True, "True"),
        (2, "2"),
        (0.5, "0.5"),
        (-1, "-1"),
        ("0 or 1", '"0 or 1"'),
        ("=1", "the formula =1"),
        ('=IF(B2="",0,1)', 'the formula =IF(B2="",0,1)'),
    ],
)
def test_anything_else_is_named_by_its_cell_and_nothing_is_written(filled, capsys, given, found):
    changed(filled, set_cell("C4", given), tab="Audio Only")
    assert run(filled) == 1
    expected = f"annotator_3.xlsx, Audio Only!C4: expected 0 or 1, found {found}"
    assert expected in capsys.readouterr().err
    assert faults(filled) == [expected]
    assert {path.name for path in (filled / "ratings").iterdir()} - {".lock"} == {"problems.csv"}


def test_what_is_faulty_can_be_left_out_and_is_said_to_be(filled, capsys):
    changed(filled, set_cell("C4", "maybe"))
    assert run(filled, "--skip_invalid", "true") == 0
    said = capsys.readouterr().out
    assert "text: 23 ratings of 24 asked for." in said
    assert "1 faults: what they concern is left out" in said
    assert len(rows(filled / "ratings" / "ratings_text.csv")) == 23
    assert len(faults(filled)) == 1


def test_a_deleted_row_is_missed(filled):
    code = load_workbook(filled / "annotators/annotator_3/annotator_3.xlsx")["Text Only"][
        "A3"
    ].value
    changed(filled, lambda sheet: sheet.delete_rows(3))
    assert run(filled) == 1
    assert faults(filled) == [
        f"annotator_3.xlsx, Text Only: expected item {code}, found no row with it"
    ]


def test_a_row_that_is_there_twice_counts_for_neither(filled):
    def copy_row(sheet):
        for column in "ABC":
            sheet[f"{column}8"] = sheet[f"{column}3"].value
        sheet["C8"] = 1 - sheet["C3"].value

    changed(filled, copy_row)
    assert run(filled, "--skip_invalid", "true") == 0
    (fault,) = faults(filled)
    assert fault.startswith("annotator_3.xlsx, Text Only!A8: expected each item once, found T")
    assert fault.endswith("as in Text Only!A3")
    assert len(rows(filled / "ratings" / "ratings_text.csv")) == 23


def test_rows_of_another_batch_and_made_up_ones_are_foreign(filled):
    key = read_key(filled / "private" / "design.json")
    mine = {each.code for each in key.asked("annotator_3", "text")}
    theirs = next(
        each.code for each in key.shown if each.modality == "text" and each.code not in mine
    )

    def add(sheet):
        for row, code in ((8, theirs), (9, "T123"), (10, None)):
            sheet[f"A{row}"], sheet[f"B{row}"], sheet[f"C{row}"] = code, "x", 1

    changed(filled, add)
    assert run(filled) == 1
    found = faults(filled)
    assert f'Text Only!A8: expected an item of this batch, found "{theirs}", an item of' in found[0]
    assert 'Text Only!A9: expected an item of this batch, found "T123", no such item' in found[1]
    assert 'Text Only!A10: expected an item of this batch, found "", no such item' in found[2]


def test_a_column_sorted_by_itself_is_noticed(filled):
    def swap(sheet):
        sheet["B2"], sheet["B3"] = sheet["B3"].value, sheet["B2"].value

    changed(filled, swap)
    changed(filled, swap, tab="Audio Only")
    assert run(filled) == 1
    assert len(faults(filled)) == 4
    assert all("were cells moved or edited?" in fault for fault in faults(filled))


def test_a_merged_cell_hides_an_answer_and_is_named(filled):
    changed(filled, lambda sheet: sheet.merge_cells("C2:C3"))
    assert run(filled) == 1
    assert faults(filled) == [
        f"annotator_3.xlsx, Text Only!C{row}: expected 0 or 1, found a merged cell (C2:C3)"
        for row in (2, 3)
    ]


def test_a_renamed_tab_is_named_with_those_there_are(filled):
    changed(filled, lambda sheet: setattr(sheet, "title", "text"))
    assert run(filled) == 1
    first, second = faults(filled)
    assert 'expected a sheet "Text Only", found Guideline, ' in first
    assert second == "annotator_3, : expected 6 ratings (text), found no file with them"
