"""Reading what a run left: its predictions, checked, and what its process said of its work."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from core.modality import CONDITIONS
from core.protocol import STATUSES
from experiments.comparison.gathering import PREDICTIONS, FoundRun, GatheringError

WORK, VARIANTS = "work.json", "variants.parquet"


def predictions_of(run: FoundRun, task: str, folder: Path) -> dict[str, pd.DataFrame]:
    """The rows of each condition of a run.

    Raises:
        GatheringError: no such artifact, or one that cannot be read.
        validation.schemas.TableError: one that is no predictions table, row by row.
    """
    try:
        path = _fetched(run, PREDICTIONS, folder)
        frame = pd.read_parquet(path)
    except Exception as error:
        raise GatheringError(
            f"Run {run.id} ({run.name}) has no readable {PREDICTIONS} "
            f"({type(error).__name__}: {_first_line(error)}). Evaluate it again: its answers are "
            "kept, so that takes seconds; or leave it out with -P runs=ID,ID."
        ) from error
    _assert_fits(frame, task, f"{PREDICTIONS} of run {run.id}")
    frame["item_id"] = frame["item_id"].astype(str)
    return {str(name): rows for name, rows in frame.groupby("condition", sort=False)}


def variants_of(run: FoundRun, folder: Path) -> dict[str, pd.DataFrame]:
    """Rows of each condition that was asked beside the studies' three; none where none was.

    They are shown and part of no figure, so one that cannot be read stops nothing.
    """
    if not any(name.startswith("beside.") for name in run.parameters):
        return {}
    with suppress(Exception):
        frame = pd.read_parquet(_fetched(run, VARIANTS, folder))
        if {"condition", "gold", "prediction"} <= set(frame.columns):
            return {str(name): rows for name, rows in frame.groupby("condition", sort=False)}
    return {}


def _assert_fits(frame: pd.DataFrame, task: str, source: str) -> None:
    """Check by columns at once; the schema, which looks at every cell, only to name the faults."""
    from core.tasks import task as module
    from validation import schemas

    chosen = module(task)
    needed = {"item_id", "condition", "gold", "prediction", "status", "group_id", "reason"}
    needed |= {"expected", "seconds_given", "seconds_used", "latency_s"}
    needed |= {f"p_{label}" for label in chosen.LABELS}
    if needed <= set(frame.columns) and _is_sound(frame, chosen.LABELS):
        return
    known = frame[frame["condition"].isin(CONDITIONS)] if "condition" in frame else frame
    schemas.validated(known, schemas.predictions(chosen.LABELS, extra=chosen.COLUMNS), source)


def _is_sound(frame: pd.DataFrame, labels: tuple[str, ...]) -> bool:
    known = set(labels)
    answered = frame["prediction"].notna()
    shares = frame[[f"p_{label}" for label in labels]]
    return bool(
        frame["gold"].astype(str).isin(known).all()
        and frame.loc[answered, "prediction"].astype(str).isin(known).all()
        and frame["status"].isin(STATUSES).all()
        and (answered == (frame["status"] == "ok")).all()
        and not frame[["item_id", "condition"]].astype(str).duplicated().any()
        and frame["item_id"].notna().all()
        and frame["group_id"].notna().all()
        and all(kind.kind == "f" for kind in shares.dtypes)
        and shares.isin([float("inf")]).to_numpy().sum() == 0
        and (shares.isna() | ((shares >= 0) & (shares <= 1 + 1e-6))).to_numpy().all()
    )


def work_of(run: FoundRun, folder: Path) -> Mapping[str, Any]:
    """The summary of the run's work.json; empty where there is none."""
    with suppress(Exception):
        path = _fetched(run, WORK, folder)
        said = json.loads(path.read_bytes())
        if isinstance(said, dict) and isinstance(said.get("summary"), dict):
            return dict(said["summary"])
    return {}


def _fetched(run: FoundRun, name: str, folder: Path) -> Path:
    """An artifact as a file: where it lies, or brought into the folder from another machine."""
    # A bar for each of thirty files is no news.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    from mlflow.artifacts import download_artifacts

    place = folder / run.id
    place.mkdir(exist_ok=True)
    # By its address, not by the run: that would ask the store three times for each file.
    where = f"{run.artifacts.rstrip('/')}/{name}"
    is_here = where.startswith(("/", "file:"))
    return Path(download_artifacts(where, dst_path=None if is_here else str(place)))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]
