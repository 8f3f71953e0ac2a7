"""Speed of a comparison: thirty synthetic runs of 1,802 turns through the real command.

    python -m benchmarks.compare [--runs 30] [--items 1802] [--keep FOLDER]

Writes the runs into an MLflow store of its own, as `evaluate` writes them, then runs
`experiments.compare` in a fresh process and prints wall time, CPU time, memory and the page's size.
The answers are drawn at random around synthetic labels.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from core.tasks import task
from experiments.record import metrics
from experiments.table import coverage
from experiments.tracking import Record, tracked_run, write

SESSIONS = 96
CONDITIONS = ("AO", "AT", "TO")


def synthetic_predictions(items: int, number: int, gold_seed: int = 0) -> pd.DataFrame:
    """Predictions of one model: the larger its number, the noisier; one in fifty unanswered."""
    labels = np.random.default_rng(gold_seed)
    gold = labels.choice([1, 2, 3, 4, 5], items, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    sessions = np.sort(labels.integers(0, SESSIONS, items))
    seconds = np.round(labels.lognormal(2.3, 0.7, items) + 2, 2)
    drawing = np.random.default_rng(1000 + number)
    parts = []
    for at, condition in enumerate(CONDITIONS):
        spread = 0.8 + 0.03 * number + (0.2, 0.0, 0.15)[at]
        level = np.clip(np.round(gold + drawing.normal(0.1, spread, items)), 1, 5).astype(int)
        shares = 0.4 * np.eye(5)[level - 1] + 0.6 * drawing.dirichlet(np.ones(5), items)
        failed = drawing.random(items) < 0.02
        heard = np.nan if condition == "TO" else seconds
        parts.append(
            pd.DataFrame(
                {
                    "item_id": [f"turn-{n:05d}" for n in range(items)],
                    "prediction": pd.array(np.where(failed, np.nan, level), dtype="Int64"),
                    "gold": pd.array(gold, dtype="Int64"),
                    "condition": condition,
                    "status": np.where(failed, "unparsed", "ok"),
                    "reason": np.where(failed, "no number from 1 to 5", None),
                    "expected": shares @ np.arange(1, 6),
                    "choice_mass": 0.98,
                    **{f"p_{k}": shares[:, k - 1] for k in range(1, 6)},
                    "text": level.astype(str),
                    "group_id": [f"session-{n:02d}" for n in sessions],
                    "seconds_given": heard,
                    "seconds_used": heard,
                    "latency_s": drawing.lognormal(-2 + 0.05 * number, 0.3, items),
                    "request_id": [f"{condition}-{n:05d}-{number}" for n in range(items)],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def write_synthetic_run(
    predictions: pd.DataFrame, model: str, folder: Path, *, resamples: int = 200, **said: str
) -> str:
    """One MLflow run as `evaluate` leaves it; gives its id. `said` are parameters of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    predictions.to_parquet(folder / "predictions.parquet", index=False)
    estimates = task(said.get("task", "distress")).score(predictions, resamples=resamples, seed=0)
    parameters = {
        "model": model,
        "revision": "none",
        "precision": "bf16",
        "runner": "process",
        "image": "process",
        "task": "distress",
        "conditions": ",".join(dict.fromkeys(predictions["condition"])),
        "dataset": "synthetic",
        "dataset_hash": "5" * 64,
        "items": str(predictions["item_id"].nunique()),
        "limit": "all",
        "prompts": "distress/system:000000000000",
        "max_new_tokens": "16",
        "seed": "0",
        **said,
    }
    record = Record(
        name=f"{model} · {parameters['task']} · {parameters['items']} items",
        parameters={f"undertone.{name}": value for name, value in parameters.items()},
        tags={"model": model, "task": parameters["task"], "synthetic": "true"},
        metrics=metrics(estimates, coverage(predictions)),
        files=folder,
    )
    with tracked_run(f"{parameters['task']}/{parameters['dataset']}") as run:
        write(run, record)
    return run.run_id


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--items", type=int, default=1802)
    parser.add_argument("--keep", default="", help="folder for store and report; else thrown away")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
        os.chdir(folder)
        for number in range(options.runs):
            predictions = synthetic_predictions(options.items, number)
            write_synthetic_run(predictions, f"model_{number:02d}", folder / f"files-{number}")
        timed(options.runs, options.items, folder)


def timed(runs: int, items: int, folder: Path) -> None:
    """Run the command once and print what it took."""
    command = [sys.executable, "-m", "experiments.compare", "--output", str(folder / "outputs")]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (page,) = folder.glob("outputs/compare/distress/*/report.html")
    print(f"{os.cpu_count()} cores; {runs} runs x {items:,} items x {len(CONDITIONS)} conditions")
    print(f"compare: {wall:.1f} s wall, {cpu:.1f} s CPU, peak {after.ru_maxrss / 1024:,.0f} MiB")
    print(f"report.html: {page.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
