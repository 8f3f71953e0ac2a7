import csv
import json
import shutil

import pandas as pd
import pytest
from openpyxl import load_workbook

from experiments import annotate_export, annotate_import
from experiments.settings import ROOT
from validation.annotation_key import read_key
from validation.ratings import read_ratings
from validation.scale import scale_named

DEMO = ROOT / "demo" / "manipulation"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    wishes = ["--annotators", "4", "--batches", "4", "--overlap", "0.5"]
    assert annotate_export.main(["--data", str(DEMO), *wishes, "--output", str(folder)]) == 0
    key = read_key(folder / "private" / "design.json")
    for annotator in key.design.annotators:
        path = folder / "annotators" / annotator / f"{annotator}.xlsx"
        book = load_workbook(path)
        for tab in ("Text Only", "Audio Only"):
            for row in range(2, book[tab].max_row + 1):
                book[tab][f"C{row}"] = answer(key, book[tab][f"A{row}"].value)
        book.save(path)
    return folder


def answer(key, code):
    """Everyone says what the dataset says."""
    return {"YES": 1, "NO": 0}[key.reference[key.by_code()[code].item_id]]


@pytest.fixture
def filled(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "round")


def run(folder, *more):
    return annotate_import.main(
        [
            *("--answers", str(folder / "annotators"), "--output", str(folder / "ratings")),
            *("--design", str(folder / "private" / "design.json"), *more),
        ]
    )


def changed(folder, change, tab="Text Only", annotator="annotator_3"):
    path = folder / "annotators" / annotator / f"{annotator}.xlsx"
    book = load_workbook(path)
    change(book[tab])
    book.save(path)


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def faults(folder):
    return [
        f"{r['file']}, {r['place']}: expected {r['expected']}, found {r['found']}"
        for r in rows(folder / "ratings" / "problems.csv")
    ]


def test_filled_workbooks_become_ratings_that_agreement_reads(filled, capsys):
    assert run(filled) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "text: 24 ratings of 24 asked for." in said.out
    ratings = read_ratings(filled / "ratings" / "ratings_audio.csv", scale_named("nominal"))
    assert (len(ratings.items), len(ratings.raters)) == (12, 4)
    assert ratings.reference_name == "reference"
    given = ratings.values[~pd.isna(ratings.values)]
    assert len(given) == 24
    # Each item's two raters said the dataset's label.
    for row, gold in zip(ratings.values, ratings.reference, strict=True):
        assert row[~pd.isna(row)].tolist() == [gold, gold]


def test_agreement_of_what_was_imported(filled):
    from experiments.agreement_report import study_of

    run(filled)
    everyone = read_ratings(filled / "ratings" / "ratings_text.csv", scale_named("nominal"))
    study = study_of(everyone, everyone, resamples=0, seed=0)
    by_metric = {each.metric: each for each in study.estimates}
    assert by_metric["krippendorff_alpha_nominal"].value == 1.0
    assert by_metric["percent_agreement"].n == 12


def set_cell(place, value):
    def change(sheet):
        sheet[place] = value

    return change


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
    assert [path.name for path in (filled / "ratings").iterdir()] == ["problems.csv"]


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


def test_a_workbook_that_did_not_come_is_missed(filled, capsys):
    shutil.rmtree(filled / "annotators" / "annotator_2")
    assert run(filled) == 1
    assert "annotator_2: expected 12 ratings (text and audio), found no file with them" in (
        capsys.readouterr().err
    )


def test_a_second_workbook_of_one_annotator_is_not_taken_for_another(filled):
    path = filled / "annotators" / "annotator_3" / "annotator_3.xlsx"
    shutil.copy(path, path.with_name("annotator_3 (1).xlsx"))
    assert run(filled) == 1
    assert "annotator_3's text, found it in annotator_3 (1).xlsx too; keep one" in faults(filled)[0]


def test_files_that_are_neither_are_told(filled, capsys):
    (filled / "annotators" / "~$annotator_1.xlsx").write_bytes(b"x")
    (filled / "annotators" / "mail.txt").write_text("done!")
    assert run(filled) == 0
    said = capsys.readouterr().out
    assert "mail.txt: not read; neither a workbook nor a Label Studio export." in said
    assert "~$annotator_1.xlsx: not read" in said
    assert ".flac" not in said


def test_exports_of_label_studio_give_the_same_ratings(filled, tmp_path):
    assert run(filled) == 0
    key = read_key(filled / "private" / "design.json")
    exports = tmp_path / "exports"
    exports.mkdir()
    for path in (filled / "label_studio").glob("annotator_*.json"):
        said = json.loads(path.read_text())
        for task in said:
            label = ["NO", "YES"][answer(key, task["data"]["item"])]
            result = {"from_name": "manipulative", "value": {"choices": [label]}}
            task["annotations"] = [{"result": [result]}]
        (exports / path.name).write_text(json.dumps(said))
    other = tmp_path / "other"
    assert (
        annotate_import.main(
            [
                *("--answers", str(exports), "--output", str(other)),
                *("--design", str(filled / "private" / "design.json")),
            ]
        )
        == 0
    )
    for name in ("ratings_text.csv", "ratings_audio.csv", "consensus_text.csv"):
        assert (other / name).read_bytes() == (filled / "ratings" / name).read_bytes()


def tied(filled):
    """One text item whose two raters disagree."""
    key = read_key(filled / "private" / "design.json")
    first = key.asked("annotator_3", "text")[0]
    changed(filled, lambda sheet: set_cell("C2", 1 - sheet["C2"].value)(sheet))
    return first


def adjudication(folder, text):
    path = folder / "adjudication.csv"
    path.write_text(text)
    return ["--adjudication", str(path)]


def test_a_tie_is_listed_with_those_who_may_decide_it(filled):
    item = tied(filled)
    assert run(filled) == 0
    found = rows(filled / "ratings" / "to_adjudicate.csv")
    assert [row["role"] for row in found] == ["first", "second"]
    voters = {
        row["rater"]
        for row in rows(filled / "ratings" / "ratings_text.csv")
        if row["item_id"] == item.item_id
    }
    assert {row["rater"] for row in found} == {f"annotator_{n}" for n in range(1, 5)} - voters
    assert {(row["item_id"], row["code"]) for row in found} == {(item.item_id, item.code)}


def test_the_filled_list_of_ties_decides_them(filled, capsys):
    item = tied(filled)
    run(filled)
    path = filled / "ratings" / "to_adjudicate.csv"
    said = rows(path)
    adjudicators = [row["rater"] for row in said]
    filled_list = pd.DataFrame(said).assign(rating="1")
    filled_list.to_csv(filled / "decided.csv", index=False)
    capsys.readouterr()
    assert run(filled, "--adjudication", str(filled / "decided.csv")) == 0
    assert (
        f"text {item.item_id}: UNRESOLVED (1 NO, 1 YES) -> ADJUDICATED YES by "
        f"{', '.join(adjudicators)}" in capsys.readouterr().out
    )
    (row,) = (
        row
        for row in rows(filled / "ratings" / "consensus_text.csv")
        if row["item_id"] == item.item_id
    )
    assert (row["label"], row["status"], row["raters"]) == ("YES", "ADJUDICATED", "2")


def test_a_list_that_was_filled_in_place_is_not_overwritten(filled, capsys):
    tied(filled)
    run(filled)
    path = filled / "ratings" / "to_adjudicate.csv"
    pd.DataFrame(rows(path)).assign(rating=["1", "0"]).to_csv(path, index=False)
    judged = path.read_bytes()
    assert run(filled, "--adjudication", str(path)) == 0
    assert "differ; add a third judgement below theirs." in capsys.readouterr().out
    assert run(filled) == 0
    assert path.read_bytes() == judged
    assert len(rows(path.with_name("to_adjudicate_2.csv"))) == 2


def test_agreement_asks_the_same_adjudicators(filled):
    from experiments.agreement_report import study_of

    tied(filled)
    run(filled)
    everyone = read_ratings(filled / "ratings" / "ratings_text.csv", scale_named("nominal"))
    (ours,) = study_of(everyone, everyone, resamples=0, seed=0).assignments
    listed = rows(filled / "ratings" / "to_adjudicate.csv")
    assert [row["rater"] for row in listed] == [ours.first, ours.second]


def test_a_third_breaks_the_tie_of_the_first_two(filled):
    item = tied(filled)
    lines = [f"{item.code},{name},{vote}" for name, vote in (("x", 1), ("y", 0), ("z", 0))]
    more = adjudication(filled, "\n".join(["item,rater,rating", *lines]))
    assert run(filled, *more) == 0
    (row,) = (
        row
        for row in rows(filled / "ratings" / "consensus_text.csv")
        if row["item_id"] == item.item_id
    )
    assert (row["label"], row["status"], row["adjudicators"]) == ("NO", "TIE_BROKEN", "x y z")


def test_judgements_that_may_not_be_are_faults(filled):
    item = tied(filled)
    other = next(
        each
        for each in read_key(filled / "private" / "design.json").shown
        if each.modality == "text" and each.item_id != item.item_id
    )
    lines = [
        "item,rater,rating,modality",
        f"{item.item_id},annotator_3,1,text",
        f"{item.item_id},y,1,text",
        f"{other.code},x,1,",
        f"{other.code},y,1,",
        "d99,x,0,audio",
        f"{item.item_id},x,maybe,text",
        f"{item.item_id},x,0,smell",
        f"{other.code},y,0,",
    ]
    assert run(filled, *adjudication(filled, "\n".join(lines))) == 1
    found = "\n".join(faults(filled))
    assert "annotator_3 voted on it and may not adjudicate" in found
    assert f"item {other.item_id} is MAJORITY; only UNRESOLVED is adjudicated" in found
    assert "audio: expected an item that was rated, found item d99" in found
    assert 'row 7, rating: expected 0 or 1, found "maybe"' in found
    assert 'row 8: expected one of text, audio in a column modality, found "smell"' in found
    assert (
        f"row 9: expected one judgement by a rater of an item, found a second one by y of {other.item_id}"
        in found
    )


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("answers", "nowhere", "answers: there is no file 'nowhere'"),
        ("design", "none.json", "design: there is no file 'none.json'"),
        ("adjudication", "none.csv", "adjudication: there is no file 'none.csv'"),
        ("skip_invalid", "some", "skip_invalid: expected true or false, found 'some'"),
        ("modality", "smell", "modality: expected one of auto, text, audio, found 'smell'"),
        ("design", "", "need the design.json they were made with"),
    ],
)
def test_a_wrong_value_is_one_sentence(filled, capsys, option, value, message):
    assert run(filled, f"--{option}", value) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "design.json: not readable as JSON"),
        ("[]", "design.json: not the design.json of annotate_export"),
        ('{"schema": 9}', "design.json: not the design.json of annotate_export"),
    ],
)
def test_a_design_that_is_none_is_refused(filled, capsys, content, message):
    (filled / "private" / "design.json").write_text(content)
    assert run(filled) == 2
    assert message in capsys.readouterr().err


def test_a_design_that_was_edited_is_refused(filled, capsys):
    path = filled / "private" / "design.json"
    said = json.loads(path.read_text())
    said["design"]["shares"][0]["items"].pop()
    path.write_text(json.dumps(said))
    assert run(filled) == 2
    assert "Use it as it was written." in capsys.readouterr().err
