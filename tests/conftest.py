"""Data that is not ours to redistribute: found through UNDERTONE_SHARED, or beside the clone."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def alone_on_the_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests with containers take turns, also in several processes: some count what is there."""
    if request.node.get_closest_marker("docker") is None:
        yield
        return
    with (Path(tempfile.gettempdir()) / "undertone-tests-engine.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with containers has time to wait for its turn."""
    for item in items:
        if item.get_closest_marker("docker") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))
