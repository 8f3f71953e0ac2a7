"""A plan that exceeds the memory there is, refused before anything is loaded."""

import os
from dataclasses import replace

import pytest

from containers.runtime.card import read_card
from experiments import gpus
from experiments.runners import Job, RunnerError
from experiments.settings import ROOT

QWEN3 = read_card(ROOT / "containers" / "qwen3_omni" / "model.toml")


@pytest.fixture
def job(tmp_path):
    nowhere = tmp_path / "nowhere"
    return Job(QWEN3, nowhere, nowhere, nowhere, nowhere, nowhere, "bf16", "cuda")


def with_gpus(monkeypatch, folder, *mebibytes):
    """A machine whose nvidia-smi lists these sizes."""
    command = folder / "nvidia-smi"
    lines = "".join(f"echo {size}\n" for size in mebibytes)
    command.write_text(f"#!/bin/sh\n{lines}")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_card_that_is_too_small_is_refused_with_the_figures(job, monkeypatch, tmp_path):
    with_gpus(monkeypatch, tmp_path, 49_140)

    # 49,140 MiB = 51.5 GB, the 48 GB card of the study.
    with pytest.raises(RunnerError, match=r"needs about 75 GB in bf16; cuda has 52 GB"):
        gpus.check_memory(job)


def test_a_card_that_is_large_enough_passes(job, monkeypatch, tmp_path):
    with_gpus(monkeypatch, tmp_path, 81_559)

    gpus.check_memory(job)


def test_auto_adds_up_all_cards_and_the_hosts_memory():
    assert gpus.why_too_big(QWEN3, "bf16", "auto", [48.0], host_gb=32.0) is None
    assert "80 GB" not in gpus.why_too_big(QWEN3, "bf16", "auto", [24.0, 24.0], host_gb=16.0)
    assert gpus.why_too_big(QWEN3, "bf16", "auto", [48.0, 48.0], host_gb=0.0) is None


def test_one_named_card_is_judged_by_itself():
    assert gpus.why_too_big(QWEN3, "bf16", "cuda:1", [24.0, 80.0]) is None
    assert "device_map=auto" in gpus.why_too_big(QWEN3, "bf16", "cuda:0", [24.0, 80.0])


def test_the_precision_that_would_fit_is_named():
    voxtral = read_card(ROOT / "containers" / "voxtral" / "model.toml")

    assert "-P precision=nf4" in gpus.why_too_big(voxtral, "bf16", "cuda", [8.0])
    assert "No precision" in gpus.why_too_big(voxtral, "bf16", "auto", [2.0], host_gb=2.0)


def test_no_gpu_is_said_with_the_way_without_one(job, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RunnerError, match="-P device_map=cpu"):
        gpus.check_memory(job)
    gpus.check_memory(replace(job, device_map="cpu"))


def test_a_model_that_wants_no_gpu_is_not_asked(job):
    baseline = read_card(ROOT / "containers" / "baseline" / "model.toml")

    gpus.check_memory(replace(job, card=baseline))


@pytest.mark.parametrize(
    ("said", "left"), [("auto", [8, 24, 80]), ("count:2", [8, 24]), ("2,0", [80, 8])]
)
def test_gpus_leaves_the_named_cards(said, left):
    assert gpus.chosen(said, [8, 24, 80]) == left


def test_a_card_that_is_not_there_is_refused():
    with pytest.raises(RunnerError, match="this machine has 1, numbered from 0"):
        gpus.chosen("1", [80.0])
