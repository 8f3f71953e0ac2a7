"""Locks: each is closed, hashed and for linux x86_64; the pins that vendors' code depends on hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("containers/*/requirements.txt"))
lock = pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.name)

# What each vendor's code was published for, or the first release that has its class.
PINNED = {
    "minicpm_o": {"transformers": "4.44.2", "torch": "2.3.1", "vocos": "0.1.0", "librosa": "0.9.0"},
    "phi4_multimodal": {"transformers": "4.48.2", "torch": "2.6.0", "peft": "0.13.2"},
    "ultravox": {"transformers": "4.57.6", "peft": "0.17.1"},
    "qwen2_5_omni": {"transformers": "5.23.0"},
    "voxtral": {"transformers": "5.23.0", "mistral-common": "1.13.1"},
}


def entries(path: Path) -> list[str]:
    """Each entry with its hashes and its remark, continued lines joined."""
    joined = path.read_text().replace("\\\n", " ")
    return [entry for entry in re.split(r"\n(?=[a-zA-Z0-9])", joined) if entry.strip()]


def versions(path: Path) -> dict[str, str]:
    pairs = (re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", entry) for entry in entries(path))
    return {found[1]: found[2] for found in pairs}


@lock
def test_every_entry_is_one_exact_version_with_whole_hashes(path):
    for entry in entries(path):
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[^\s;]+(\s*;[^\n]+?)?\s+--hash", entry), entry[:80]
        hashes = re.findall(r"--hash=sha256:(\S+)", entry)
        assert hashes
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in hashes)


@lock
def test_every_package_says_who_wanted_it_and_that_one_is_there(path):
    there = set(versions(path))
    for entry in entries(path):
        wanting = re.findall(r"#(?: via)?\s+(?:via )?([\w.-]+|-r requirements\.in)", entry)
        assert wanting, entry[:80]
        for name in wanting:
            assert name.startswith("-r") or name == "via" or name in there, (entry[:40], name)


@lock
def test_what_is_wanted_directly_is_marked_so(path):
    lines = path.with_name("requirements.in").read_text().splitlines()
    wanted = {
        Requirement(line).name.lower().replace("_", "-")
        for line in lines
        if line and not line.startswith("#")
    }
    marked = {
        re.match(r"[\w.-]+", entry)[0] for entry in entries(path) if "-r requirements.in" in entry
    }
    assert marked == wanted


@pytest.mark.parametrize("name", PINNED)
def test_what_the_vendors_code_depends_on_is_at_its_version(name):
    found = versions(ROOT / "containers" / name / "requirements.txt")
    assert {package: found[package] for package in PINNED[name]} == PINNED[name]


@lock
def test_the_command_in_the_head_names_the_files_beside_it_and_the_platform(path):
    head = path.with_name("requirements.in").read_text()
    command = " ".join(re.findall(r"^#  +(.*?)\\?$", head, re.MULTILINE)).split()
    assert command[:4] == ["uv", "pip", "compile", "requirements.in"]
    assert command[-2:] == ["-o", "requirements.txt"]
    assert "--generate-hashes" in command
    assert command[command.index("--python-platform") + 1] == "x86_64-manylinux_2_28"
