"""Several models in one command: an evaluation of its own for each."""

import os
import subprocess
import sys

import pytest

from experiments.settings import ROOT, SettingsError, settings_from
from experiments.several import _environment, by_memory, each_model


def evaluate(tmp_path, *words):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    store = {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    quick = ("--limit", "2", "--conditions", "TO", "--resamples", "50", "--output", f"{tmp_path}")
    return subprocess.run(
        [sys.executable, "-m", "experiments.evaluate", *quick, *words],
        cwd=tmp_path,
        env=kept | store,
        capture_output=True,
        text=True,
    )


def test_each_has_its_table_its_folder_and_its_run(tmp_path):
    ended = evaluate(tmp_path, "--model", "null,baseline")

    assert ended.returncode == 0, ended.stderr
    assert "null on distress" in ended.stdout
    assert "baseline on distress" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "2 models: null done, baseline done"
    assert len(list(tmp_path.glob("distress/*/*/responses.jsonl"))) == 2
    assert runs(tmp_path) == ["baseline", "null"]


def runs(tmp_path):
    code = (
        "import mlflow; print(*sorted(r.data.tags['model'] for r in "
        "mlflow.search_runs(search_all_experiments=True, output_format='list')))"
    )
    uri = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | uri, capture_output=True, text=True
    )
    return shown.stdout.split()


def test_one_that_fails_takes_none_along(tmp_path):
    ended = evaluate(tmp_path, "--model", "null,baseline", "--precision", "int8")

    assert ended.returncode == 2
    assert "precision: null has no 'int8'" in ended.stderr
    assert "baseline on distress" in ended.stdout
    assert "null ended with code 2, baseline done" in ended.stdout


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("null,null", "null is named twice"),
        ("null,", "names with commas between"),
        ("null,voxtrl", "did you mean 'voxtral'"),
    ],
)
def test_a_wrong_list_is_refused_before_anything_runs(said, wrong):
    with pytest.raises(SettingsError, match=wrong):
        each_model({"model": said})


def test_one_model_is_left_as_it_was_typed():
    assert each_model({"model": "null", "seed": "3"}) == [{"model": "null", "seed": "3"}]
    assert each_model({"seed": "3"}) == [{"seed": "3"}]


def test_those_that_need_most_memory_begin():
    named = [settings_from({"model": name}) for name in ("null", "voxtral", "qwen3_omni")]

    assert [one.model for one in by_memory(named)] == ["qwen3_omni", "voxtral", "null"]


def test_the_first_alone_takes_the_run_that_was_opened_for_us(monkeypatch):
    monkeypatch.setenv("MLFLOW_RUN_ID", "opened")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "7")

    assert _environment(0)["MLFLOW_RUN_ID"] == "opened"
    assert "MLFLOW_RUN_ID" not in _environment(1)
    assert _environment(1)["MLFLOW_EXPERIMENT_ID"] == "7"
