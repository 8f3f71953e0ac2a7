"""Answers found by id in a file that is not held."""

import json
import tracemalloc

import pytest

from containers.runtime.answered import Answered
from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import ProtocolError, Response


def answers(path, *responses):
    with ResponseLog(path) as log:
        log.append(list(responses))


def test_what_is_found_is_what_a_reader_of_the_whole_file_finds(tmp_path):
    path = tmp_path / "responses.jsonl"
    several = [
        Response(f"{n:032x}", "ok" if n % 3 else "timeout", text=str(n), reason="slow")
        for n in range(50)
    ]
    answers(path, *several, Response(several[3].id, "ok", text="again"))

    found = Answered(path)

    assert found.of([one.id for one in several]) == read_responses(path)
    assert found.status(several[3].id) == "ok"
    assert found.status(several[6].id) == "timeout"
    assert (found.is_final(several[3].id), found.is_final(several[6].id)) == (True, False)
    assert several[6].id in found
    assert "nobody" not in found
    assert found.of(["nobody"]) == {}


def test_an_answer_that_came_since_is_seen_when_it_is_looked_for(tmp_path):
    path = tmp_path / "responses.jsonl"
    found = Answered(path)
    answers(path, Response("a", "ok", text="1"))
    unseen = "a" in found
    found.look()
    answers(path, Response("a", "model_error", reason="lost"))
    found.look()

    assert not unseen
    assert found.of(["a"])["a"].reason == "lost"
    assert not found.is_final("a")


def test_a_line_being_written_is_taken_once_it_has_its_end(tmp_path):
    path = tmp_path / "responses.jsonl"
    answers(path, Response("a", "ok"), Response("b", "ok"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    found = Answered(path)
    before = "b" in found
    path.write_bytes(whole)
    found.look()

    assert not before
    assert set(found.of(["a", "b"])) == {"a", "b"}


@pytest.mark.parametrize("name", ["sl/ash", 'quo"te', "back\\slash", "é", "\u2028", "a b"])
def test_any_id_is_found_however_the_line_was_written(tmp_path, name):
    path = tmp_path / "responses.jsonl"
    answers(path, Response(name, "refused"))
    with path.open("a", encoding="utf-8") as stream:
        record = {"schema": 1, "status": "ok", "id": name + "'"}
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")

    found = Answered(path)

    assert found.of([name])[name].status == "refused"
    assert found.of([name + "'"])[name + "'"].status == "ok"


def test_a_line_that_is_no_response_is_named_when_it_is_met_or_used(tmp_path):
    path = tmp_path / "responses.jsonl"
    answers(path, Response("a", "ok"), Response("b", "ok"))
    good = path.read_text()
    path.write_text(good.replace('"id":"b","status":"ok"', '"id":"b","status":"fine"'))
    with pytest.raises(ProtocolError, match=r"line 2: expected a status.*is asked again"):
        Answered(path)

    path.write_text(good.replace('"status":"ok","text":""', '"status":"ok","text":3', 1))
    with pytest.raises(ProtocolError, match=r"responses.jsonl, line 1: expected text to be"):
        Answered(path).of(["a", "b"])


def test_what_is_held_of_an_answer_does_not_depend_on_its_length(tmp_path):
    path = tmp_path / "responses.jsonl"
    answers(path, *(Response(f"{n:032x}", "ok", text="x" * 5_000) for n in range(2_000)))
    tracemalloc.start()
    found = Answered(path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held / 2_000 < 300
    assert len(found.of([f"{7:032x}"])) == 1
