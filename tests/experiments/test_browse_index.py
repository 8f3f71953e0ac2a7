import json

import pandas as pd
import pytest

from experiments import browse_index
from experiments.browse import reader
from experiments.run_sets import RunSet
from experiments.settings import ROOT
from tests.experiments.kept_runs import answers, keep, turns


@pytest.fixture
def shown(tmp_path):
    dataset = turns(tmp_path / "data", {"a": "One.", "b/../c": "Was für ein Tag"})
    refused = answers(dataset, "TO", status="refused", reason="it said no")
    refused["prediction"] = pd.array([pd.NA, pd.NA], dtype="Int64")
    refused["p_1"] = float("nan")
    keep(tmp_path / "outputs", dataset, "first", answers(dataset, "AO"), refused)
    keep(tmp_path / "outputs", dataset, "second", answers(dataset, "AO", 1))
    (found,) = reader(tmp_path / "outputs", None)().values()
    return found


def test_the_index_holds_each_answer_as_the_place_of_its_label(shown):
    index = browse_index.index(shown)

    assert index["items"] == {"id": ["a", "b/../c"], "group": ["session 0"] * 2, "gold": [0, 1]}
    cells = {(c["run"], c["condition"]): c["prediction"] for c in index["cells"]}
    # Labels 1 and 2; the second model says one more, and refusals have no answer.
    assert cells == {(0, "AO"): [0, 1], (0, "TO"): [-1, -1], (1, "AO"): [1, 2]}
    statuses = {index["statuses"][s] for s in index["cells"][1]["status"]}
    assert statuses == {"refused"}
    json.dumps(index, allow_nan=False)


def test_an_item_has_its_words_and_what_every_run_said(shown):
    item = browse_index.item(shown, "b/../c")

    assert (item["transcript"], item["audio"]) == ("Was für ein Tag", True)
    said = {(each["run"], each["condition"]): each for each in item["predictions"]}
    assert said[0, "AO"]["shares"] == [0.1, 0.6, 0.1, 0.1, 0.1]
    assert (said[0, "TO"]["prediction"], said[0, "TO"]["reason"]) == (None, "it said no")
    assert said[0, "TO"]["shares"] is None
    json.dumps(item, allow_nan=False)


def test_words_are_found_in_any_case_and_in_ids(shown):
    assert browse_index.found(shown, "WAS FÜR") == [1]
    assert browse_index.found(shown, "../") == [1]
    assert browse_index.found(shown, "therapist") == [0, 1]


def test_there_is_no_item_of_another_name(shown):
    assert browse_index.item(shown, "../../etc/passwd") is None


def test_a_run_written_meanwhile_is_read(tmp_path):
    dataset = turns(tmp_path / "data", {"a": "One."})
    keep(tmp_path / "outputs", dataset, "first", answers(dataset, "AO"))
    sets = reader(tmp_path / "outputs", None)
    sets()
    keep(tmp_path / "outputs", dataset, "second", answers(dataset, "AO"))

    (now,) = sets().values()
    assert [run.name for run in now.runs.runs] == ["first", "second"]


def test_a_dialogue_with_a_sidecar_has_the_time_of_each_line():
    shown = _demo_of_manipulation()
    first, second, *_ = browse_index.item(shown, "demo_01")["turns"]

    assert first["line"].startswith("Person1: I'm meeting Anna")
    assert (first["start_s"], second["start_s"]) == (0.2, pytest.approx(3.143813, abs=1e-6))


def _demo_of_manipulation():
    from core.dataset import read_dataset

    dataset = read_dataset(ROOT / "demo" / "manipulation", "manipulation")
    items = {row["item_id"]: row for row in dataset.items.to_dict("records")}
    runs = RunSet("manipulation", dataset.name, dataset.hash, (), ("YES", "NO"), dataset.folder)
    return browse_index.Shown(runs, dataset, [], {"demo_01": 0}, [], items)
