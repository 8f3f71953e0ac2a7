"""A run that stands is shown again; whatever it rests on, a change of it takes the whole road."""

import json
import os
import shutil
import time
from dataclasses import replace

import pytest
from mlflow import MlflowClient

from experiments import evaluate, evaluation, finished, recorded
from experiments.run_folder import FolderInUseError, RunFolder, held
from experiments.settings import ROOT, settings_from


@pytest.fixture
def committed(monkeypatch):
    """Code that lies in a commit, whatever this clone is in the middle of."""

    def code(said):
        for module in (finished, recorded):
            monkeypatch.setattr(module, "git_commit", lambda: said)

    code("c0ffee")
    return code


@pytest.fixture
def data(tmp_path):
    copied = shutil.copytree(ROOT / "demo" / "distress", tmp_path / "data")
    # Younger files are not trusted.
    time.sleep(0.1)
    return copied


@pytest.fixture
def settings(store, committed, data, tmp_path):
    asked = {"model": "null", "limit": "2", "resamples": "20", "conditions": "TO"}
    return settings_from({**asked, "data": str(data), "output": str(tmp_path / "out")})


@pytest.fixture
def done(settings):
    """The settings of a run that stands, and its folder."""
    evaluate.run(settings)
    (results,) = settings.output.glob("distress/*/null")
    return settings, RunFolder(results, settings.output / "audio", limit=2)


def test_the_same_command_shows_the_same_and_takes_no_step_of_the_road(
    settings, monkeypatch, capsys
):
    evaluate.run(settings)
    first = capsys.readouterr().out.splitlines()
    monkeypatch.delattr(evaluation, "prepare")
    evaluate.run(settings)
    second = capsys.readouterr().out.splitlines()

    (effort,) = set(second) - set(first)
    assert effort.startswith("2 answers reused; all is as the run left it; in MLflow since")
    assert second[:-3] == first[:-3]
    assert second[-2:] == first[-2:]


def test_only_the_same_command_is_answered_so(done, committed, monkeypatch):
    settings, _ = done
    monkeypatch.setenv("UNDERTONE_WEIGHTS", "/elsewhere")
    assert finished.find(settings) is None
    monkeypatch.delenv("UNDERTONE_WEIGHTS")
    assert finished.find(settings)

    for other in ({"seed": 1}, {"resamples": 21}, {"of_task": {"max_new_tokens": "17"}}):
        assert finished.find(replace(settings, **other)) is None
    for code in ("c0ffee+changes", "", "decaf"):
        committed(code)
        assert finished.find(settings) is None
    committed("c0ffee")
    monkeypatch.setenv("MLFLOW_RUN_ID", "the run that mlflow run opened")
    assert finished.find(settings) is None


@pytest.mark.parametrize(
    "name", ["responses", "requests", "predictions", "metrics", "description", "a table"]
)
def test_a_result_that_was_changed_or_is_gone_takes_the_whole_road(done, name):
    settings, folder = done
    path = next(folder.tables.iterdir()) if name == "a table" else getattr(folder, name)
    was = path.read_bytes()
    path.write_bytes(was + b"\n")
    assert finished.find(settings) is None

    path.unlink()
    assert finished.find(settings) is None

    path.write_bytes(was)
    assert finished.find(settings)


@pytest.mark.parametrize("change", ["a cell", "a clip", "a clip of the same length and time"])
def test_data_that_was_changed_takes_the_whole_road(done, change, data):
    settings, _ = done
    path = next(data.rglob("*.flac")) if "clip" in change else next(data.glob("manifest.*"))
    facts = path.stat()
    if "same" in change:
        path.write_bytes(bytes(facts.st_size))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        path.write_bytes(path.read_bytes() + b"\n")

    assert finished.find(settings) is None


def test_data_written_while_the_run_went_on_is_not_taken_for_what_it_read(
    settings, data, monkeypatch
):
    prepare = evaluation.prepare

    def and_then_written(settings):
        plan = prepare(settings)
        (data / "note.txt").touch()
        return plan

    monkeypatch.setattr(evaluation, "prepare", and_then_written)
    evaluate.run(settings)

    assert finished.find(settings) is None
    assert not (settings.output / finished.NOTES).exists()


def test_a_file_of_this_very_moment_might_change_once_more_and_look_the_same(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(b"sound")
    assert not finished.state_of(tmp_path).settled
    time.sleep(0.1)
    assert finished.state_of(tmp_path).settled

    # As on a file system whose clock counts in whole seconds.
    os.utime(path, ns=(0, (time.time_ns() // 10**9) * 10**9))
    time.sleep(0.1)
    assert not finished.state_of(tmp_path).settled
    assert finished.state_of(tmp_path / "absent") is None


def test_a_run_that_is_gone_from_mlflow_is_recorded_anew(done, store):
    settings, _ = done
    known = finished.find(settings).known
    MlflowClient(store).delete_run(known.run_id)

    assert finished.find(settings) is None


def test_a_damaged_note_takes_the_whole_road(done):
    settings, _ = done
    (note,) = (settings.output / finished.NOTES).iterdir()
    said = json.loads(note.read_text())
    others = [{"grids": [1]}, {"limit": "x"}, {"folder": ".."}, {"folder": str(settings.data)}]
    for text in ("", "[]", "{", *(json.dumps(said | other) for other in others)):
        note.write_text(text)
        assert finished.find(settings) is None
    assert not (settings.data / ".lock").exists()


def test_a_folder_that_another_process_writes_is_refused_all_the_same(done):
    settings, folder = done

    with held(folder), pytest.raises(FolderInUseError, match="using"):
        finished.find(settings)


def test_failures_are_tried_again_and_so_no_end(settings, monkeypatch):

    carry_out = evaluation.carry_out
    monkeypatch.setattr(evaluation, "carry_out", lambda plan: replace(carry_out(plan), unsettled=1))
    evaluate.run(settings)

    assert finished.find(settings) is None
    assert not (settings.output / finished.NOTES).exists()
