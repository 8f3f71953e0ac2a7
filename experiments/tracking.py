"""The MLflow side of a run: the store, the run's life, and one quick write of all it found.

Metrics go in one batch and artifacts in one folder, because each call to a
store costs more than all our figures together. `experiments.record` decides
what is written; here is only how.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from experiments import view
from experiments.settings import ROOT

if TYPE_CHECKING:
    from mlflow import MlflowClient

OWNER_TAG = "undertone.process"
# MLflow's limits; beyond them it cuts in silence or refuses.
LONGEST_PARAMETER = 6_000
LONGEST_TAG = 8_000
MOST_METRICS = 99

# The names MLflow makes up for a run nobody named: "skittish-snail-12".
_MADE_UP_NAME = re.compile(r"^[a-z]+-[a-z]+-\d+$")
_ENTRY_POINT = "mlflow.project.entryPoint"
_SQLITE = "sqlite:///"
# "(sqlite3.OperationalError) database or disk is full"
_DATABASE_ERROR = re.compile(r"\(\w+(\.\w+)*Error\) ")


class TrackingError(RuntimeError):
    """The store cannot be used; the message says which and what to do."""


@dataclass
class Record:
    """All that one run writes to MLflow.

    Attributes:
        name: of the run, as the list shows it.
        parameters: what was asked for; under names of our own, since `mlflow run` has
            already written its quoted words under the plain ones.
        tags: what a reader filters by.
        metrics: name -> value; NaN allowed.
        note: markdown shown first on the run's page.
        files: folder whose content becomes the artifacts.
        tables: artifact name -> DataFrame, opened by the UI as tables.
        dataset: name, digest, source and profile, or None.
        headline: metrics without their condition, most important first.
    """

    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    note: str = ""
    files: Path | None = None
    tables: dict[str, Any] = field(default_factory=dict)
    dataset: dict[str, str] | None = None
    headline: tuple[str, ...] = ()


@dataclass
class TrackedRun:
    """An open MLflow run; `leaderboard` where it gave its experiment one."""

    client: MlflowClient
    uri: str
    experiment_id: str
    run_id: str
    opening_s: float = 0.0
    writing_s: float = 0.0
    leaderboard: bool = False

    @property
    def artifacts(self) -> str:
        """Address its files are kept under."""
        return str(self.client.get_run(self.run_id).info.artifact_uri)


def how_to_look(uri: str, experiment_id: str, *, leaderboard: bool = True) -> str:
    """The command that opens the UI, and the page of it that compares an experiment's runs."""
    shown = view.ADDRESS if leaderboard else view.LIST_OF_RUNS
    page = f"#/experiments/{experiment_id}/runs?{shown}"
    if uri.startswith(("http://", "https://")):
        return f"{uri.rstrip('/')}/{page}"
    command = f"mlflow ui --backend-store-uri {shlex.quote(uri)}"
    return f"{command}   then http://127.0.0.1:5000/{page}"


def store_uri() -> str:
    """Where runs are kept: MLFLOW_TRACKING_URI, else `mlflow.db` in the current folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"{_SQLITE}{Path('mlflow.db').resolve()}"


@contextmanager
def tracked_run(experiment: str) -> Iterator[TrackedRun]:
    """An MLflow run that is closed whatever happens inside.

    The run `mlflow run` opened for us is adopted, with its experiment; else a new
    one is opened in the experiment of that name. An error ends it as FAILED, a
    signal as KILLED.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    started = time.perf_counter()
    client, uri = open_store()
    with _told(uri, "no run can be opened"):
        run = _adopted(client, uri) or _opened(client, uri, experiment)
    run.opening_s = time.perf_counter() - started
    try:
        yield run
    except BaseException as error:
        stopped = not isinstance(error, Exception)
        # The reason it failed counts, not that a full disk or a lost server cannot note it.
        with suppress(Exception):
            run.client.set_terminated(run.run_id, "KILLED" if stopped else "FAILED")
        raise
    with _told(uri, "the run cannot be closed"):
        # Of use only while a run may be abandoned; a reader has no business with it.
        run.client.delete_tag(run.run_id, OWNER_TAG)
        run.client.set_terminated(run.run_id, "FINISHED")


@contextmanager
def _told(uri: str, what: str) -> Iterator[None]:
    """MLflow's own errors as a `TrackingError` of one sentence."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise TrackingError(
            f"In the MLflow store {uri} {what} ({_cause(error)}). The answers are kept: once "
            "this is put right, the same command goes on from them."
        ) from error


def write(run: TrackedRun, record: Record) -> None:
    """Write everything a run found.

    Raises:
        ValueError: more metrics than the UI can bear.
        TrackingError: the store does not take them.
    """
    if len(record.metrics) > MOST_METRICS:
        raise ValueError(f"{len(record.metrics)} metrics; the UI takes {MOST_METRICS} columns.")
    started = time.perf_counter()
    with _told(run.uri, "the run cannot be written"):
        _write(run, record)
    run.writing_s += time.perf_counter() - started


def _write(run: TrackedRun, record: Record) -> None:
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    tags = {**record.tags, "mlflow.note.content": record.note}
    opened = run.client.get_run(run.run_id)
    if _is_nobodys(opened.info.run_name, opened.data.tags):
        tags["mlflow.runName"] = record.name
    run.client.log_batch(
        run.run_id,
        metrics=[Metric(name, value, now, 0) for name, value in record.metrics.items()],
        params=[Param(k, v[:LONGEST_PARAMETER]) for k, v in record.parameters.items()],
        tags=[RunTag(k, v[:LONGEST_TAG]) for k, v in tags.items() if v],
    )
    if record.dataset:
        _write_dataset(run, record.dataset)
    for name, table in record.tables.items():
        run.client.log_table(run.run_id, table, name)
    if record.headline:
        _save_view(run, record)
    if record.files:
        run.client.log_artifacts(run.run_id, str(record.files))


def name_after_command(client: MlflowClient, run_id: str) -> None:
    """Name a run of `mlflow run` after its entry point, until its program says more of it."""
    run = client.get_run(run_id)
    command = run.data.tags.get(_ENTRY_POINT)
    if command and _is_nobodys(run.info.run_name, run.data.tags):
        client.set_tag(run_id, "mlflow.runName", command)


def _is_nobodys(name: str | None, tags: Mapping[str, str]) -> bool:
    """Whether a run's name was neither its user's choice nor its program's."""
    return bool(_MADE_UP_NAME.match(name or "")) or name == tags.get(_ENTRY_POINT)


def git_commit() -> str:
    """Commit of this code, with `+changes` where files differ from it; "" outside a clone."""
    try:
        told = [
            subprocess.run(
                ["git", "-C", str(ROOT), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
        ]
    except (OSError, subprocess.SubprocessError):
        return ""
    return told[0] + ("+changes" if told[1] else "")


@contextmanager
def one_at_a_time(uri: str) -> Iterator[None]:
    """Hold other processes off a sqlite store: two that create its tables at once break it."""
    if not uri.startswith(_SQLITE):
        yield
        return
    database = Path(uri[len(_SQLITE) :])
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(database.name + ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def open_store() -> tuple[MlflowClient, str]:
    """A client of the store and the store's address.

    Raises:
        TrackingError: it cannot be reached or opened.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    uri = store_uri()
    _check_server(uri)
    import mlflow

    _hush()

    mlflow.set_tracking_uri(uri)
    try:
        with one_at_a_time(uri):
            client = mlflow.MlflowClient(uri)
            client.search_experiments(max_results=1)
    except Exception as error:
        raise TrackingError(
            f"The MLflow store {uri} cannot be opened ({_cause(error)}). Point "
            "MLFLOW_TRACKING_URI at another, or run `mlflow db upgrade` on this one."
        ) from error
    return client, uri


def _cause(error: Exception) -> str:
    """The line of an error that says what happened: the database's own, where one is quoted."""
    lines = str(error).splitlines() or [type(error).__name__]
    return next((line for line in lines if _DATABASE_ERROR.match(line)), lines[0])


def _hush() -> None:
    # The making of a store's tables is no news to whoever runs an evaluation.
    for name in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _check_server(uri: str) -> None:
    if not uri.startswith(("http://", "https://")):
        return
    try:
        # MLflow itself would try for minutes before it says so.
        with urlopen(uri.rstrip("/") + "/health", timeout=5):
            return
    except OSError as error:
        raise TrackingError(
            f"No MLflow server answers at {uri} ({error}). Start it, or unset MLFLOW_TRACKING_URI "
            "to keep runs in mlflow.db here."
        ) from error


def _adopted(client: MlflowClient, uri: str) -> TrackedRun | None:
    run_id = os.environ.get("MLFLOW_RUN_ID")
    if not run_id:
        return None
    run = client.get_run(run_id)
    client.set_tag(run_id, OWNER_TAG, _owner())
    return TrackedRun(client, uri, run.info.experiment_id, run_id)


def _opened(client: MlflowClient, uri: str, name: str) -> TrackedRun:
    experiment_id = experiment_of(client, uri, name)
    _mark_abandoned(client, experiment_id)
    tags = {
        OWNER_TAG: _owner(),
        "mlflow.source.name": "experiments.evaluate",
        "mlflow.source.type": "LOCAL",
        "mlflow.user": os.environ.get("USER", ""),
        "mlflow.source.git.commit": git_commit(),
    }
    tags = {key: value for key, value in tags.items() if value}
    run = client.create_run(experiment_id, tags=tags)
    return TrackedRun(client, uri, experiment_id, run.info.run_id)


def experiment_of(client: MlflowClient, uri: str, name: str) -> str:
    """Id of the experiment of this name, made if it is not there."""
    with one_at_a_time(uri):
        found = client.get_experiment_by_name(name)
        return str(found.experiment_id if found else client.create_experiment(name))


def default_experiment(name: str) -> str:
    """Id of this experiment in the store MLflow is set to, before a run is opened."""
    import mlflow

    _hush()
    uri = mlflow.get_tracking_uri()
    with one_at_a_time(uri):
        client = mlflow.MlflowClient(uri)
        client.search_experiments(max_results=1)
    return experiment_of(client, uri, name)


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _mark_abandoned(client: MlflowClient, experiment_id: str) -> None:
    """End the runs whose process was killed on this machine: they would say RUNNING for ever."""
    host = socket.gethostname()
    for run in client.search_runs([experiment_id], "attributes.status = 'RUNNING'"):
        owner, _, pid = run.data.tags.get(OWNER_TAG, "").rpartition(":")
        if owner == host and not _alive(int(pid)):
            with suppress(Exception):
                client.set_terminated(run.info.run_id, "KILLED")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _save_view(run: TrackedRun, record: Record) -> None:
    value = view.leaderboard(list(record.metrics), record.headline)
    # A comfort that MLflow does not promise: no run fails for it.
    with suppress(Exception):
        if len(value) <= view.LONGEST_TAG:
            run.client.set_experiment_tag(run.experiment_id, view.TAG, value)
            run.leaderboard = True


def _write_dataset(run: TrackedRun, said: dict[str, str]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    # Not mlflow.data: its digest covers the first 10,000 rows and no audio.
    dataset = Dataset(
        name=said["name"],
        digest=said["digest"],
        source_type="local",
        source=said["source"],
        profile=said["profile"],
    )
    context = InputTag("mlflow.data.context", "evaluation")
    run.client.log_inputs(run.run_id, [DatasetInput(dataset, [context])])
