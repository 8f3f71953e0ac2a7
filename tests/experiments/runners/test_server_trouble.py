"""A server that fails, rests, goes away or is left in the middle: what that costs."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from containers.runtime.response_log import read_responses
from experiments.runners import RunnerError, _asking, _pace
from experiments.settings import ROOT
from tests.experiments.runners.openai_server import words
from tests.experiments.runners.server_jobs import answer_to, ask, question


@pytest.mark.parametrize("happens", ["429 after 0.2", "503", "500", "malformed", "reset", "hang"])
def test_a_passing_failure_leaves_no_trace_in_the_answer(job, server, happens):
    server.schedule["unlucky"] = [happens]

    assert answer_to(job, "an unlucky one").status == "ok"
    assert len(server.asked("unlucky")) == 2


def test_retry_after_holds_everybody_back(job, server):
    server.latency_s = 0.05
    server.schedule["unlucky"] = ["429 after 0.8"]
    ask(job, question("unlucky"), *(question(f"lucky {n}") for n in range(30)))
    refused = next(
        at for at, body in zip(server.times, server.bodies, strict=True) if words(body) == "unlucky"
    )
    later = [at - refused for at in server.times if at - refused > 0.3]

    assert min(later) > 0.75


def test_concurrency_grows_and_backs_off(job, server):
    server.latency_s = 0.02
    server.schedule["late"] = ["429"] * 3
    ask(
        job,
        *(question(f"early {n}") for n in range(80)),
        *(question(f"late {n}") for n in range(8)),
    )

    assert 4 < server.most_at_once <= _pace.MOST
    assert all(answer.status == "ok" for answer in read_responses(job.responses).values())


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("401", "UNDERTONE_API_KEY is not set"),
        ("404", "Give the endpoint up to /v1"),
        ("redirect", "sends on to http://elsewhere.example/v1 (status 307), where nothing was"),
        ("quota", "no quota left: pay first"),
    ],
)
def test_what_would_fail_every_request_ends_the_run(job, server, happens, said):
    server.schedule["first"] = [happens]
    with pytest.raises(RunnerError) as error:
        ask(job, question("the first"))

    assert said in str(error.value)
    assert read_responses(job.responses) == {}


def test_a_server_that_goes_away_ends_the_run_and_the_rest_is_asked_later(job, server, monkeypatch):
    monkeypatch.setitem(_asking.TRIES, "connection", 2)
    requests = [question(f"question {n}") for n in range(40)]
    server.latency_s = 0.05
    threading.Timer(0.15, server.stop).start()
    with pytest.raises(RunnerError, match=r"has gone|No server answers"):
        ask(job, *requests)
    kept = read_responses(job.responses)

    assert all(answer.status in ("ok", "model_error") for answer in kept.values())
    assert len(kept) < 40


def test_a_second_run_asks_only_what_has_no_answer(job, server):
    server.schedule["doomed"] = ["400"]
    ask(job, question("doomed"), question("sound"))
    server.bodies.clear()
    answers = ask(job, question("doomed"), question("sound"))

    assert [words(body) for body in server.bodies] == ["doomed"]
    assert {answer.status for answer in answers.values()} == {"ok"}


@pytest.mark.slow
def test_evaluate_killed_in_the_middle_goes_on(tmp_path, server):
    server.latency_s = 0.3
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    environment = os.environ | {"MLFLOW_TRACKING_URI": uri, "PYTHONPATH": str(ROOT)}
    words = ["--model", "voxtral", "--runner", "server", "--endpoint", server.url, "--limit", "20"]
    command = [
        sys.executable,
        "-m",
        "experiments.evaluate",
        *words,
        "--output",
        str(tmp_path / "out"),
    ]
    command += ["--resamples", "20"]
    run = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in tmp_path.rglob("responses.jsonl")):
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    (responses,) = (tmp_path / "out").glob("*/*/voxtral/responses.jsonl")
    kept = len(read_responses(responses))
    server.latency_s = 0.0
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr
    assert 0 < kept < 60
    assert f"{kept} answers reused" in ended.stdout
    assert len(read_responses(responses)) == 60
