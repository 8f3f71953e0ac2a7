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
from hashlib import sha256
from pathlib import Path

from core.protocol import digest
from experiments.run_folder import RunFolder, write_json
from experiments.settings import Settings
from experiments.tracking import git_commit, store_uri

NOTE = "recorded.json"
_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Recorded:
    """Which MLflow run holds an outcome."""

    outcome: str
    uri: str
    experiment_id: str
    run_id: str


def outcome(folder: RunFolder, settings: Settings) -> str:
    """Digest of what was asked for, the code, and the files it left; equal digests, equal runs."""
    files = (folder.requests, folder.responses, folder.metrics)
    asked = {name: str(value) for name, value in asdict(settings).items()}
    return digest(
        {"asked": asked, "code": git_commit(), "files": [_sha256(path) for path in files]}
    )


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
    if known.uri != store_uri() or known.outcome != outcome(folder, settings):
        return None
    return known if _is_finished(known) else None


def remember(folder: RunFolder, recorded: Recorded) -> None:
    """Leave the note."""
    write_json(folder.results / NOTE, asdict(recorded))


def _is_finished(known: Recorded) -> bool:
    if not known.uri.startswith(_SQLITE):
        return False
    path = known.uri[len(_SQLITE) :]
    question = "SELECT status, lifecycle_stage FROM runs WHERE run_uuid = ?"
    try:
        # Read-only: to connect must not make a database where there is none.
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
            found = store.execute(question, (known.run_id,)).fetchone()
    except sqlite3.Error:
        return False
    return bool(found == ("FINISHED", "active"))


def _sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""
