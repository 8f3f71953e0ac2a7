"""From workbooks and exports to ratings; what did not come, came twice or is none."""

import json
import shutil

import pandas as pd
import pytest

from experiments import annotate_import
from tests.experiments.annotation_round import answer, faults, run
from validation.annotation_key import read_key
from validation.ratings import read_ratings
from validation.scale import scale_named


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


def test_the_whole_folder_of_a_round_has_its_design_and_tasks_without_answers(filled, capsys):
    said = ["--answers", str(filled), "--output", str(filled.parent / "ratings")]

    assert annotate_import.main(said) == 0, capsys.readouterr().err
    told = capsys.readouterr().out
    assert "text: 24 ratings of 24 asked for." in told
    # Its own tasks and interfaces are no news; another folder's tasks without answers are.
    assert "not read" not in told


def test_tables_of_an_earlier_import_in_the_round_are_not_answers(filled, capsys):
    said = ["--answers", str(filled), "--output", str(filled / "ratings")]
    assert annotate_import.main(said) == 0
    assert annotate_import.main(said) == 0
    assert "not read" not in capsys.readouterr().out


def test_tasks_without_answers_from_elsewhere_are_told(filled, capsys):
    shutil.copy(filled / "label_studio" / "annotator_1_text.json", filled / "annotators")
    assert run(filled) == 0
    told = capsys.readouterr().out
    assert "annotator_1_text.json: not read; tasks as they were handed out, without" in told


def test_workbooks_without_their_design_are_told_where_it_lies(filled, capsys):
    answers = filled / "annotators"
    assert annotate_import.main(["--answers", str(answers)]) == 2
    place = filled / "private" / "design.json"
    assert f"made with: design={place}, or give the round's whole" in capsys.readouterr().err
    place.unlink()
    assert annotate_import.main(["--answers", str(answers)]) == 2
    assert "design=ROUND/private/design.json, beside the" in capsys.readouterr().err


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
