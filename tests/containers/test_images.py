"""Every image's recipe and lock: what can be checked without an engine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from containers.runtime.card import read_card

ROOT = Path(__file__).parents[2]
IMAGES = sorted(path.parent for path in ROOT.glob("containers/*/Dockerfile"))
CARDS = sorted(path.parent for path in ROOT.glob("containers/*/model.toml"))
LABELS = ("title", "description", "licenses", "version", "revision")

image = pytest.mark.parametrize("folder", IMAGES, ids=lambda folder: folder.name)
card_of = pytest.mark.parametrize("folder", CARDS, ids=lambda folder: folder.name)


def wanted(folder: Path) -> list[Requirement]:
    lines = (folder / "requirements.in").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def locked(folder: Path) -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each package of the lock."""
    found: dict[str, tuple[str, int]] = {}
    name = ""
    for line in (folder / "requirements.txt").read_text().splitlines():
        if entry := re.match(r"([a-z0-9][\w.-]*)(?:\[.*\])?==(\S+)", line):
            name = entry[1]
            found[name] = (entry[2], 0)
        elif "--hash=sha256:" in line:
            found[name] = (found[name][0], found[name][1] + 1)
    return found


@image
def test_the_lock_holds_a_hashed_version_of_all_that_is_wanted(folder):
    lock = locked(folder)
    for requirement in wanted(folder):
        version, _ = lock[requirement.name.lower().replace("_", "-")]
        assert requirement.specifier.contains(version, prereleases=True), requirement
    assert all(hashes for _, hashes in lock.values())


@image
def test_the_lock_names_no_index_host_or_path(folder):
    for line in (folder / "requirements.txt").read_text().splitlines():
        entry = line.strip()
        assert not entry.startswith("-") or entry.startswith("--hash"), line
        assert "://" not in entry or entry.startswith("#"), line


@pytest.mark.slow
@image
def test_the_lock_is_what_its_documented_command_gives(folder, tmp_path):
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv: pip install uv")
    header = (folder / "requirements.in").read_text()
    command = " ".join(re.findall(r"^#  +(.*?)\\?$", header, re.MULTILINE)).split()
    assert command[:3] == ["uv", "pip", "compile"]
    before = (folder / "requirements.txt").read_text()
    # Compiled over the lock there is, so that a newer release somewhere is no difference.
    (tmp_path / "requirements.in").write_text(header)
    (tmp_path / "requirements.txt").write_text(before)
    done = subprocess.run([uv, *command[1:]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "requirements.txt").read_text() == before


@image
def test_code_comes_after_packages_and_nothing_runs_as_root(folder):
    lines = (folder / "Dockerfile").read_text()
    packages = lines.index("--require-hashes")
    code = lines.index("COPY containers/__init__.py ")
    user = re.search(r"^USER (\S+)", lines, re.MULTILINE)
    assert packages < code < user.start()
    assert not user[1].startswith(("0", "root"))
    assert "ARG BASE_IMAGE=" in lines
    assert "HF_HUB_OFFLINE=1" in lines
    assert all(f"org.opencontainers.image.{label}=" in lines for label in LABELS)
    for newer_syntax in ("# syntax", "--mount", "--link", "<<"):
        assert newer_syntax not in lines


@card_of
def test_a_card_says_what_it_is_and_pins_whole_revisions(folder):
    card = read_card(folder / "model.toml")
    assert card.name == folder.name
    assert card.verified in ("none", "layout", "tiny", "weights")
    assert card.verified == "none" or re.fullmatch(r"\d{4}-\d\d-\d\d", card.verified_on)
    for repo in card.repos:
        assert re.fullmatch(r"[0-9a-f]{40}", repo.revision), repo
    if card.gpu_memory_gb:
        assert set(card.gpu_memory_gb) == set(card.capabilities.precisions)
        least = card.parameters * 2 / 1e9
        assert card.gpu_memory_gb["bf16"] > least
