import dataclasses
import os

import pytest

from containers.runtime.card import read_card
from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests
from experiments.runners import Job, RunnerError, process
from experiments.settings import ROOT

CARD = ROOT / "containers" / "null" / "model.toml"


@pytest.fixture
def job(tmp_path):
    """One question without audio, put to the model that draws."""
    asked = Request("r1", None, ({"text": "How distressed?"},), {"1": ("1",), "2": ("2",)})
    write_requests(tmp_path / "requests.jsonl", [asked])
    return Job(
        card=read_card(CARD),
        card_path=CARD,
        weights=tmp_path,
        requests=tmp_path / "requests.jsonl",
        responses=tmp_path / "responses.jsonl",
        audio=tmp_path,
        precision="none",
        device_map="auto",
        log=tmp_path / "model.log",
    )


def test_a_question_comes_back_answered(job):
    process.run(job)

    assert read_responses(job.responses)["r1"].status == "ok"
    assert '"ended": "done"' in job.responses.with_name("work.json").read_text()


def test_offline_the_runtime_runs_under_the_guard(job):
    process.run(dataclasses.replace(job, offline=True))

    assert "experiments.offline" in process.command(dataclasses.replace(job, offline=True))
    assert read_responses(job.responses)["r1"].status == "ok"


def test_a_runtime_that_ends_badly_is_an_error_that_says_where_to_look(job):
    job.requests.write_text("no request\n")

    with pytest.raises(RunnerError, match=r"model\.log"):
        process.run(job)
    assert "requests.jsonl, line 1" in job.log.read_text()


def test_the_model_is_told_no_secret(monkeypatch):
    for name in ("HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    told = process.environment()

    assert "planted" not in told.values()
    assert told["OMP_NUM_THREADS"] == "1"
    assert told["PATH"] == os.environ["PATH"]


def test_a_package_that_is_missing_is_named(job):
    card = dataclasses.replace(job.card, packages=("numpy", "no_such_package"))

    assert "no_such_package not installed here" in process.why_not(card)
