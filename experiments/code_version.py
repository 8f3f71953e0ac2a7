"""Which code this is: its commit, for people; a digest of its files, which nothing escapes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from core.file_hash import sha256_of
from experiments.settings import ROOT

_CODE = ("core", "validation", "experiments", "containers")


def git_commit() -> str:
    """Commit of this code, with `+changes` where files differ from it; "" outside a clone."""
    # Of a copy inside another repository, or with one named in the environment, git would tell
    # that one's commit.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        told = [
            subprocess.run(
                ["git", "-C", str(ROOT), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
                env=own,
            ).stdout.strip()
            for words in (
                ["rev-parse", "--show-toplevel", "HEAD"],
                ["status", "--porcelain", "-uno"],
            )
        ]
    except (OSError, subprocess.SubprocessError):
        return ""
    top, _, commit = told[0].rpartition("\n")
    if Path(top).resolve() != ROOT:
        return ""
    return commit + ("+changes" if told[1] else "")


def code_digest() -> str:
    """Of all our files, those in no commit too: a task is added by a file of its own."""
    read = sha256()
    for part in _CODE:
        for entry in sorted(everything_below(str(ROOT / part)), key=lambda each: each.path):
            if entry.is_file() and "__pycache__" not in entry.path:
                read.update(
                    f"{entry.path}\0{sha256_of(Path(entry.path))}\n".encode(
                        errors="surrogateescape"
                    )
                )
    return read.hexdigest()


def everything_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything in a folder and in those in it, however deep; links are not followed."""
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
