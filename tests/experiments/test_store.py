"""Where runs are kept; two that make the same row at the same moment both find it in the end."""

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sqlalchemy import event
from sqlalchemy.orm import Session

from experiments.store import (
    TrackingError,
    even_if_made_meanwhile,
    experiment_of,
    open_store,
    store_uri,
)
from experiments.tracking import Record, tracked_run, write

RECORD = Record(
    "null",
    metrics={"mae/AO": 1.0},
    headline=("mae",),
    dataset={"name": "demo", "digest": "d" * 32, "source": "{}", "profile": "{}"},
)


@pytest.fixture
def in_between(store):
    """Have something done once, after MLflow looked for a kind of row and before it inserts it."""
    to_do = []

    def come_first(session, _context, _instances):
        if to_do and any(type(row).__name__ == to_do[0][0] for row in session.new):
            to_do.pop()[1]()

    event.listen(Session, "before_flush", come_first)
    yield lambda kind, act: to_do.append((kind, act))
    event.remove(Session, "before_flush", come_first)
    assert not to_do, "The moment in between never came."


def test_a_dataset_is_logged_though_another_run_logs_it_at_the_same_moment(store, in_between):
    with tracked_run("e") as other, tracked_run("e") as run:
        in_between("SqlDataset", lambda: write(other, RECORD))
        write(run, RECORD)

    for each in (other, run):
        found = each.client.get_run(each.run_id)
        assert found.info.status == "FINISHED"
        assert [i.dataset.digest for i in found.inputs.dataset_inputs] == ["d" * 32]


def test_the_leaderboard_is_kept_though_another_run_keeps_one_at_the_same_moment(store, in_between):
    with tracked_run("e") as other, tracked_run("e") as run:
        in_between("SqlExperimentTag", lambda: write(other, RECORD))
        write(run, RECORD)

    assert run.leaderboard
    assert other.leaderboard


def test_an_experiment_is_found_though_another_process_makes_it_at_the_same_moment(
    store, in_between
):
    client, _ = open_store()
    made = []
    in_between("SqlExperiment", lambda: made.append(MlflowClient(store).create_experiment("e")))

    # As on a server, where no lock of ours keeps the other away.
    assert [experiment_of(client, "postgresql://host/runs", "e")] == made


def test_what_is_wrong_for_another_reason_is_said_at_once():
    tries = []

    def refused():
        tries.append(1)
        raise MlflowException("no such run", error_code=5)

    with pytest.raises(MlflowException, match="no such run"):
        even_if_made_meanwhile(refused)
    assert len(tries) == 1


@pytest.mark.parametrize("name", ["really?", "100%"])
def test_a_folder_that_no_address_can_name_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    with pytest.raises(TrackingError, match=r"which the address of an MLflow store cannot hold"):
        store_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert store_uri() == "http://127.0.0.1:5000"
