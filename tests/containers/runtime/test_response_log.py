"""What was appended is read back, whatever a kill left behind it."""

from dataclasses import replace

import pytest

from containers.runtime.answered import Answered
from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import ProtocolError, Response


def test_the_last_answer_of_an_id_wins(tmp_path):
    with ResponseLog(tmp_path / "r.jsonl") as log:
        log.append([Response("a", "model_error", reason="no memory")])
        log.append([Response("a", "ok", text="3")])
    assert read_responses(tmp_path / "r.jsonl")["a"].text == "3"


def test_a_half_written_last_line_is_not_read_and_is_cut_off_on_opening(tmp_path):
    path = tmp_path / "r.jsonl"
    with ResponseLog(path) as log:
        log.append([Response("a", "ok", text="3")])
    with path.open("ab") as stream:
        stream.write(b'{"id":"b","sta')
    assert set(read_responses(path)) == {"a"}
    with ResponseLog(path) as log:
        assert log.repaired == 14
        log.append([Response("b", "ok", text="4")])
    assert {key: answer.text for key, answer in read_responses(path).items()} == {
        "a": "3",
        "b": "4",
    }


def test_a_number_that_is_none_is_never_written(tmp_path):
    with ResponseLog(tmp_path / "r.jsonl") as log, pytest.raises(ValueError, match="JSON"):
        log.append([Response("a", "ok", choice_mass=float("nan"))])


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"text": "5"}, "expected the text that a has in a line before, '3', found '5'"),
        ({"status": "truncated"}, "expected the status that a has"),
        ({"choice_logprobs": {"3": -0.7}}, "expected the choice_logprobs that a has"),
    ],
)
def test_two_answers_that_disagree_are_no_answer(tmp_path, other, named):
    path = tmp_path / "r.jsonl"
    first = Response("a", "ok", text="3", choice_logprobs={"3": -0.1}, latency_s=1.0)
    with ResponseLog(path) as log:
        log.append([first, replace(first, **other)])

    with pytest.raises(ProtocolError, match=r"r\.jsonl, line 2: " + named):
        read_responses(path)
    with pytest.raises(ProtocolError, match=r"r\.jsonl, line 2: " + named):
        Answered(path)


def test_the_same_answer_twice_is_one(tmp_path):
    path = tmp_path / "r.jsonl"
    first = Response("a", "ok", text="3", latency_s=1.0)
    with ResponseLog(path) as log:
        log.append([first, replace(first, latency_s=2.0)])

    assert Answered(path).of(["a"]) == read_responses(path)
