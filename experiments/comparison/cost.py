"""What the answers cost: time, audio, GPU-hours and memory, as far as the runs say.

Time is the sum of the answers' own latencies, each its share of a batch, so it is of all
answers whenever they were given. What no run says is NaN with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.comparison import plots
from experiments.comparison.cells import Cells
from experiments.comparison.document import Exhibit, Section, significant, table
from experiments.comparison.gathering import FoundRun, Gathered, card_of

GIB = 2**30
# Under these a model's process says what it took (containers/runtime/footprint.py).
PEAK_BYTES = "peak_memory_bytes"
GPUS = "gpus"


def section(cells: Cells, gathered: Gathered) -> Section:
    """A table of what each model took, and its error beside that."""
    found = Section(
        "cost",
        "Cost",
        (
            "Speeds are of the machine each model ran on: compare those of one machine. Time is "
            "the model's own, from the answers' latencies, without loading.",
        ),
    )
    frame = cost_frame(cells, gathered)
    shown = frame.drop(columns=["reason"]).rename(columns=HEADS)
    for head in shown.select_dtypes("float").columns:
        shown[head] = [significant(value) for value in shown[head]]
    found.exhibits.append(table("cost", "Time, audio and memory", CAPTION, shown, numbers=frame))
    for reason, rows in frame[frame["reason"] != ""].groupby("reason", sort=False):
        found.notes.append(f"{', '.join(rows['model'])}: {reason}.")
    speeds = frame[["model", "items_per_s"]].rename(columns={"model": "row", "items_per_s": "x"})
    if speeds["x"].isna().all():
        found.notes.append("No run says how long an answer took: no error against speed.")
        return found
    means = pd.DataFrame(
        [
            {"row": model, "series": condition, "y": _mean(cells.errors[at])}
            for at, (model, condition) in enumerate(cells.keys)
        ]
    )
    points = means.merge(speeds, on="row")[["row", "series", "x", "y"]].dropna()
    found.exhibits.append(
        Exhibit(
            "error_against_cost",
            "Error against speed",
            "Down and right is better: a small error at many items a second.",
            points,
            svg=plots.plane(points, "items a second (log scale)", f"mean {cells.loss}", log_x=True),
        )
    )
    return found


HEADS = {
    "model": "Model",
    "items_per_s": "Items/s",
    "audio_hours_per_hour": "Audio-h/h",
    "model_hours": "Hours",
    "gpu_hours": "GPU-hours",
    "peak_memory_gib": "Peak GiB",
    "load_s": "Load s",
    "runner": "Runner",
    "precision": "Precision",
}
CAPTION = (
    "Items/s: item and condition pairs a second. Audio-h/h: hours of audio heard in an hour, "
    "exemplars each time they are played. Hours: all answers together. GPU-hours: the same times "
    "the GPUs used. Peak GiB: what torch reserved on them, or where there are none the size of the "
    "process. Undefined: the run does not say."
)


def cost_frame(cells: Cells, gathered: Gathered) -> pd.DataFrame:
    """One row a model: speeds, hours, memory, and why a figure is missing."""
    rows = []
    for model in cells.models:
        keys = [key for key in cells.keys if key[0] == model]
        took = np.concatenate([_column(cells.frames[key], "latency_s") for key in keys])
        heard = np.concatenate([_column(cells.frames[key], "seconds_used") for key in keys])
        known = ~np.isnan(took)
        seconds = float(took[known].sum())
        runs = gathered.runs[model]
        work = [gathered.work[run.id] for run in runs if run.id in gathered.work]
        peak, gpus = _largest(work, PEAK_BYTES), _gpus(runs, work)
        rows.append(
            {
                "model": model,
                "items_per_s": float(known.sum()) / seconds if seconds else math.nan,
                "audio_hours_per_hour": _ratio(float(np.nansum(heard[known])), seconds),
                "model_hours": seconds / 3600 if seconds else math.nan,
                "gpu_hours": gpus * seconds / 3600 if seconds else math.nan,
                "peak_memory_gib": peak / GIB,
                "load_s": _largest(work, "load_s"),
                "runner": runs[0].parameters.get("runner", ""),
                "precision": runs[0].parameters.get("precision", ""),
                "reason": _why(seconds, peak, gpus),
            }
        )
    return pd.DataFrame(rows)


def _column(rows: pd.DataFrame, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return rows[name].to_numpy(dtype=np.float64)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole and part else math.nan


def _mean(errors: np.ndarray[Any, Any]) -> float:
    return float(np.nanmean(errors)) if (~np.isnan(errors)).any() else math.nan


def _largest(work: list[Mapping[str, Any]], name: str) -> float:
    """The largest figure any of the processes gave under the name; NaN for none."""
    said = [summary.get(name) for summary in work]
    return max((float(value) for value in said if isinstance(value, int | float)), default=math.nan)


def _gpus(runs: tuple[FoundRun, ...], work: list[Mapping[str, Any]]) -> float:
    """GPUs a model used: what its process said, 0 for a model that runs on the CPU alone."""
    said = _largest(work, GPUS)
    if not math.isnan(said):
        return said
    card = card_of(runs[0].model)
    return 0.0 if card and not any(card.gpu_memory_gb.values()) else math.nan


def _why(seconds: float, peak: float, gpus: float) -> str:
    missing = []
    if not seconds:
        missing.append("no answer has a latency")
    if math.isnan(gpus):
        missing.append("the run does not say on how many GPUs it ran, so GPU-hours are undefined")
    if math.isnan(peak):
        missing.append("the model's process did not say its peak memory")
    return "; ".join(missing)
