"""Requests read again from their file when their turn comes."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from containers.runtime.card import read_card
from containers.runtime.loop import measured
from containers.runtime.replies import Stamp
from containers.runtime.request_file import RequestFile
from core.protocol import ProtocolError, Request, write_requests
from experiments.settings import ROOT


def several(count, words="hello"):
    return [
        Request(f"r{n}", "Be brief.", ({"text": f"{words} {n} é"},), {"1": ("1", " 1")})
        for n in range(count)
    ]


def test_a_request_read_again_is_the_one_that_was_measured(tmp_path):
    path = tmp_path / "requests.jsonl"
    write_requests(path, several(20))
    file = RequestFile(path)

    again = [read for _, read in file.placed()]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda read: read(), reversed(again)))

    assert found == list(reversed(several(20)))
    assert list(file) == several(20)


def test_a_file_that_takes_its_name_meanwhile_is_not_read(tmp_path):
    path = tmp_path / "requests.jsonl"
    write_requests(path, several(3))
    file = RequestFile(path)
    again = [read for _, read in file.placed()]
    write_requests(path, several(3, words="other words, and more of them"))

    assert [read() for read in again] == several(3)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProtocolError, match=r"requests.jsonl: cannot be read"):
        RequestFile(tmp_path / "requests.jsonl")


def test_what_a_run_holds_of_a_request_does_not_depend_on_its_length(tmp_path):
    card = read_card(ROOT / "containers/null/model.toml")
    write_requests(tmp_path / "requests.jsonl", several(1_000, words="word " * 2_000))
    file = RequestFile(tmp_path / "requests.jsonl")
    tracemalloc.start()
    good, bad = measured(file.placed(), card, tmp_path, Stamp("", "", ""))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (len(good), bad) == (1_000, [])
    assert held / 1_000 < 1_000
