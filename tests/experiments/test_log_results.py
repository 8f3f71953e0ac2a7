import json
import shutil
from contextlib import suppress

import pandas as pd
import pytest

from experiments import log_results, unlogged
from experiments.tracking import Record, tracked_run
from experiments.unlogged import Unlogged

RECORD = {
    "name": "null · distress · 2 items",
    "parameters": {"undertone.model": "null"},
    "tags": {"family": "none"},
    "metrics": {"mae/AO": float("nan"), "mae/TO": 1.25},
    "note": "| a table |",
    "tables": {"items/TO.json": pd.DataFrame({"item_id": ["t1", "ü2"], "prediction": [3, None]})},
    "dataset": {"name": "demo", "digest": "d" * 32, "source": "{}", "profile": "{}"},
    "headline": ("mae",),
}


def killed(experiment):
    """A run that was opened and then interrupted."""
    with suppress(KeyboardInterrupt), tracked_run(experiment) as run:
        raise KeyboardInterrupt
    return run


@pytest.fixture
def interrupted(store, tmp_path):
    """Results whose run was opened, and whose record never came to MLflow."""

    def leave(name):
        results = tmp_path / "out" / name
        files = unlogged.staging(results)
        (files / "prompts").mkdir()
        (files / "prompts" / "AO.txt").write_text("Rate the distress.")
        run = killed("distress/demo")
        record = Record(**RECORD, files=files)
        unlogged.keep(Unlogged(results, store, "distress/demo", run.run_id, "o1", record))
        return results, run

    return leave


def log(folder, *words):
    return log_results.main(["--output", str(folder), *words])


def test_a_run_gets_all_that_was_found_and_ends_as_finished(interrupted, tmp_path, capsys):
    _, run = interrupted("null")

    assert log(tmp_path / "out") == 0
    found = run.client.get_run(run.run_id)
    assert (found.info.run_name, found.info.status) == (RECORD["name"], "FINISHED")
    assert found.data.params == RECORD["parameters"]
    assert found.data.metrics["mae/TO"] == 1.25
    assert found.data.metrics["mae/AO"] != found.data.metrics["mae/AO"]
    assert found.data.tags["mlflow.note.content"] == "| a table |"
    assert found.data.tags[log_results.LATER_TAG].startswith("20")
    assert found.inputs.dataset_inputs[0].dataset.digest == "d" * 32
    assert {f.path for f in run.client.list_artifacts(run.run_id)} == {"prompts", "items"}
    table = run.client.load_table(run.experiment_id, "items/TO.json")
    assert list(table["item_id"]) == ["t1", "ü2"]
    assert f"run {run.run_id} (completed)" in capsys.readouterr().out


def test_what_was_logged_is_known_as_that_and_not_logged_again(interrupted, tmp_path, capsys):
    results, run = interrupted("null")
    log(tmp_path / "out")
    known = json.loads((results / "recorded.json").read_bytes())

    assert (known["run_id"], known["outcome"]) == (run.run_id, "o1")
    assert not (results / "unlogged").exists()
    assert log(tmp_path / "out") == 0
    assert "MLflow lacks nothing" in capsys.readouterr().out
    assert len(run.client.search_runs([run.experiment_id])) == 1


def test_one_run_is_completed_where_it_is_named(interrupted, tmp_path, capsys):
    _, first = interrupted("null")
    _, second = interrupted("baseline/limit-5")

    assert log(tmp_path / "out", "--run", "nobody") == 2
    assert f"there are: {second.run_id}, {first.run_id}." in capsys.readouterr().err
    assert log(tmp_path / "out", "--run", second.run_id) == 0
    assert unlogged.below(tmp_path / "out") == [tmp_path / "out" / "null"]


def test_in_a_store_without_the_run_a_new_one_takes_its_place(
    interrupted, tmp_path, monkeypatch, capsys
):
    _, run = interrupted("null")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/other.db")

    assert log(tmp_path / "out") == 0
    assert f"(new, for {run.run_id}, not there)" in capsys.readouterr().out


def test_results_that_were_moved_are_completed_where_they_are(interrupted, tmp_path):
    interrupted("null")
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")

    assert log(tmp_path / "elsewhere") == 0


def test_half_a_record_is_none_and_a_damaged_one_is_named(interrupted, tmp_path, capsys):
    results, _ = interrupted("null")
    unlogged.staging(results)
    assert unlogged.below(tmp_path) == []

    (results / "unlogged" / "record.json").write_text('{"schema": 1}')
    assert log(tmp_path / "out") == 1
    assert "record.json: expected the record of a run" in capsys.readouterr().err


def test_a_store_that_is_away_costs_no_record(interrupted, tmp_path, monkeypatch, capsys):
    results, _ = interrupted("null")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")

    assert log(tmp_path / "out") == 1
    assert "No MLflow server answers at http://127.0.0.1:9" in capsys.readouterr().err
    assert unlogged.below(tmp_path) == [results]


def test_a_folder_that_is_not_there_is_code_2(tmp_path, capsys):
    assert log(tmp_path / "nowhere") == 2
    assert capsys.readouterr().err.startswith("log_results: output: there is no folder")
