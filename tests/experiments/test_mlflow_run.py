"""`mlflow run .` as typed: the real command, in a process of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.settings import ROOT

pytestmark = pytest.mark.slow

MLFLOW = str(Path(sys.executable).with_name("mlflow"))
QUICK = ("model=null", "limit=2", "conditions=TO", "resamples=50")


@pytest.fixture
def environment(tmp_path):
    """A shell in which neither pyenv nor our environment is on PATH."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "PYENV"))}
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    return kept | {"PATH": "/usr/bin:/bin", "MLFLOW_TRACKING_URI": uri}


def started(tmp_path, environment, *parameters, options=(), entry_point="evaluate"):
    words = [word for parameter in parameters for word in ("-P", parameter)]
    output = ["-P", f"output={tmp_path}/out"] if entry_point == "evaluate" else []
    return subprocess.Popen(
        [MLFLOW, "run", str(ROOT), "-e", entry_point, *options, *words, *output],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*words, **options):
    process = started(*words, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def runs(environment, said="status"):
    code = (
        "import mlflow; c = mlflow.MlflowClient(); "
        f"[print(e.name, r.info.{said}, sep='|') for e in c.search_experiments() "
        "for r in c.search_runs([e.experiment_id])]"
    )
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return shown.stdout.splitlines()


def test_the_bare_command_runs_here_and_in_its_experiment(tmp_path, environment):
    code, out, err = ended(tmp_path, environment, *QUICK)

    assert code == 0, err
    assert "null on distress" in out
    assert runs(environment) == ["distress/demo-distress|FINISHED"]


def test_a_path_with_blank_quote_and_semicolon_is_a_path(tmp_path, environment):
    odd = tmp_path / "it's a; $(touch pwned) set"
    shutil.copytree(ROOT / "demo" / "distress", odd)
    options = ("--env-manager", "local", "--experiment-name", "mine")
    code, _, err = ended(tmp_path, environment, *QUICK, f"data={odd}", options=options)

    assert code == 0, err
    assert runs(environment) == ["mine|FINISHED"]
    assert not list(tmp_path.glob("pwned"))
    assert not (ROOT / "pwned").exists()


def test_a_command_without_figures_has_an_experiment_and_a_name_too(tmp_path, environment):
    code, out, err = ended(tmp_path, environment, entry_point="models")

    assert code == 0, err
    assert "voxtral" in out
    assert runs(environment, "run_name") == ["undertone|models"]


def test_a_wrong_value_is_one_sentence_code_2_and_no_run(tmp_path, environment):
    code, out, err = ended(tmp_path, environment, "model=baselin")

    assert (code, out) == (2, "")
    assert "did you mean 'baseline'" in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "mlflow.db").exists()


def test_mlflow_killed_takes_its_program_along_and_the_run_says_killed(tmp_path, environment):
    slow = environment | {"UNDERTONE_NULL_LATENCY_S": "1"}
    process = started(tmp_path, slow, "model=null", "conditions=TO")
    wait_until(lambda: list(tmp_path.glob("out/*/*/null/responses.jsonl")))
    process.send_signal(signal.SIGKILL)

    wait_until(lambda: runs(environment) == ["distress/demo-distress|KILLED"])


def wait_until(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
