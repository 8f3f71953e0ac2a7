"""A finished run that is asked for once more: what it showed stands, where nothing has changed.

A note in the output folder holds what the run showed, the digest of the dataset it read, and
those of the files it left; it is named by the digest of all else that the figures rest on
(`experiments.basis`). Where all of it is as it was, the figures are too, and are shown again.
Where anything differs, or cannot be told, the whole road is taken: it asks nothing that was
answered either, but reads and checks all.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.file_hash import sha256_of
from core.protocol import digest
from experiments import recorded
from experiments.basis import Basis, basis_of
from experiments.run_folder import RunFolder, write_json
from experiments.settings import Settings
from experiments.shown import Shown
from experiments.table import Grid

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation

# Below the output folder.
NOTES = "finished"
# Failures that the same command would try again.
_NOT_FINAL = ("audio_error", "model_error", "timeout")


@dataclass(frozen=True)
class Finished:
    """A run that stands as it was, what it showed, and how many answers are behind it."""

    shown: Shown
    requests: int
    known: recorded.Recorded


def find(settings: Settings, basis: Basis | None) -> Finished | None:
    """The finished run of this very command; None where one must be taken down the whole road.

    Nothing is written and no lock is taken. Under `mlflow run` always None: MLflow has opened a
    run that wants to be filled.

    Args:
        basis: what the command rests on now.
    """
    if basis is None or os.environ.get("MLFLOW_RUN_ID"):
        return None
    try:
        said = json.loads(_note(settings, basis).read_bytes())
        # One that was damaged, or edited by hand, says nothing.
        if said.pop("digest") != digest(said) or said["data"] != basis.data:
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    folder = RunFolder(settings.output / said["folder"], settings.output / "audio", said["limit"])
    if said["files"] != _files(folder):
        return None
    known = recorded.find(folder, settings)
    return Finished(_shown(said["shown"]), said["requests"], known) if known else None


def remember(evaluation: Evaluation, shown: Shown, basis: Basis | None) -> None:
    """Note a run that stands in MLflow, unless the same command might find otherwise.

    Args:
        basis: what the command rested on before the run read any of it.
    """
    plan, settings = evaluation.plan, evaluation.plan.settings
    failed = evaluation.unsettled or evaluation.predictions["status"].isin(_NOT_FINAL).any()
    if failed or basis is None or not basis.settled or _now(settings) != basis:
        return
    said = {
        "folder": str(plan.folder.path.relative_to(settings.output)),
        "limit": plan.folder.limit,
        "data": basis.data,
        "files": _files(plan.folder),
        "requests": evaluation.requests,
        "shown": asdict(shown),
    }
    path = _note(settings, basis)
    # A run that stands is not spoiled by a disk without room for what only saves time.
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_json(path, {**said, "digest": digest(said)})


def asked_again(found: Finished) -> str:
    """What it took to show it once more: a check of everything, and no more."""
    return (
        f"{found.requests} answers reused; all is as the run left it; in MLflow since an earlier "
        f"run ({found.known.run_id})"
    )


def _note(settings: Settings, basis: Basis) -> Path:
    return settings.output / NOTES / f"{basis.command}.json"


def _now(settings: Settings) -> Basis | None:
    # Whatever is in the way now, say a server that has gone: the run itself stands.
    with suppress(Exception):
        return basis_of(settings)
    return None


def _files(folder: RunFolder) -> dict[str, str]:
    """sha256 of what the run left, by place in its folder."""
    left = [folder.requests, folder.responses, folder.predictions, folder.variants]
    left += [folder.metrics, folder.description, *sorted(folder.tables.rglob("*"))]
    return {str(path.relative_to(folder.path)): sha256_of(path) for path in left if path.is_file()}


def _shown(said: dict[str, Any]) -> Shown:
    grids = [
        (title, Grid(tuple(grid["header"]), tuple(map(tuple, grid["rows"]))))
        for title, grid in said["grids"]
    ]
    return Shown(tuple(grids), tuple(said["remarks"]), said["results"])
