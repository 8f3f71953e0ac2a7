import os
import subprocess
import sys

import pytest

from experiments import weights
from experiments.runners import docker
from experiments.settings import ROOT
from experiments.smoke import is_clean, main, parse_rate, ways
from experiments.table import FAILURES, Coverage


def row(n, n_total, **counts):
    return Coverage("AO", n_total, n, dict.fromkeys(FAILURES, 0) | counts)


def test_only_a_condition_with_every_item_answered_is_clean():
    assert is_clean(row(5, 5))
    assert not is_clean(row(4, 5, unparsed=1))
    assert not is_clean(row(5, 5, truncated=1))
    assert not is_clean(row(0, 0))


def test_the_parse_rate_is_of_the_texts_there_were():
    assert parse_rate(row(4, 5, unparsed=1)) == "80%"
    assert parse_rate(row(4, 5, timeout=1)) == "100%"
    assert parse_rate(row(0, 5, timeout=5)) == "-"


def test_a_model_with_its_image_and_weights_is_tried_too(monkeypatch):
    ready = ("voxtral", "baseline")
    monkeypatch.setattr(docker, "why_not", lambda card: None if card.name in ready else "no image")
    monkeypatch.setattr(weights, "present", lambda card, folder: card.name != "qwen3_omni")

    found = list(ways())
    assert found[:2] == [("null", "process"), ("baseline", "process")]
    assert found[2:] == [("baseline", "docker"), ("voxtral", "docker")]


@pytest.mark.slow
def test_smoke_passes_and_leaves_nothing_behind(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "experiments.smoke"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )

    assert ended.returncode == 0, ended.stderr
    for task in ("distress", "manipulation"):
        for model in ("null", "baseline"):
            assert any(task in line and model in line for line in ended.stdout.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_a_word_it_does_not_know_starts_nothing(monkeypatch, capsys):
    monkeypatch.setattr("experiments.smoke.outcome", lambda *_: pytest.fail("started"))

    assert main(["--output", "x"]) == 2
    assert "smoke: unrecognized arguments: --output x; see --help." in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
