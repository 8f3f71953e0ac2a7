"""The table of models, as far as this machine can tell without an engine."""

import pytest

from experiments import models as command
from experiments.settings import models


@pytest.fixture(autouse=True)
def without_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("UNDERTONE_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "250")


def rows(capsys):
    assert command.main([]) == 0
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]
    return {line.split()[0]: line for line in lines if line}


def test_every_model_has_a_line(capsys):
    assert set(models()) <= set(rows(capsys))


def test_what_comes_along_runs_here_and_needs_nothing(capsys):
    baseline = rows(capsys)["baseline"]

    assert "CPU" in baseline
    assert "process" in baseline
    assert "none needed" in baseline


def test_a_models_memory_gating_and_verification_are_told(capsys):
    lines = rows(capsys)

    assert "13 GB bf16" in lines["voxtral"]
    assert "no engine" in lines["voxtral"]
    assert "tiny" in lines["voxtral"]
    assert "yes" in lines["ultravox"].split()


def test_a_wrong_option_is_code_2(capsys):
    assert command.main(["--model", "voxtral"]) == 2
    assert capsys.readouterr().err.startswith("models: ")
