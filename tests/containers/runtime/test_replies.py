"""An answer becomes a response, or a failure with a reason; never a number that is none."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from containers.runtime.adapter import Answer, Clip, Prompt
from containers.runtime.replies import LEAST_LOGPROB, Stamp, failure, reply

STAMP = Stamp(card="card", image="process", precision="bf16")
CLIP = Clip("a.wav", "a.wav", np.zeros(32_000, dtype="f4"))
ASKED = Prompt("q", None, (CLIP,), {"A": ("A",), "B": ("B",)}, 8, 0.0, 1.0, 0)


def answered(a: float = -0.1, b: float = -2.3, mass: float | None = 0.9, used: float = 2.0, **more):
    answer = Answer("A", "choice", 9, used, {"A": a, "B": b}, mass, **more)
    return reply(ASKED, ("clip_cut",), answer, 0.1, STAMP)


def test_an_answer_keeps_its_numbers_and_where_it_was_made():
    response = answered(fallbacks=("exemplars_as_transcripts", "clip_cut"))
    assert (response.status, response.choice_logprobs) == ("ok", {"A": -0.1, "B": -2.3})
    assert (response.card, response.precision, response.audio_seconds) == ("card", "bf16", 2.0)
    assert response.fallbacks == ("clip_cut", "exemplars_as_transcripts")


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": math.nan},
        {"b": math.inf},
        {"a": "-0.1"},
        {"a": -0.1, "b": -0.1},
        {"a": -math.inf, "b": -math.inf},
        {"mass": math.nan},
        {"mass": 2},
        {"used": math.nan},
        {"used": math.inf},
        {"used": -1.0},
        {"used": None},
    ],
)
def test_no_number_is_a_model_error(wrong):
    response = answered(**wrong)
    assert (response.status, response.choice_logprobs) == ("model_error", None)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "3",
        Answer(3, "stop", 9, 2.0),
        Answer(None, "stop", 9, 2.0),
        Answer("A", None, 9, 2.0),
        Answer("A", "stop", None, 2.0),
        Answer("A", "stop", -4, 2.0),
        Answer("A", "stop", 9, 2.0, fallbacks="clip_cut"),
    ],
)
def test_what_is_no_answer_is_a_model_error_that_shows_it(given):
    response = reply(replace(ASKED, choices=None), (), given, 0.1, STAMP)
    assert (response.status, response.text) == ("model_error", "")
    assert "the adapter gave" in response.reason


def test_half_a_surrogate_pair_can_be_written():
    answer = Answer("3 \ud83d", "stop", 9, 2.0)
    assert reply(replace(ASKED, choices=None), (), answer, 0.1, STAMP).text == "3 ?"
    assert failure("q", "model_error", "\ud83d", STAMP).reason == "?"


def test_scalars_of_numpy_become_json():
    response = answered(np.float32(-0.1), np.float32(-2.5), np.float32(0.9), np.float64(2.0))
    assert response.status == "ok"
    assert json.loads(json.dumps(vars(response)))["audio_seconds_used"] == 2.0


def test_probability_zero_stays_zero():
    assert answered(b=-math.inf).choice_logprobs["B"] == LEAST_LOGPROB
    assert math.exp(LEAST_LOGPROB) < 1e-300


def test_a_label_without_a_probability_is_a_model_error():
    answer = Answer("A", "choice", 9, 2.0, {"A": -0.1}, 0.9)
    assert reply(ASKED, (), answer, 0.1, STAMP).status == "model_error"


def test_less_audio_used_than_given_is_truncated():
    response = answered(used=1.5)
    assert (response.status, response.reason) == ("truncated", "used 1.5 s of 2.0 s of audio.")


def test_a_frame_more_or_less_is_not():
    assert answered(used=1.92).status == "ok"


def test_a_reason_is_one_line_of_bounded_length():
    reason = failure("q", "model_error", "a\n" * 10_000, STAMP).reason
    assert "\n" not in reason
    assert len(reason) == 500
