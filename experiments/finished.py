"""A finished run that is asked for once more: what it showed stands, where nothing has changed.

A run's figures rest on what the command says, the code and its packages, the model and its
image, the dataset's files, and the answers. A note in the output folder holds a digest of the
first ones and of every file. Where all of it is as it was, the figures are too, and are shown
again; where anything differs, or cannot be told, the whole road is taken: it asks nothing that
was answered either, but reads and checks all.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from containers.runtime.card import read_card
from core.protocol import digest
from experiments import recorded
from experiments.evaluation import precision_of, site_of
from experiments.run_description import PACKAGES
from experiments.run_folder import RunFolder, held, write_json
from experiments.runners import runner
from experiments.settings import Settings
from experiments.shown import Shown
from experiments.table import Grid
from experiments.tracking import git_commit

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation

# Below the output folder.
NOTES = "finished"
_PACKAGES = (*PACKAGES, "scikit-learn", "statsmodels", "pandera", "pyarrow")
# A file may be written twice within a step of its file system's clock, and bear the same time.
# Most count in milliseconds; those whose times are whole seconds in up to two.
_CLOCK_STEP_S, _COARSE_CLOCK_STEP_S = 0.05, 2.0
# Failures that the same command would try again.
_NOT_FINAL = ("audio_error", "model_error", "timeout")


@dataclass(frozen=True)
class Finished:
    """A run that stands as it was, what it showed, and how many answers are behind it."""

    shown: Shown
    requests: int
    known: recorded.Recorded


@dataclass(frozen=True)
class State:
    """Files of a folder at one moment: equal digests, untouched files.

    Attributes:
        settled: none is so young that it could be written once more and look the same.
    """

    digest: str
    settled: bool


def find(settings: Settings) -> Finished | None:
    """The finished run of this very command; None where one must be taken down the whole road.

    Under `mlflow run` always None: MLflow has opened a run that wants to be filled.

    Raises:
        FolderInUseError: another process is writing the run's folder.
        SettingsError, RunnerError, CardError: as the whole road would.
    """
    path = _note(settings)
    if os.environ.get("MLFLOW_RUN_ID") or path is None:
        return None
    try:
        said = json.loads(path.read_bytes())
        place = (settings.output / said["folder"]).resolve()
        folder = RunFolder(place, settings.output / "audio", int(said["limit"]))
        grids = tuple((title, _grid(header, rows)) for title, header, rows in said["grids"])
        found = Shown(grids, tuple(said["remarks"]), str(folder.results))
        now = state_of(settings.data)
        stands = now and said["data"] == now.digest and (settings.output.resolve() in place.parents)
        requests, files = int(said["requests"]), said["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not stands or not folder.results.is_dir():
        return None
    with held(folder):
        known = recorded.find(folder, settings) if files == _files(folder) else None
    return Finished(found, requests, known) if known else None


def remember(evaluation: Evaluation, shown: Shown, data: State | None) -> None:
    """Note a run that stands in MLflow, unless the same command might find otherwise.

    Args:
        data: the dataset's folder before the run read it.
    """
    plan, settings = evaluation.plan, evaluation.plan.settings
    path = _note(settings)
    failed = evaluation.unsettled or evaluation.predictions["status"].isin(_NOT_FINAL).any()
    if path is None or failed or plan.variants:
        return
    if data is None or not data.settled or state_of(settings.data) != data:
        return
    note = {
        "folder": str(plan.folder.path.relative_to(settings.output)),
        "limit": plan.folder.limit,
        "data": data.digest,
        "files": _files(plan.folder),
        "requests": evaluation.requests,
        "grids": [(title, grid.header, grid.rows) for title, grid in shown.grids],
        "remarks": shown.remarks,
    }
    # A run that stands is not spoiled by a disk without room for what only saves time.
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_json(path, note)


def _note(settings: Settings) -> Path | None:
    """Where the command's note is; None where its code is in no commit and may be any."""
    code = git_commit()
    if not code or code.endswith("+changes"):
        return None
    card, site = read_card(settings.card_path), site_of(settings)
    name, module = runner(settings.runner, card, site)
    rests_on = {
        "asked": {name: str(value) for name, value in asdict(settings).items()},
        "code": code,
        "python": [sys.version, platform.machine()],
        "versions": [version(package) for package in _PACKAGES],
        "environment": {k: v for k, v in os.environ.items() if k.startswith("UNDERTONE_")},
        "model": [card.digest, precision_of(settings.precision, card), name],
        "image": module.image(card, site),
    }
    return settings.output / NOTES / f"{digest(rests_on)[:32]}.json"


def state_of(folder: Path) -> State | None:
    """A folder's files by size, place on the disk and times, of which any change changes one.

    To read them takes longer than all the rest. None where the folder cannot be listed.
    """
    lines, settled, now = [], True, time.time()
    try:
        for entry in _below(str(folder)):
            try:
                found = entry.stat()
            except FileNotFoundError:
                # A link to nothing.
                found = entry.stat(follow_symlinks=False)
            settled &= all(
                now - ns / 1e9 > (_CLOCK_STEP_S if ns % 1_000_000_000 else _COARSE_CLOCK_STEP_S)
                for ns in (found.st_mtime_ns, found.st_ctime_ns)
            )
            facts = (found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
            lines.append(f"{entry.path}\0{facts}")
    except OSError:
        return None
    told = "\n".join(sorted(lines)).encode(errors="surrogateescape")
    return State(sha256(told).hexdigest(), settled)


def _below(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)


def _files(folder: RunFolder) -> dict[str, str]:
    """sha256 of what the run left, by place in its folder."""
    left = [folder.requests, folder.responses, folder.predictions, folder.metrics]
    left += [folder.description, *sorted(folder.tables.rglob("*"))]
    return {
        str(path.relative_to(folder.path)): recorded.sha256_of(path)
        for path in left
        if path.is_file()
    }


def _grid(header: list[str], rows: list[list[str]]) -> Grid:
    return Grid(tuple(header), tuple(map(tuple, rows)))


def asked_again(found: Finished) -> str:
    """What it took to show it once more: a check of everything, and no more."""
    return (
        f"{found.requests} answers reused; all is as the run left it; in MLflow since an earlier "
        f"run ({found.known.run_id})"
    )
