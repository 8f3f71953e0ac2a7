"""What was appended is read back, whatever a kill left behind it."""

import pytest

from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import Response


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
