"""Blinded sheets for experts, and the way of the filled ones into validate_labels."""

import json
import shutil
from dataclasses import replace

import openpyxl
import pandas as pd
import pytest
import soundfile

from core.dataset import read_dataset
from core.ssr import ANCHORS
from experiments import ratings_export, validate_labels
from experiments.filled_ratings import read_filled
from experiments.options import ROOT, OptionError
from experiments.ratings_export import KEY_FILE
from tests.core.datasets.releases import write_recording
from tests.experiments.kept_runs import answers, keep
from validation.rating_sheets import read_key, write_key

# Labels 1-5 over two sessions; =1+1 must stay words.
TURNS = [
    ("panic-1", "panic", 1, 1, "=1+1", ""),
    ("panic-2", "panic", 3, 5, "I could not breathe.", "Therapist: And then?"),
    ("calm-1", "calm", 1, 2, "It was a good week.", ""),
    ("calm-2", "calm", 3, 4, "My boss came in.", "Therapist: Who?\nPatient: My boss."),
]

DEMO = ROOT / "demo" / "distress"
WORDS = {name: default for name, (default, _) in validate_labels.OPTIONS.items()} | {"data": "demo"}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    rows = []
    for number, (item, session, index, label, transcript, context) in enumerate(TURNS):
        audio = f"very distressed {item}.flac"
        write_recording(folder / audio, 0.5, amplitude=0.1 + number / 50)
        rows.append((item, session, index, audio, transcript, context, label, 0.5))
    names = ["item_id", "session_id", "turn_index", "audio", "transcript", "context"]
    table = pd.DataFrame(rows, columns=[*names, "label", "seconds"])
    table.to_csv(folder / "manifest.csv", index=False)
    return folder


@pytest.fixture
def export(data, tmp_path):
    def run(**options):
        words = {"data": data, "experts": 3, "output": tmp_path / "round", **options}
        return ratings_export.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    return run


def workbooks(folder):
    return sorted(folder.glob("experts/*/*.xlsx"))


def fill(path, rate):
    """Write `rate(row)` into every row's last cell; gives the codes."""
    book = openpyxl.load_workbook(path)
    for row in book["Ratings"].iter_rows(min_row=2, max_col=5):
        row[4].value = rate([cell.value for cell in row])
    book.save(path)


def test_every_expert_gets_every_turn_in_an_order_of_their_own(export, tmp_path, capsys):
    assert export() == 0

    orders = []
    for path in workbooks(tmp_path / "round"):
        sheet = openpyxl.load_workbook(path)["Ratings"]
        rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]
        assert sorted(row[3] for row in rows) == sorted(turn[4] for turn in TURNS)
        assert all((path.parent / "audio" / row[1]).is_file() for row in rows)
        assert all(row[4] is None for row in rows)
        orders.append([row[0] for row in rows])
    assert len(orders) == 3
    assert len({tuple(order) for order in orders}) > 1
    assert "4 turns, each for 3 experts" in capsys.readouterr().out


def test_nothing_an_expert_gets_says_a_label_a_title_or_an_id(export, tmp_path):
    export()

    folder = tmp_path / "round"
    names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    assert not [name for name in names if "distressed" in name or "panic" in name]
    for path in (folder / "experts" / "expert_1" / "audio").iterdir():
        assert soundfile.info(path).extra_info.count("panic") == 0
    sheet = openpyxl.load_workbook(workbooks(folder)[0])["Ratings"]
    shown = [str(cell.value) for row in sheet.iter_rows() for cell in row]
    assert not [text for text in shown if "panic" in text or "calm" in text]
    tasks = (folder / "label_studio" / "expert_1.json").read_text()
    assert "panic" not in tasks
    assert '"label"' not in tasks


def test_a_cell_takes_1_to_5_alone_and_words_stay_words(export, tmp_path):
    export()

    book = openpyxl.load_workbook(workbooks(tmp_path / "round")[0])
    (rule,) = book["Ratings"].data_validations.dataValidation
    assert (rule.formula1, str(rule.sqref), rule.showErrorMessage) == ('"1,2,3,4,5"', "E2:E5", True)
    (cell,) = [row[3] for row in book["Ratings"].iter_rows(min_row=2) if row[3].value == "=1+1"]
    assert cell.data_type == "s"
    guideline = " ".join(str(row[0].value) for row in book["Guideline"].iter_rows())
    assert all(anchor in guideline for anchor in ANCHORS)
    interface = (tmp_path / "round" / "label_studio" / "interface.xml").read_text()
    assert all(anchor in interface for anchor in ANCHORS)


def rating_of(key, levels):
    turns = {turn.code: turn.item_id for turn in key.turns}
    return lambda row: levels[turns[row[0]]]


LABELS = {turn[0]: turn[3] for turn in TURNS}


def validate(folder, data, *more):
    words = ["--ratings", str(folder), "--data", str(data), "--resamples", "20"]
    return validate_labels.main([*words, *more])


def test_filled_sheets_come_back_into_validate_labels(export, data, store, tmp_path, capsys):
    export()
    folder = tmp_path / "round"
    key = read_key(folder / KEY_FILE)
    one_off = {item: min(5, label + 1) for item, label in LABELS.items()}
    first, second, _ = workbooks(folder)
    fill(first, rating_of(key, LABELS))
    fill(second, rating_of(key, one_off))

    assert validate(folder, data) == 0

    out = capsys.readouterr().out
    assert "8 of 8 ratings by 2 of 3 experts, from expert_1.xlsx, expert_2.xlsx" in out
    assert "within one level of the label on 100.0% of 4 turns" in out
    ratings = pd.read_csv(folder / "ratings.csv")
    assert dict(ratings[ratings["rater"] == "expert_1"][["item", "rating"]].to_numpy()) == LABELS


def test_label_studio_s_exports_come_back_too(export, data, store, tmp_path, capsys):
    export()
    folder = tmp_path / "round"
    key = read_key(folder / KEY_FILE)
    items = {turn.code: turn.item_id for turn in key.turns}
    (tmp_path / "filled").mkdir()
    for name in ("expert_1", "expert_2"):
        tasks = json.loads((folder / "label_studio" / f"{name}.json").read_text())
        for task in tasks:
            level = str(LABELS[items[task["data"]["item"]]])
            result = {"from_name": "distress", "value": {"choices": [level]}}
            task["annotations"] = [{"result": [result]}]
            task["data"]["audio"] = f"http://studio/{task['data']['audio']}"
        (tmp_path / "filled" / f"{name}.json").write_text(json.dumps(tasks))

    assert validate(tmp_path / "filled", data, "--key", str(folder / KEY_FILE)) == 0
    assert "8 of 8 ratings by 2 of 3 experts" in capsys.readouterr().out


@pytest.mark.parametrize("typed", ["6", "3.5", 3.5, True, "3/5", "=2+1", "drei", 0])
def test_what_is_no_level_is_named_by_its_cell_and_can_be_left_out(export, tmp_path, typed):
    export()
    folder = tmp_path / "round"
    key = read_key(folder / KEY_FILE)
    first, second, _ = workbooks(folder)
    fill(second, rating_of(key, LABELS))
    fill(first, rating_of(key, {**LABELS, "panic-1": typed, "calm-1": None}))

    with pytest.raises(OptionError) as raised:
        read_filled(folder, None, skip_invalid=False)
    (code,) = [turn.code for turn in key.turns if turn.item_id == "panic-1"]
    row = 2 + key.orders["expert_1"].index(code)
    place = f"expert_1.xlsx, Ratings!E{row}: expected a whole number 1-5, or nothing"
    assert place in str(raised.value)

    filled = read_filled(folder, None, skip_invalid=True)
    assert filled.notes[0].startswith("6 of 8 ratings")
    assert filled.notes[1] == "1 cells left empty, 1 faulty and left out"


def test_rows_that_were_mixed_up_are_faults(export, data, tmp_path, capsys):
    export()
    folder = tmp_path / "round"
    first, second, third = workbooks(folder)
    for path, change in ((first, "sort"), (second, "twice"), (third, "foreign")):
        book = openpyxl.load_workbook(path)
        sheet = book["Ratings"]
        for row in range(2, 6):
            sheet.cell(row, 5).value = 3
        if change == "sort":
            # One column alone.
            codes = [sheet.cell(row, 1).value for row in range(2, 6)]
            for row, code in zip(range(2, 6), codes[::-1], strict=True):
                sheet.cell(row, 1).value = code
        elif change == "twice":
            for column in range(1, 6):
                sheet.cell(6, column).value = sheet.cell(2, column).value
        else:
            sheet.cell(2, 1).value = "D0123456789"
        book.save(path)

    assert validate(folder, data) == 2
    err = capsys.readouterr().err
    assert err.count("found those of another turn") == 4
    assert "expert_2.xlsx, Ratings!E6: expected each turn once" in err
    assert 'expected a code of this round, found "D0123456789"' in err
    assert "expert_3: expected all 4 turns, found 3" in err


def test_sessions_are_drawn_whole(export, tmp_path):
    assert export(sessions=1) == 0

    key = read_key(tmp_path / "round" / KEY_FILE)
    assert {turn.item_id.split("-")[0] for turn in key.turns} in ({"panic"}, {"calm"})
    assert len(key.turns) == 2


def test_sheets_with_ratings_in_them_are_not_written_over(export, tmp_path, capsys):
    export()
    assert export() == 0
    sheet = tmp_path / "round" / "experts" / "expert_2" / "expert_2.xlsx"
    book = openpyxl.load_workbook(sheet)
    book["Ratings"]["E3"] = 4
    book.save(sheet)
    before = sheet.read_bytes()

    assert export() == 2
    assert f"{sheet} has 1 answer in it" in capsys.readouterr().err
    sheet.write_bytes(b"not a workbook")
    assert export() == 2
    assert "cannot be read; give another folder" in capsys.readouterr().err
    sheet.write_bytes(before)
    assert export(seed=1) == 2
    assert "is the key of another round" in capsys.readouterr().err


@pytest.fixture
def filled(export, tmp_path):
    """A round whose experts all gave the labels."""
    export()
    folder = tmp_path / "round"
    key = read_key(folder / KEY_FILE)
    for path in workbooks(folder):
        fill(path, rating_of(key, LABELS))
    return folder


def relabelled(data, place):
    """The same turns in another version: panic-1 labelled 5."""
    shutil.copytree(data, place)
    table = pd.read_csv(place / "manifest.csv", keep_default_na=False)
    table.loc[table["item_id"] == "panic-1", "label"] = 5
    table.to_csv(place / "manifest.csv", index=False)
    return place


def run_on(data, output):
    """The runs' folder of a model that was asked about this dataset."""
    dataset = read_dataset(data, "distress")
    return keep(output, dataset, "one", answers(dataset, "AO")).parent


def test_sheets_of_another_version_of_the_dataset_are_refused(filled, data, tmp_path, capsys):
    other = relabelled(data, tmp_path / "other")

    assert validate(filled, other) == 2

    err = capsys.readouterr().err
    assert "the key of the sheets of " + read_key(filled / KEY_FILE).dataset_hash in err
    assert f"but the dataset {other} of {read_dataset(other, 'distress').hash}" in err


def test_runs_on_another_version_of_the_dataset_are_refused(filled, data, store, tmp_path, capsys):
    other = relabelled(data, tmp_path / "other")
    runs = run_on(other, tmp_path / "out")

    assert validate(filled, data, "--predictions", str(runs)) == 2
    of_other = f"the run one of {read_dataset(other, 'distress').hash}"
    err = capsys.readouterr().err
    assert read_dataset(data, "distress").hash in err
    assert of_other in err
    # A run from before there was a run.json: its labels tell.
    (runs / "one" / "run.json").unlink()
    assert validate(filled, data, "--predictions", str(runs)) == 2
    err = capsys.readouterr().err
    assert "one was scored by other labels" in err
    assert "on 1 turns: panic-1 (1, in the run 5)" in err

    assert validate(filled, data, "--predictions", str(run_on(data, tmp_path / "same"))) == 0
    assert "not checked" not in capsys.readouterr().out


def test_an_older_key_without_a_hash_is_used_and_that_is_said(filled, data, store, capsys):
    path = filled / KEY_FILE
    write_key(replace(read_key(path), dataset_hash=""), path)
    told = json.loads(path.read_text())
    del told["dataset_hash"]
    path.write_text(json.dumps(told))

    assert validate(filled, data) == 0
    said = "the key of the sheets does not say which version of the dataset it is of: not checked."
    assert said in capsys.readouterr().out


def test_a_key_that_was_changed_or_is_none_is_refused(export, data, tmp_path, capsys):
    export()
    path = tmp_path / "round" / KEY_FILE
    path.write_text(path.read_text().replace("panic-1", "panic-2", 1))

    assert validate(tmp_path / "round", data) == 2
    assert "changed after it was written" in capsys.readouterr().err
    path.unlink()
    assert validate(tmp_path / "round", data) == 2
    assert "not the key of ratings_export" in capsys.readouterr().err


def test_nobody_has_filled_anything_in(export, data, tmp_path, capsys):
    export()
    shutil.rmtree(tmp_path / "round" / "label_studio")

    assert validate(tmp_path / "round", data) == 2
    # Three experts, a workbook each.
    said = "no filled sheet of this round: 3 sheets looked at, none with a rating; fill in column"
    told = capsys.readouterr().err
    assert said in told
    assert "'Distress (1-5)'" in told


def test_demo_is_the_set_that_comes_along_here_and_when_it_is_read(export, tmp_path, capsys):
    assert export(data="demo") == 0
    folder = tmp_path / "round"
    said = capsys.readouterr().out
    assert "demo-distress: 30 turns" in said
    assert f"Filled in: mlflow run . -e validate_labels -P ratings={folder} -P data=demo" in said
    asked = validate_labels.settings_from(WORDS | {"ratings": str(DEMO / "manifest.csv")})
    assert asked.data == DEMO


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"data": "nowhere"},
            "data: there is no folder 'nowhere'; give a dataset folder, or demo for",
        ),
        ({"experts": "1"}, "experts: expected two or more, found 1"),
        ({"sessions": "-1"}, "sessions: expected a whole number of 0 or more"),
        ({"output": ""}, "output: expected a folder"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(export, capsys, options, said):
    assert export(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
