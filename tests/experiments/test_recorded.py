import os
import subprocess
import sys

import pytest

from experiments.recorded import Recorded, earlier, find, note_opening, outcome, remember
from experiments.run_folder import run_folder
from experiments.settings import ROOT, settings_from
from experiments.tracking import Earlier, Record, tracked_run, write


@pytest.fixture
def finished(tmp_path, store):
    """A folder, its settings, and the MLflow run that holds its outcome."""
    folder = run_folder(tmp_path, "distress", "demo", "0123456789", "null")
    folder.metrics.write_text("[]")
    settings = settings_from({"model": "null"})
    with tracked_run("distress/demo") as run:
        write(run, Record("null"))
    remember(folder, Recorded(outcome(folder, settings), run.uri, run.experiment_id, run.run_id))
    return folder, settings, run


def test_an_outcome_that_stands_in_mlflow_is_found(finished):
    folder, settings, run = finished

    assert find(folder, settings).run_id == run.run_id


def test_a_store_in_a_folder_of_any_name_is_asked(finished, tmp_path, monkeypatch):
    folder, settings, run = finished
    odd = tmp_path / "a#b c"
    odd.mkdir()
    uri = f"sqlite:///{odd}/mlflow.db"
    (tmp_path / "mlflow.db").rename(odd / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    remember(folder, Recorded(outcome(folder, settings), uri, run.experiment_id, run.run_id))

    assert find(folder, settings).run_id == run.run_id


def test_another_outcome_or_another_wish_is_recorded_anew(finished):
    folder, settings, _ = finished
    assert find(folder, settings_from({"model": "null", "seed": "1"})) is None

    folder.responses.write_text("{}")
    assert find(folder, settings) is None


def test_a_run_that_was_deleted_is_recorded_anew(finished):
    folder, settings, run = finished
    run.client.delete_run(run.run_id)

    assert find(folder, settings) is None


def test_a_store_that_is_gone_is_not_made_by_asking(finished, tmp_path):
    folder, settings, _ = finished
    (tmp_path / "mlflow.db").unlink()

    assert find(folder, settings) is None
    assert not (tmp_path / "mlflow.db").exists()


def test_the_run_that_mlflow_run_opened_is_always_filled(finished, monkeypatch):
    folder, settings, run = finished
    monkeypatch.setenv("MLFLOW_RUN_ID", run.run_id)

    assert find(folder, settings) is None


def test_a_run_that_was_opened_is_the_earlier_one_until_its_results_stand_in_it(finished):
    folder, settings, run = finished
    assert earlier(folder, settings) is None

    note_opening(folder, settings, run)
    assert earlier(folder, settings) == Earlier(run.uri, run.run_id, same=True)
    other = settings_from({"model": "null", "seed": "1"})
    assert earlier(folder, other) == Earlier(run.uri, run.run_id, same=False)

    remember(folder, Recorded(outcome(folder, settings), run.uri, run.experiment_id, run.run_id))
    assert earlier(folder, settings) is None


def test_the_same_command_again_loads_neither_model_nor_mlflow(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    environment["PYTHONPATH"] = str(ROOT)
    words = ["--model", "null", "--limit", "3", "--conditions", "TO", "--resamples", "20"]
    command = [sys.executable, "-X", "importtime", "-m", "experiments.evaluate", *words]

    first, second = (
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        for _ in range(2)
    )

    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert first.stdout.splitlines()[:8] == second.stdout.splitlines()[:8]
    assert "in MLflow since an earlier run" in second.stdout
    assert "3/3 items" not in second.stderr
    assert " mlflow\n" not in second.stderr
