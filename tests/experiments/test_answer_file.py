from contextlib import closing

import pytest

from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import Response
from experiments.answer_file import open_answers, repaired
from experiments.runners import RunnerError


def test_what_a_kill_cut_is_taken_out_and_said_once(tmp_path):
    path = tmp_path / "responses.jsonl"
    assert repaired(path) == ""
    with ResponseLog(path) as log:
        log.append([Response("a", "ok", text="3"), Response("b", "ok", text="4")])
    path.write_bytes(path.read_bytes()[:-5])

    assert "its last line was cut short" in repaired(path)
    assert repaired(path) == ""
    assert list(read_responses(path)) == ["a"]


def test_answers_that_another_writes_are_left_alone(tmp_path):
    path = tmp_path / "responses.jsonl"
    with closing(open_answers(path)), pytest.raises(RunnerError, match=r"responses\.jsonl"):
        open_answers(path)
