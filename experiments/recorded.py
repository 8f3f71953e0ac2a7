"""Whether a run's outcome stands in MLflow already: the same command again adds no second run.

A note in the run's folder says which MLflow run holds which outcome. It is trusted
only while that run is there and finished, which a sqlite store is asked directly:
to import MLflow takes longer than all the rest of such a rerun.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from core.file_hash import sha256_of
from core.protocol import digest
from experiments.code_version import git_commit
from experiments.credentials import shown
from experiments.run_description import PACKAGES
from experiments.run_folder import RunFolder, write_json
from experiments.settings import Settings
from experiments.store import REACHED_WITHIN_S, is_server
from experiments.tracking import Earlier, TrackedRun, store_uri

NOTE = "recorded.json"
# Which MLflow run was opened for the results, from then until they stand in it.
OPENED = "opened.json"
_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Recorded:
    """Which MLflow run holds an outcome."""

    outcome: str
    uri: str
    experiment_id: str
    run_id: str


def earlier(folder: RunFolder, settings: Settings) -> Earlier | None:
    """The run that was opened for these results and never completed; None where there is none."""
    try:
        said = json.loads((folder.results / OPENED).read_bytes())
        return Earlier(said["uri"], said["run_id"], said["asked"] == _asked(settings))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def note_opening(folder: RunFolder, settings: Settings, run: TrackedRun) -> None:
    """Leave word of the run, so that one that goes on after a kill goes on with it."""
    said = {"uri": shown(run.uri), "run_id": run.run_id, "asked": _asked(settings)}
    write_json(folder.results / OPENED, said)


def _asked(settings: Settings) -> str:
    """Digest of all that decides a run's parameters, which MLflow lets nobody change."""
    asked = {name: str(value) for name, value in asdict(settings).items()}
    versions = [version(package) for package in PACKAGES]
    return digest({"asked": asked, "code": git_commit(), "versions": versions})


def outcome(folder: RunFolder, settings: Settings) -> str:
    """Digest of what was asked for, the code, and the files it left; equal digests, equal runs."""
    files = (folder.requests, folder.responses, folder.metrics)
    asked = {name: str(value) for name, value in asdict(settings).items()}
    content = [sha256_of(path) if path.exists() else "" for path in files]
    return digest({"asked": asked, "code": git_commit(), "files": content})


def find(folder: RunFolder, settings: Settings) -> Recorded | None:
    """The run that holds exactly the outcome the folder is in; None to record one.

    Under `mlflow run` always None: MLflow has opened a run that wants to be filled.
    """
    if os.environ.get("MLFLOW_RUN_ID"):
        return None
    try:
        known = Recorded(**json.loads((folder.results / NOTE).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    if known.uri != shown(store_uri()) or known.outcome != outcome(folder, settings):
        return None
    return known if _is_finished(known) else None


def remember(folder: RunFolder, recorded: Recorded) -> None:
    """Leave the note; the run is no longer one to go on with."""
    note(folder.results, recorded)


def note(results: Path, recorded: Recorded) -> None:
    """As `remember`, for whoever knows the folder of results alone."""
    write_json(results / NOTE, {**asdict(recorded), "uri": shown(recorded.uri)})
    (results / OPENED).unlink(missing_ok=True)


def _is_finished(known: Recorded) -> bool:
    if is_server(known.uri):
        return _said_by_server(known) == ("FINISHED", "active")
    if not known.uri.startswith(_SQLITE):
        return False
    path = known.uri[len(_SQLITE) :]
    question = "SELECT status, lifecycle_stage FROM runs WHERE run_uuid = ?"
    try:
        # Read-only: to connect must not make a database where there is none.
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as store:
            found = store.execute(question, (known.run_id,)).fetchone()
    except sqlite3.Error:
        return False
    return bool(found == ("FINISHED", "active"))


def _said_by_server(known: Recorded) -> tuple[str, str] | None:
    """Status and stage of the run; None where the server does not say, or not without a name."""
    address = f"{known.uri.rstrip('/')}/api/2.0/mlflow/runs/get?run_id={known.run_id}"
    try:
        with urlopen(address, timeout=REACHED_WITHIN_S) as answer:
            info = json.load(answer)["run"]["info"]
        return info["status"], info["lifecycle_stage"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
