"""The MLflow store: found, reached within seconds, and opened by one process at a time.

Whatever it says when it will not is said again in one sentence (`TrackingError`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from urllib.request import urlopen

from experiments.credentials import NAME, PASSWORD, shown, take_login_out_of_the_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

_SQLITE = "sqlite:///"
# MLflow's words for a row that has come to be between its own look and its insert.
_MADE_MEANWHILE = ("BAD_REQUEST", "RESOURCE_ALREADY_EXISTS")
# "(sqlite3.OperationalError) database or disk is full"
_DATABASE_ERROR = re.compile(r"\(\w+(\.\w+)*Error\) ")
# What MLflow asks a server with where its user says nothing: its own values are seven tries,
# two minutes each, and a wait that doubles. What a run found is kept on the disk, so that it
# need not hope for long.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
REACHED_WITHIN_S = 5.0
_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}


class TrackingError(RuntimeError):
    """The store cannot be used; the message says which and what to do."""


def store_uri() -> str:
    """Where runs are kept: MLFLOW_TRACKING_URI, else `mlflow.db` in the current folder.

    Raises:
        TrackingError: in a folder whose name no address can hold.
    """
    take_login_out_of_the_store()
    if said := os.environ.get("MLFLOW_TRACKING_URI"):
        return said
    here = Path.cwd().resolve()
    if found := set("?%") & set(str(here)):
        # In an address they mean something else: runs would go to another file, or nowhere.
        raise TrackingError(
            f"{here}: its name has {' and '.join(sorted(found))}, which the address of an MLflow "
            "store cannot hold; work in another folder, or set MLFLOW_TRACKING_URI."
        )
    return f"{_SQLITE}{here}/mlflow.db"


def is_server(uri: str) -> bool:
    """Whether a store is asked over HTTP."""
    return uri.startswith(("http://", "https://"))


def open_store() -> tuple[MlflowClient, str]:
    """A client of the store and its address, its tables made where there are none.

    Raises:
        TrackingError: it does not answer, or cannot be opened.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    uri = store_uri()
    check_reachable(uri)
    be_brief()
    import mlflow

    _hush()

    mlflow.set_tracking_uri(uri)
    try:
        with one_at_a_time(uri):
            client = mlflow.MlflowClient(uri)
            client.search_experiments(max_results=1)
    except Exception as error:
        raise TrackingError(
            f"The MLflow store {shown(uri)} cannot be opened ({_cause(error)}). Point "
            "MLFLOW_TRACKING_URI at another, or run `mlflow db upgrade` on this one."
        ) from error
    return client, uri


def be_brief() -> None:
    """Have MLflow give up on a server within seconds, unless its user set it otherwise."""
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)


def check_reachable(uri: str) -> None:
    """Ask a server, or the machine of a database, for a sign of life.

    Raises:
        TrackingError: there is none within a few seconds; MLflow would try for minutes.
    """
    address = urlsplit(uri)
    kind = address.scheme.partition("+")[0]
    try:
        if is_server(uri):
            with urlopen(uri.rstrip("/") + "/health", timeout=REACHED_WITHIN_S):
                return
        elif kind in _PORTS and address.hostname:
            place = (address.hostname, address.port or _PORTS[kind])
            with socket.create_connection(place, timeout=REACHED_WITHIN_S):
                return
    except OSError as error:
        what = "MLflow server" if is_server(uri) else "database"
        raise TrackingError(
            f"No {what} answers at {shown(uri)} ({error}). Start it, or unset "
            "MLFLOW_TRACKING_URI to keep runs in mlflow.db here."
        ) from error


@contextmanager
def told(uri: str, what: str) -> Iterator[None]:
    """MLflow's own errors as a `TrackingError` of one sentence."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException

    try:
        yield
    # Of a file that a server does not take, MLflow passes on what its HTTP library says.
    except (MlflowException, RequestException) as error:
        raise TrackingError(
            f"In the MLflow store {shown(uri)} {what} ({_cause(error)}). The answers are kept: "
            "once this is put right, the same command goes on from them."
        ) from error


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


def even_if_made_meanwhile(write: Callable[[], T]) -> T:
    """What a write gives that finds or makes a row many runs share, tried a second time.

    Of an experiment, its tags and its datasets MLflow looks whether they are there and then
    inserts them, in no one step: of two runs that do so at once, one fails on any store. The
    second time it finds the other's row.

    Raises:
        MlflowException: what the second try raised.
    """
    from mlflow.exceptions import MlflowException

    try:
        return write()
    except MlflowException as error:
        if error.error_code not in _MADE_MEANWHILE:
            raise
    return write()


def experiment_of(client: MlflowClient, uri: str, name: str) -> str:
    """Id of the experiment of this name, made if it is not there."""

    def found_or_made() -> str:
        found = client.get_experiment_by_name(name)
        return str(found.experiment_id if found else client.create_experiment(name))

    with one_at_a_time(uri):
        return even_if_made_meanwhile(found_or_made)


def default_experiment(name: str) -> str:
    """Id of this experiment in the store MLflow is set to, before a run is opened."""
    import mlflow

    _hush()
    uri = mlflow.get_tracking_uri()
    with one_at_a_time(uri):
        client = mlflow.MlflowClient(uri)
        client.search_experiments(max_results=1)
    return experiment_of(client, uri, name)


def _cause(error: Exception) -> str:
    """The line of an error that says what happened: the database's own, where one is quoted."""
    lines = str(error).splitlines() or [type(error).__name__]
    cause = next((line for line in lines if _DATABASE_ERROR.match(line)), lines[0])
    if "401" in cause:
        cause += f" Set {NAME} and {PASSWORD}"
    return shown(cause)


def _hush() -> None:
    # The making of a store's tables is no news to whoever runs an evaluation.
    for name in ("mlflow.store.db.utils", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
