"""Equal digests mean that nothing a run's figures rest on has changed."""

import os
import shutil
from pathlib import Path

import pytest

from experiments.basis import _folder, basis_of
from experiments.settings import ROOT, settings_from


@pytest.fixture
def data(tmp_path):
    return shutil.copytree(ROOT / "demo" / "distress", tmp_path / "data")


def replaced_keeping_its_time(path):
    facts = path.stat()
    new = path.with_name("new")
    new.write_bytes(bytes(facts.st_size))
    os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    new.replace(path)


def rewritten_keeping_its_time(path):
    facts = path.stat()
    path.write_bytes(bytes(facts.st_size))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("change", [replaced_keeping_its_time, rewritten_keeping_its_time])
@pytest.mark.parametrize("name", ["*.flac", "manifest.*", "dataset.json"])
def test_a_file_of_the_same_length_and_time_is_another(data, change, name):
    before, _ = _folder(data)
    change(next(data.rglob(name)))

    assert _folder(data)[0] != before


def test_a_manifest_counts_by_its_words_even_where_no_time_tells(data, monkeypatch):
    """As when a program keeps it mapped in its memory and writes there."""
    (manifest,) = data.glob("manifest.*")
    before, _ = _folder(data)
    facts, stat = manifest.stat(), os.stat
    manifest.write_bytes(manifest.read_bytes()[::-1])

    class Entry:
        def __init__(self, path):
            self.path, self.name = str(path), path.name

        def stat(self, **_):
            return facts if self.path == str(manifest) else stat(self.path)

        def is_file(self):
            return Path(self.path).is_file()

    monkeypatch.setattr(
        "experiments.basis.everything_below", lambda folder: map(Entry, data.rglob("*"))
    )
    assert _folder(data)[0] != before


def test_a_file_of_this_very_moment_might_change_once_more_and_look_the_same(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(b"sound")

    def settled(seconds):
        """That long after the file was last touched."""
        facts = path.stat()
        last = max(facts.st_ctime, facts.st_mtime)
        monkeypatch.setattr("experiments.basis.time.time", lambda: last + seconds)
        return _folder(tmp_path)[1]

    assert not settled(0.01)
    assert settled(0.1)
    # As on a file system whose clock counts in whole seconds.
    second = int(path.stat().st_ctime + 1) * 10**9
    os.utime(path, ns=(second, second))
    assert not settled(0.1)
    assert settled(2.1)


def test_a_folder_however_deep_is_walked_and_one_that_is_gone_is_none(tmp_path):
    deep = tmp_path / "deep"
    for _ in range(40):
        deep /= "d" * 40
    deep.mkdir(parents=True)
    (deep / "a.wav").write_bytes(b"sound")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    before, _ = _folder(tmp_path)
    (deep / "a.wav").write_bytes(b"SOUND")
    assert _folder(tmp_path)[0] != before

    gone = settings_from({"model": "null", "data": str(ROOT / "demo" / "distress")})
    shutil.rmtree(tmp_path / "deep")
    object.__setattr__(gone, "data", tmp_path / "deep")
    assert basis_of(gone) is None
