"""A run that stands is shown again; whatever it rests on, a change of it takes the whole road."""

import json
import os
import shutil
import time
from dataclasses import replace

import pytest
from mlflow import MlflowClient

from experiments import basis, evaluate, evaluation, finished
from experiments.run_folder import RunFolder, held
from experiments.settings import ROOT, settings_from


@pytest.fixture
def data(tmp_path):
    copied = shutil.copytree(ROOT / "demo" / "distress", tmp_path / "data")
    # Younger files are not trusted.
    time.sleep(0.1)
    return copied


@pytest.fixture
def settings(store, data, tmp_path):
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


def stands(settings):
    """What would be shown without taking the road."""
    return finished.find(settings, basis.basis_of(settings))


def test_only_the_same_command_is_answered_so(done, monkeypatch):
    settings, _ = done
    monkeypatch.setenv("UNDERTONE_WEIGHTS", "/elsewhere")
    assert stands(settings) is None
    monkeypatch.delenv("UNDERTONE_WEIGHTS")
    assert stands(settings)

    for other in ({"seed": 1}, {"resamples": 21}, {"of_task": {"max_new_tokens": "17"}}):
        assert stands(replace(settings, **other)) is None
    monkeypatch.setenv("MLFLOW_RUN_ID", "the run that mlflow run opened")
    assert stands(settings) is None


def test_other_code_or_packages_take_the_whole_road(done, monkeypatch, tmp_path):
    settings, _ = done
    with monkeypatch.context() as patch:
        patch.setattr(basis, "code_digest", lambda: "edited")
        assert stands(settings) is None
    (tmp_path / "site" / "numpy-99.0.dist-info").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path / "site")
        assert stands(settings) is None

    assert stands(settings)


def test_code_that_changes_while_the_run_goes_on_is_not_what_it_ran_with(settings, monkeypatch):
    prepare = evaluation.prepare

    def and_then_edited(settings):
        monkeypatch.setattr(basis, "code_digest", lambda: "edited")
        return prepare(settings)

    monkeypatch.setattr(evaluation, "prepare", and_then_edited)
    evaluate.run(settings)

    assert stands(settings) is None
    monkeypatch.undo()
    assert not (settings.output / finished.NOTES).exists()


@pytest.mark.parametrize(
    "name", ["responses", "requests", "predictions", "metrics", "description", "a table"]
)
def test_a_result_that_was_changed_or_is_gone_takes_the_whole_road(done, name):
    settings, folder = done
    path = next(folder.tables.iterdir()) if name == "a table" else getattr(folder, name)
    was = path.read_bytes()
    path.write_bytes(was + b"\n")
    assert stands(settings) is None

    path.unlink()
    assert stands(settings) is None

    path.write_bytes(was)
    assert stands(settings)


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

    assert stands(settings) is None


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

    assert stands(settings) is None
    assert not (settings.output / finished.NOTES).exists()


def test_a_run_that_is_gone_from_mlflow_is_recorded_anew(done, store):
    settings, _ = done
    known = stands(settings).known
    MlflowClient(store).delete_run(known.run_id)

    assert stands(settings) is None


def test_a_note_that_was_damaged_or_edited_takes_the_whole_road(done):
    settings, _ = done
    (note,) = (settings.output / finished.NOTES).iterdir()
    said = json.loads(note.read_text())
    title, grid = said["shown"]["grids"][0]
    better = {**grid, "rows": [["mae", "0.01"]]}
    others = [{"shown": {**said["shown"], "grids": [[title, better]]}}, {"requests": 3}]
    for text in ("", "[]", "3", "{", "{}", *(json.dumps(said | other) for other in others)):
        note.write_text(text)
        assert stands(settings) is None

    note.write_text(json.dumps(said))
    assert stands(settings)


def test_a_run_that_stands_is_shown_while_others_look_and_from_a_disk_that_is_read_only(done):
    settings, folder = done

    with held(folder):
        assert stands(settings)


def test_what_was_repaired_is_said_once(settings, capsys):
    evaluate.run(settings)
    (path,) = settings.output.glob("distress/*/null/responses.jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    evaluate.run(settings)
    assert "its last line was cut short" in capsys.readouterr().out

    for _ in range(2):
        evaluate.run(settings)
        assert "cut short" not in capsys.readouterr().out
    assert stands(settings)


def test_failures_are_tried_again_and_so_no_end(settings, monkeypatch):

    carry_out = evaluation.carry_out
    monkeypatch.setattr(evaluation, "carry_out", lambda plan: replace(carry_out(plan), unsettled=1))
    evaluate.run(settings)

    assert stands(settings) is None
    assert not (settings.output / finished.NOTES).exists()
