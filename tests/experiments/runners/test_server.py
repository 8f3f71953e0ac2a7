"""The server runner against a real HTTP server: what it sends, and how each failure ends."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from containers.runtime.response_log import read_responses
from experiments.runners import RunnerError, Site, _asking
from experiments.runners import server as runner
from tests.experiments.runners.openai_server import heard, shares
from tests.experiments.runners.server_jobs import CHOICES, answer_to, ask, question


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
