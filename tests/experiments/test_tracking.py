import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import pandas as pd
import pytest
from mlflow.exceptions import MlflowException

from experiments.processes import as_words, this_process
from experiments.tracking import (
    ABANDONED_TAG,
    CONTINUED_TAG,
    CONTINUES_TAG,
    OWNER_TAG,
    RESUMED_TAG,
    Earlier,
    Record,
    TrackedRun,
    TrackingError,
    how_to_look,
    name_after_command,
    tracked_run,
    write,
)


def test_a_run_keeps_what_was_written(store, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "prompt.txt").write_text("Rate the distress.")
    record = Record(
        "null · distress",
        parameters={"undertone.model": "null"},
        tags={"family": "none", "empty": ""},
        metrics={"mae/AO": float("nan"), "mae/TO": 1.25},
        note="| a table |",
        files=files,
        tables={"items/AO.json": pd.DataFrame({"item_id": ["t1"], "prediction": [3]})},
        dataset={"name": "demo", "digest": "d" * 32, "source": "{}", "profile": "{}"},
    )
    with tracked_run("distress/demo") as run:
        write(run, record)
    found = run.client.get_run(run.run_id)

    assert (found.info.run_name, found.info.status) == ("null · distress", "FINISHED")
    assert found.data.metrics["mae/TO"] == 1.25
    assert found.data.metrics["mae/AO"] != found.data.metrics["mae/AO"]
    assert found.data.params == {"undertone.model": "null"}
    assert found.data.tags["mlflow.note.content"] == "| a table |"
    assert found.inputs.dataset_inputs[0].dataset.digest == "d" * 32
    assert {f.path for f in run.client.list_artifacts(run.run_id)} == {"prompt.txt", "items"}


def test_writing_a_run_costs_less_than_two_seconds(store, tmp_path):
    table = pd.DataFrame({"item_id": range(1802), "prediction": 3, "text": "3"})
    metrics = {f"m{i}/AO": float(i) for i in range(90)}
    with tracked_run("first"):
        pass
    record = Record("null", metrics=metrics, tables={f"items/{c}.json": table for c in "abc"})
    with tracked_run("distress/demo") as run:
        # Computing time, which a busy machine does not lengthen.
        began = time.process_time()
        write(run, record)

        assert time.process_time() - began < 2
    assert run.writing_s > 0


def test_an_error_inside_ends_the_run_as_failed(store):
    with pytest.raises(ZeroDivisionError), tracked_run("e") as run:
        raise ZeroDivisionError

    assert run.client.get_run(run.run_id).info.status == "FAILED"


def test_an_interruption_ends_the_run_as_killed(store):
    with pytest.raises(KeyboardInterrupt), tracked_run("e") as run:
        raise KeyboardInterrupt

    assert run.client.get_run(run.run_id).info.status == "KILLED"


def test_the_run_that_mlflow_run_opened_is_adopted_with_its_experiment(store, monkeypatch):
    with tracked_run("theirs") as opened:
        pass
    monkeypatch.setenv("MLFLOW_RUN_ID", opened.run_id)

    with tracked_run("ours") as adopted:
        write(adopted, Record("null · distress"))

    assert (adopted.run_id, adopted.experiment_id) == (opened.run_id, opened.experiment_id)
    assert adopted.client.get_experiment_by_name("ours") is None


def test_a_name_its_user_gave_is_kept(store, monkeypatch):
    with tracked_run("e") as opened:
        opened.client.set_tag(opened.run_id, "mlflow.runName", "My own name")
    monkeypatch.setenv("MLFLOW_RUN_ID", opened.run_id)
    with tracked_run("e") as adopted:
        write(adopted, Record("null · distress"))

    assert adopted.client.get_run(opened.run_id).info.run_name == "My own name"


def test_a_run_has_its_commands_name_until_its_program_gives_another(store, monkeypatch):
    with tracked_run("e") as opened:
        opened.client.set_tag(opened.run_id, "mlflow.project.entryPoint", "agreement")
    name_after_command(opened.client, opened.run_id)
    assert opened.client.get_run(opened.run_id).info.run_name == "agreement"

    monkeypatch.setenv("MLFLOW_RUN_ID", opened.run_id)
    with tracked_run("e") as adopted:
        write(adopted, Record("BFGH nominal"))
    name_after_command(opened.client, opened.run_id)

    assert adopted.client.get_run(opened.run_id).info.run_name == "BFGH nominal"


@pytest.mark.parametrize("headline", [(), ("mae",)])
def test_a_link_names_the_leaderboard_only_where_there_is_one(store, headline):
    with tracked_run("e") as run:
        write(run, Record("null", metrics={"mae/AO": 1.0}, headline=headline))
    experiment = run.client.get_experiment(run.experiment_id)
    link = how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)

    there = "mlflow.sharedViewState.leaderboard" in experiment.tags
    assert there == ("leaderboard" in link) == bool(headline)


@pytest.fixture
def ended():
    """A process of this machine that has come and gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return replace(this_process(), pid=child.pid)


def left_open(client, experiment_id, process):
    """A run that says RUNNING, of this process."""
    run = client.create_run(experiment_id, tags={OWNER_TAG: as_words(process)})
    return run.info.run_id


def test_runs_of_dead_processes_are_marked_by_the_next_start_in_any_experiment(store, ended):
    with tracked_run("e") as run:
        dead = left_open(run.client, run.experiment_id, ended)
        elsewhere = left_open(run.client, run.experiment_id, replace(ended, host="another"))
        alive = left_open(run.client, run.experiment_id, this_process())
        nobodys = run.client.create_run(run.experiment_id).info.run_id

    with tracked_run("another"):
        pass

    found = {name: run.client.get_run(name) for name in (dead, elsewhere, alive, nobodys)}
    assert [each.info.status for each in found.values()] == ["KILLED", *["RUNNING"] * 3]
    assert f"(pid {ended.pid}) ended without closing it" in found[dead].data.tags[ABANDONED_TAG]


RECORD = Record(
    "null",
    parameters={"undertone.model": "null"},
    metrics={"mae/AO": 1.0},
    tables={"items/AO.json": pd.DataFrame({"item_id": ["t1"], "prediction": [3]})},
    dataset={"name": "demo", "digest": "d" * 32, "source": "{}", "profile": "{}"},
)


def test_an_interrupted_run_is_gone_on_with_and_holds_nothing_twice(store, tmp_path):
    with suppress(KeyboardInterrupt), tracked_run("e") as first:
        write(first, RECORD)
        raise KeyboardInterrupt
    with tracked_run("e", Earlier(store, first.run_id, same=True)) as second:
        write(second, RECORD)
    found = second.client.get_run(first.run_id)

    assert second.run_id == first.run_id
    assert found.info.status == "FINISHED"
    assert found.data.tags[RESUMED_TAG] == "1"
    assert json.loads(found.data.tags["mlflow.loggedArtifacts"]) == [
        {"path": "items/AO.json", "type": "table"}
    ]
    assert len(found.inputs.dataset_inputs) == 1
    shown = second.client.load_table(second.experiment_id, "items/AO.json")
    assert shown.to_dict("list") == {"item_id": ["t1"], "prediction": [3]}


@pytest.mark.parametrize("asked", ["otherwise", "under mlflow run", "in the trash"])
def test_a_run_that_cannot_be_the_earlier_one_says_whom_it_continues(store, monkeypatch, asked):
    with pytest.raises(KeyboardInterrupt), tracked_run("e") as first:
        raise KeyboardInterrupt
    if asked == "under mlflow run":
        opened = first.client.create_run(first.experiment_id).info.run_id
        monkeypatch.setenv("MLFLOW_RUN_ID", opened)
    if asked == "in the trash":
        first.client.delete_run(first.run_id)
    with tracked_run("e", Earlier(store, first.run_id, same=asked != "otherwise")) as second:
        pass

    assert second.run_id != first.run_id
    later = second.client.get_run(second.run_id).data.tags
    assert later[CONTINUES_TAG] == first.run_id
    if asked != "in the trash":
        assert second.client.get_run(first.run_id).data.tags[CONTINUED_TAG] == second.run_id


def test_a_run_of_another_store_is_nobodys_earlier_run(store):
    with tracked_run("e", Earlier("sqlite:////elsewhere.db", "0" * 32, same=True)) as run:
        pass

    assert CONTINUES_TAG not in run.client.get_run(run.run_id).data.tags


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://127.0.0.1:9", "No MLflow server answers at http://127.0.0.1:9 "),
        # Its user's password is nobody else's business.
        ("postgresql://me:secret@127.0.0.1:9/runs", r"No database .* postgresql://\*\*\*@127"),
    ],
)
def test_a_server_that_is_away_is_said_at_once(store, monkeypatch, uri, said):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    started = time.monotonic()

    with pytest.raises(TrackingError, match=f"{said}.*unset MLFLOW_TRACKING_URI"), tracked_run("e"):
        pass
    assert time.monotonic() - started < 6


class _Full:
    """A store whose disk is full."""

    def __getattr__(self, name):
        raise MlflowException("(flushed)\n(sqlite3.OperationalError) disk is full\n(SQL: ...)")


def test_a_store_that_takes_no_more_is_said_in_a_sentence(store):
    run = TrackedRun(_Full(), store, "1", "r")

    with pytest.raises(TrackingError, match=r"cannot be written .*disk is full\)"):
        write(run, Record("null", metrics={"mae/AO": 1.0}))


def test_why_a_run_failed_outlives_a_store_that_cannot_note_it(store):
    def fail_with_a_full_store():
        with tracked_run("e") as run:
            run.client = _Full()
            raise ValueError("the model failed")

    with pytest.raises(ValueError, match="the model failed"):
        fail_with_a_full_store()


def test_an_experiment_in_the_trash_is_said_in_a_sentence(store):
    with tracked_run("e") as run:
        pass
    run.client.delete_experiment(run.experiment_id)

    with pytest.raises(TrackingError, match="no run can be opened"), tracked_run("e"):
        pass


def test_a_store_that_cannot_be_opened_is_said_in_a_sentence(store, monkeypatch, tmp_path):
    (tmp_path / "broken.db").write_text("this is no database" * 100)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/broken.db")

    with pytest.raises(TrackingError, match="cannot be opened"), tracked_run("e"):
        pass
