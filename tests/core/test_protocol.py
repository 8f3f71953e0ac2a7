"""The contract: what is written is what is read, and a damaged file is named or mended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from containers.runtime.response_log import read_responses
from core.protocol import (
    ProtocolError,
    Request,
    read_requests,
    request_id,
    write_requests,
)

ASKED = Request(
    id="a",
    system="You listen.",
    parts=(
        {"audio": "c0ffee.wav"},
        {"text": "Rate: "},
        {"text": "I'm fine.", "slot": "transcript"},
    ),
    choices={"1": ("1", " 1"), "2": ("2", " 2")},
    seed=7,
)


def test_requests_come_back_as_they_were_written(tmp_path):
    write_requests(tmp_path / "r.jsonl", [ASKED, replace(ASKED, id="b", choices=None, system=None)])
    assert read_requests(tmp_path / "r.jsonl")[0] == ASKED


def test_a_line_separator_inside_a_text_does_not_split_the_record(tmp_path):
    request = replace(ASKED, parts=({"text": "one\u2028two\x85three\ud800"},))
    write_requests(tmp_path / "r.jsonl", [request])
    assert read_requests(tmp_path / "r.jsonl") == [request]


def test_a_repeated_id_is_named_with_its_line(tmp_path):
    write_requests(tmp_path / "r.jsonl", [ASKED, ASKED])
    with pytest.raises(ProtocolError, match=r"r\.jsonl, line 2: id a appears twice"):
        read_requests(tmp_path / "r.jsonl")


@pytest.mark.parametrize("name", ["../gold.wav", "/etc/passwd", "..", "a/b.wav"])
def test_no_request_leads_out_of_the_audio_folder(tmp_path, name):
    write_requests(tmp_path / "r.jsonl", [replace(ASKED, parts=({"audio": name},))])
    with pytest.raises(ProtocolError, match="line 1"):
        read_requests(tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    "wrong",
    [{"max_new_tokens": 0}, {"top_p": 0.0}, {"temperature": -1.0}, {"choices": {}}, {"schema": 99}],
)
def test_a_request_out_of_range_is_refused(tmp_path, wrong):
    write_requests(tmp_path / "r.jsonl", [replace(ASKED, **wrong)])
    with pytest.raises(ProtocolError, match="line 1"):
        read_requests(tmp_path / "r.jsonl")


def test_a_failed_write_of_requests_leaves_the_old_file(tmp_path):
    path = tmp_path / "r.jsonl"
    write_requests(path, [ASKED])
    with pytest.raises(TypeError):
        write_requests(path, [replace(ASKED, parts=({"text": object()},))])
    assert read_requests(path) == [ASKED]


def test_a_broken_line_in_the_middle_is_an_error_not_a_loss(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": broken\n' + json.dumps({"schema": 1, "id": "b", "status": "ok"}) + "\n")
    with pytest.raises(ProtocolError, match=r"line 1: not JSON"):
        read_responses(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", '["a"]'),
        ("text", "3"),
        ("reason", "3"),
        ("choice_logprobs", "[1]"),
        ("choice_logprobs", '{"3": NaN}'),
        ("choice_logprobs", '{"3": "-0.1"}'),
        ("choice_logprobs", '{"3": 0.5}'),
        ("choice_mass", '"all"'),
        ("choice_mass", "7"),
        ("choice_mass", "-0.1"),
        ("latency_s", "-1"),
        ("audio_seconds_used", "Infinity"),
        ("prompt_tokens", "true"),
        ("fallbacks", "3"),
    ],
)
def test_a_response_whose_field_is_of_another_kind_is_refused_with_its_line(tmp_path, field, value):
    path = tmp_path / "responses.jsonl"
    good = '{"schema": 1, "id": "a", "status": "ok"}\n'
    path.write_text(f'{good}{{"schema": 1, "id": "b", "status": "ok", "{field}": {value}}}\n')

    with pytest.raises(ProtocolError, match=f"line 2: expected {field} to be"):
        read_responses(path)


def test_a_field_nobody_knows_is_refused_with_those_that_are_known(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_text('{"schema": 1, "id": "a", "status": "ok", "foo": 3}\n')

    with pytest.raises(
        ProtocolError, match=r"line 1: expected an id and fields of id, status, .*foo"
    ):
        read_responses(path)


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"\0\0\n"])
def test_bytes_that_are_no_json_are_refused_with_their_line(tmp_path, line):
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b'{"schema": 1, "id": "a", "status": "ok"}\n' + line)

    with pytest.raises(ProtocolError, match="line 2: not"):
        read_responses(path)


def test_an_unfinished_last_line_may_hold_any_bytes(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b'{"schema": 1, "id": "a", "status": "ok"}\n\xff\0')

    assert list(read_responses(path)) == ["a"]


def test_an_unknown_status_is_refused(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"schema":1,"id":"a","status":"fine"}\n')
    with pytest.raises(ProtocolError, match="expected a status"):
        read_responses(tmp_path / "r.jsonl")


def test_what_decides_an_answer_changes_its_id_and_what_does_not_does_not():
    base = request_id("turn 1", ASKED, "model")
    assert request_id("turn 1", replace(ASKED, id="x", prefix_parts=2), "model") == base
    others = [
        request_id("turn 2", ASKED, "model"),
        request_id("turn 1", ASKED, "other model"),
        request_id("turn 1", replace(ASKED, seed=8), "model"),
        request_id("turn 1", replace(ASKED, temperature=0.7), "model"),
        request_id("turn 1", replace(ASKED, system=None), "model"),
        request_id("turn 1", replace(ASKED, parts=({"audio": "decaf.wav"},)), "model"),
    ]
    assert len({base, *others}) == 7


def test_a_damaged_answer_says_what_removing_it_does(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_text('{"schema": 1, "id": 7}\n')

    with pytest.raises(ProtocolError, match=r"line 1: .*Without that line its request is asked"):
        read_responses(path)
