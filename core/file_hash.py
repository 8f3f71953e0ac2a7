"""The content of a file in a word: what keeps equal names from standing for other bytes."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes; OSError where it cannot be read."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
