"""The server runner against a real HTTP server: what it sends, and how each failure ends."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from containers.runtime.card import read_card
from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests
from experiments.runners import Job, RunnerError, Site, _asking, _pace
from experiments.runners import server as runner
from experiments.settings import ROOT
from tests.experiments.runners.openai_server import Server, heard, shares, words

CHOICES = {label: (label, f" {label}") for label in "12345"}
CARD_PATH = ROOT / "containers" / "voxtral" / "model.toml"


@pytest.fixture
def server():
    state = Server()
    yield state
    state.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_pace, "BACKOFF_S", 0.02)
    monkeypatch.delenv("UNDERTONE_API_KEY", raising=False)


@pytest.fixture
def card():
    card = read_card(CARD_PATH)
    return replace(card, budget=replace(card.budget, timeout_s=0.8))


@pytest.fixture
def job(tmp_path, card, server):
    """A job over requests that the test writes with `ask`."""
    (tmp_path / "audio").mkdir()
    for number in range(3):
        noise = np.random.default_rng(number).normal(0, 0.1, 20_000 + 1_000 * number)
        soundfile.write(tmp_path / "audio" / f"c{number}.wav", noise, 16_000, subtype="FLOAT")
    return Job(
        card=card,
        card_path=CARD_PATH,
        weights=tmp_path,
        requests=tmp_path / "requests.jsonl",
        responses=tmp_path / "responses.jsonl",
        audio=tmp_path / "audio",
        precision="bf16",
        device_map="auto",
        log=tmp_path / "log",
        site=Site(server.url),
    )


def question(text, clip=None, **fields):
    parts = ([{"audio": clip}] if clip else []) + [{"text": text}]
    fields = {"system": None, "choices": CHOICES, **fields}
    return Request(id=f"id of {text}", parts=tuple(parts), **fields)


def ask(job, *requests):
    write_requests(job.requests, requests)
    runner.run(job)
    return read_responses(job.responses)


def answer_to(job, text, **fields):
    return ask(job, question(text, **fields))[f"id of {text}"]


def test_labels_are_scored_exactly_by_token_id(job, server):
    answer = answer_to(job, "How bad?", clip="c0.wav")
    body = server.asked("How bad?")[-1]
    likely = shares(body)

    assert answer.status == "ok"
    assert body["logprob_token_ids"] == sorted({ids[0] for ids in server.ids.values()})
    for label in CHOICES:
        exact = math.log(likely[label] + likely[f" {label}"])
        assert answer.choice_logprobs[label] == pytest.approx(exact, abs=1e-12)
    assert answer.choice_mass == pytest.approx(0.8)
    assert (answer.prompt_tokens, answer.fallbacks) == (77, ("audio_seconds_used_by_card",))


def test_a_clip_goes_out_as_16_bit_wav_before_its_text(job, server, tmp_path):
    answer_to(job, "How bad?", clip="c1.wav")
    body = server.asked("How bad?")[-1]
    (samples, rate_hz), *_ = heard(body)
    sent, _ = soundfile.read(tmp_path / "audio" / "c1.wav")

    assert rate_hz == 16_000
    assert np.abs(samples - sent).max() <= 1 / 32_768
    assert [part["type"] for part in body["messages"][0]["content"]] == ["input_audio", "text"]


def test_a_system_text_the_model_cannot_take_moves_and_is_recorded(job, server):
    spoken = answer_to(job, "And?", clip="c0.wav", system="Be brief.")
    assert "system_in_user_turn" in spoken.fallbacks
    assert len(server.asked("And?")[-1]["messages"]) == 1

    written = answer_to(job, "Well?", system="Be brief.")
    assert written.fallbacks == ()
    assert server.asked("Well?")[-1]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_a_label_of_several_tokens_holds_the_text_to_the_choices_instead(job, server):
    answer = answer_to(job, "Which?", choices={"tall": ("Very tall",), "one": ("1",)})

    assert server.asked("Which?")[-1]["structured_outputs"] == {"choice": ["Very tall", "1"]}
    assert answer.choice_logprobs is None
    assert "text_constrained_to_choices" in answer.fallbacks
    assert "label_not_among_likeliest_tokens" in answer.fallbacks


def test_a_plain_server_gives_bounds_and_says_so(job, server):
    server.vllm = None
    answer = answer_to(job, "How bad?")

    assert "logprob_token_ids" not in server.asked("How bad?")[-1]
    assert set(answer.choice_logprobs) == set(CHOICES)
    assert answer.fallbacks == ("logprobs_of_likeliest_tokens_only",)


def test_a_label_the_server_does_not_list_is_unknown_not_zero(job, server):
    server.vllm, server.listed = None, 3
    answer = answer_to(job, "How bad?")

    assert answer.choice_logprobs is None
    assert 0 < answer.choice_mass < 0.8
    assert "label_not_among_likeliest_tokens" in answer.fallbacks
    assert answer.text in CHOICES


def test_a_server_that_refuses_token_ids_is_asked_for_its_likeliest(job, server):
    server.by_id = False
    answer = answer_to(job, "How bad?")

    assert set(answer.choice_logprobs) == set(CHOICES)
    assert "logprobs_of_likeliest_tokens_only" in answer.fallbacks


def test_a_server_without_logprobs_still_answers(job, server):
    server.vllm, server.logprobs = None, False
    answer = answer_to(job, "How bad?", clip="c0.wav")

    assert (answer.status, answer.choice_logprobs, answer.choice_mass) == ("ok", None, None)
    assert "server_gives_no_logprobs" in answer.fallbacks


@pytest.mark.parametrize("vllm", ["0.33.0", None])
@pytest.mark.parametrize("logprobs", [True, False])
def test_a_server_that_does_not_hear_is_found_out(job, server, vllm, logprobs):
    server.vllm, server.logprobs, server.hears = vllm, logprobs, False

    with pytest.raises(RunnerError, match="does not hear"):
        ask(job, question("How bad?", clip="c0.wav"))
    assert read_responses(job.responses) == {}


@pytest.mark.parametrize(
    ("happens", "status", "reason"),
    [
        (["400"], "model_error", "status 400: this is a 400"),
        (["policy"], "refused", "flagged"),
        (["filtered"], "refused", "content filter"),
        (["empty"], "model_error", "list of answers is empty"),
        (["malformed"] * 4, "model_error", "not JSON"),
        (["reset"] * 4, "model_error", "broke off"),
        (["500"] * 5, "model_error", "status 500"),
        (["hang"] * 2, "timeout", "within 0.8 s"),
        (["drip"] * 2, "timeout", "within 0.8 s"),
    ],
)
def test_each_failure_has_its_own_status_and_costs_its_own_item(
    job, server, happens, status, reason
):
    server.schedule["doomed"] = list(happens)
    answers = ask(job, question("a doomed one"), question("a sound one"))

    assert answers["id of a sound one"].status == "ok"
    failed = answers["id of a doomed one"]
    assert (failed.status, failed.choice_logprobs) == (status, None)
    assert reason in failed.reason
    assert len(server.asked("doomed")) == len(happens)


def said(content, *, model=None, **listed):
    """A chat completion; `listed` is the first token's log-probabilities."""
    top = [{"token": token.strip("_"), "logprob": value} for token, value in listed.items()]
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    if top:
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return json.dumps({"choices": [choice], "model": model})


@pytest.mark.parametrize(
    "content", [{"max_level": 5}, 5, True, [{"type": "text", "text": 5}], ["5"]]
)
def test_content_that_is_no_text_is_no_answer(job, server, content):
    """Written out as text it would hold a digit, and the digit would be a level."""
    server.schedule["odd"] = [said(content)]
    answer = answer_to(job, "an odd one")

    assert (answer.status, answer.text) == ("model_error", "")
    assert "its content is no text" in answer.reason


@pytest.mark.parametrize(
    ("content", "text"),
    [([{"type": "text", "text": "Level "}, {"type": "text", "text": "4"}], "Level 4"), (None, "")],
)
def test_an_answer_in_parts_is_their_text(job, server, content, text):
    server.schedule["odd"] = [said(content)]

    assert answer_to(job, "an odd one").text == text


@pytest.mark.parametrize(
    "listed", [dict.fromkeys("12345", 9.0), {"1": 40.0}, {"3": -0.1, "_3": -0.1, " 3": -0.1}]
)
def test_log_probabilities_that_sum_to_more_than_1_are_none(job, server, listed):
    server.vllm = None
    server.schedule["odd"] = [said("3", **listed)]
    answer = answer_to(job, "an odd one")

    assert (answer.status, answer.text) == ("ok", "3")
    assert (answer.choice_logprobs, answer.choice_mass) == (None, None)
    assert "logprobs_sum_to_more_than_1" in answer.fallbacks


@pytest.mark.parametrize("listed", [{"1": float("nan"), "3": -1.0}, {"3": -0.1, "_3": -2.0}])
def test_a_log_probability_that_is_none_or_two_fails_the_answer(job, server, listed):
    server.vllm = None
    server.schedule["odd"] = [said("3", **listed)]

    assert answer_to(job, "an odd one").status == "model_error"


def test_a_token_that_cannot_come_has_minus_infinity(job, server):
    server.vllm = None
    listed = {"1": -0.5, "2": -2.0, "3": -3.0, "4": -4.0, "5": -float("inf")}
    server.schedule["odd"] = [said("1", **listed)]
    answer = answer_to(job, "an odd one")

    assert answer.choice_logprobs is None
    assert answer.choice_mass == pytest.approx(0.8099, abs=1e-4)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("another/Model", True),
        ("mistralai/Voxtral-Mini-3B-2507-2026-11-30", False),
        (None, False),
    ],
)
def test_a_server_that_names_another_model_is_on_record(job, server, model, told):
    server.schedule["odd"] = [said("3", model=model)]

    assert ("server_names_another_model" in answer_to(job, "an odd one").fallbacks) is told


def test_a_long_rest_is_told(job, server, monkeypatch):
    monkeypatch.setattr(_asking, "TOLD_REST_S", 0.2)
    server.schedule["unlucky"] = ["429 after 0.3"]
    answer_to(job, "an unlucky one")

    assert f"{server.url} is busy (status 429): asked again in 0 s." in job.log.read_text()


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


def test_another_model_behind_the_endpoint_is_refused_by_name(card, server):
    server.served = ["other/model"]

    assert "serves other/model, not mistralai/Voxtral" in runner.why_not(card, Site(server.url))
    assert runner.why_not(card, Site(server.url, served_model="other/model")) is None


def test_the_image_is_the_model_and_the_version_not_the_address(card, server):
    site = Site(server.url)
    before = runner.image(card, site)
    server.vllm = "0.34.0"

    assert runner.image(card, site) != before
    assert runner.image(card, Site(server.url.replace("127.0.0.1", "localhost"))) == runner.image(
        card, site
    )


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (Site(), "needs an endpoint"),
        (Site("localhost:8000"), "expected an address like"),
        (Site("http://127.0.0.1:9/v1"), "connection was refused"),
        (Site("http://me:secret@localhost/v1"), "a key goes in UNDERTONE_API_KEY"),
        (Site("http://gpu.example/v1", offline=True), "offline=true forbids"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_one_sentence(card, site, said):
    reason = runner.why_not(card, site)

    assert said in reason
    assert "secret" not in reason


def test_the_key_goes_to_the_server_and_nowhere_else(job, server, monkeypatch):
    monkeypatch.setenv("UNDERTONE_API_KEY", "sk-very-secret")
    server.schedule["doomed"] = ["400"]
    ask(job, question("sound", clip="c0.wav"), question("doomed"))

    assert all(headers["Authorization"] == "Bearer sk-very-secret" for headers in server.headers)
    for path in job.responses.parent.rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes()


def test_a_remote_endpoint_says_once_what_leaves_the_machine(job, server, monkeypatch):
    monkeypatch.setattr("experiments.runners._endpoint.is_this_machine", lambda host: False)
    ask(job, question("How bad?", clip="c0.wav"), question("How good?"))
    said = job.log.read_text()

    assert said.count("Leaving this machine for 127.0.0.1") == 1
    assert "1 audio clips and the words of 2 requests" in said


def test_a_missing_clip_is_an_audio_error(job):
    assert answer_to(job, "How bad?", clip="gone.wav").status == "audio_error"


def test_a_clip_beyond_the_cards_limit_is_truncated(job, card):
    short = replace(card, capabilities=replace(card.capabilities, longest_clip_s=1.0))
    answer = answer_to(replace(job, card=short), "How bad?", clip="c0.wav")

    assert (answer.status, answer.audio_seconds_used) == ("truncated", 1.0)
    assert "clip_cut" in answer.fallbacks


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
