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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which tests must share a process when several run at once.

    Those of a file share its fixtures. Those with containers share one engine, and some of them
    count what is on it.
    """
    for item in items:
        name = "engine" if item.get_closest_marker("docker") else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(name))
