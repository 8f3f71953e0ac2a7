import os
import time
from pathlib import Path

import pytest

from core.replacing import replace_text, replacing, sweep


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "card.md"
    replace_text(path, "one\r\ntwo")
    replace_text(path, "three")

    assert path.read_bytes() == b"three"
    assert list(tmp_path.iterdir()) == [path]


def test_until_the_block_ends_a_reader_sees_the_old_content(tmp_path):
    path = tmp_path / "card.md"
    replace_text(path, "old")
    with replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"

    assert path.read_text() == "new"


def test_a_block_that_raises_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "card.md"
    replace_text(path, "old")

    def fail_half_way():
        with replacing(path) as stream:
            stream.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_content_name_and_folder_are_synced_in_this_order(tmp_path, monkeypatch):
    done = []
    sync = os.fsync

    def noted(number):
        done.append(Path(f"/proc/self/fd/{number}").readlink())
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    replace_text(tmp_path / "card.md", "new")

    # The content while it has a name of its own, then the folder, which holds its final name.
    assert [(path.parent, path.suffix) for path in done] == [
        (tmp_path, ".part"),
        (tmp_path.parent, ""),
    ]


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    path = tmp_path / "clip.wav"
    with replacing(path) as first, replacing(path) as second:
        first.write(b"1" * 10)
        second.write(b"2" * 5)

    assert path.read_bytes() == b"1" * 10
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_may_be_read_by_whom_the_umask_lets(tmp_path):
    before = os.umask(0o027)
    try:
        replace_text(tmp_path / "card.md", "new")
    finally:
        os.umask(before)

    assert (tmp_path / "card.md").stat().st_mode & 0o777 == 0o640


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path):
    old, young, other = (tmp_path / name for name in (".a.part", ".b.part", "c.part"))
    for path in (old, young, other):
        path.touch()
    os.utime(old, (time.time() - 100, time.time() - 100))

    assert sweep(tmp_path, older_than_s=50) == 1
    assert sorted(tmp_path.iterdir()) == [young, other]
    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [other]
