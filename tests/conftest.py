"""Data that is not ours to redistribute: found through UNDERTONE_SHARED, or beside the clone."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with the studies' raw files; a test that needs it carries the marker `shared`."""
    named = os.environ.get("UNDERTONE_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if named and not folder.is_dir():
        pytest.fail(f"UNDERTONE_SHARED names {folder}, which is no folder")
    if not folder.is_dir():
        pytest.skip("the studies' raw files are not here; point UNDERTONE_SHARED at them")
    return folder
