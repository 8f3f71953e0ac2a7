import pytest

from tests.hostile.hostile_run import run_in


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder in which a run over all that can be wrong left everything."""
    folder = tmp_path_factory.mktemp("hostile")
    run_in(folder)
    return folder
