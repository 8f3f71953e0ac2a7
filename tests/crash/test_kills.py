"""A few seeded moments of `python -m benchmarks.kills`: nothing lost, doubled or different."""

import sqlite3
import time

import pytest

from benchmarks.killable import (
    BUILD,
    EVALUATE,
    LABELS,
    WORKER,
    Work,
    answered,
    carried_out,
    figures,
    itself,
    noted,
    start_evaluate,
)
from benchmarks.kills import Ground, ground_in, kill_often

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return ground_in(tmp_path_factory.mktemp("kills"))


@pytest.mark.parametrize(
    ("work", "moments"),
    [(EVALUATE, 3), (WORKER, 2), (BUILD, 2), (LABELS, 2)],
    ids=lambda said: getattr(said, "name", ""),
)
def test_what_was_killed_goes_on_and_ends_with_the_same(ground, work, moments):
    tally = kill_often(work, ground, moments, seed=8)

    assert tally.faults == []
    assert (tally.lost, tally.doubled, tally.different, tally.loaded) == (0, 0, 0, 0)
    assert tally.missed < moments


def forgetful(folder):
    """Work that begins anew each time, and asks its model each time."""
    noted(folder)
    with (folder / "done.txt").open("a") as stream:
        for name in "abc":
            stream.write(f"{name}\n")
            stream.flush()
            time.sleep(0.05)
    return 0


def lines(folder):
    path = folder / "done.txt"
    return path.read_text().split() if path.exists() else []


def test_work_that_begins_anew_is_found_out(ground):
    tally = kill_often(Work("forgetful", forgetful, lines, lines, itself), ground, 2, seed=1)

    # All is done twice over when the command is given once more.
    assert tally.different >= 2
    assert tally.loaded == 2
    assert not tally.is_clean


def statuses(ground):
    with sqlite3.connect(ground.store.removeprefix("sqlite:///")) as store:
        return dict(store.execute("SELECT status, COUNT(*) FROM runs GROUP BY status"))


def test_no_run_says_running_when_all_is_over(ground):
    found = statuses(ground)

    assert found.get("RUNNING", 0) == 0
    assert found["FINISHED"] > 0


def test_ten_evaluations_at_once_on_a_store_that_is_not_there_yet_all_succeed(ground):
    fresh = Ground(ground.folder, f"sqlite:///{ground.folder}/fresh/mlflow.db", ground.forking)
    folders = [ground.folder / "fresh" / str(number) for number in range(10)]
    running = [
        ground.forking.Process(target=carried_out, args=(start_evaluate, folder, fresh.store))
        for folder in folders
    ]
    for process in running:
        process.start()
    for process in running:
        process.join(200)

    said = [(folder / "said.txt").read_text(errors="replace") for folder in folders]
    assert [process.exitcode for process in running] == [0] * 10, said
    assert statuses(fresh) == {"FINISHED": 10}
    assert len({figures(folder) for folder in folders}) == 1
    assert len({tuple(sorted(answered(folder))) for folder in folders}) == 1
