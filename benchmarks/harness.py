"""What the road itself costs: a model that is none, on one to a hundred thousand items.

    python -m benchmarks.harness [--sizes 1000,10000,100000] [--conditions TO] [--without-inspect]

Each size is the command a user types, `python -m experiments.evaluate`, in a process of its
own: it reads a made-up dataset, asks the null model in another process, scores with intervals
and writes everything to MLflow in a new sqlite store. Then the same command again, whose run is
finished; the start of the command; and inspect_ai's mock model on as many samples, in an
environment this benchmark makes and throws away.

Seconds of CPU are those of the process and all it waited for, and are what to read on a busy
machine. Memory is the process's own peak as the kernel noted it, and that of all processes of
the run at once, sampled every 50 ms, shared pages counted once. Fixed costs (imports, a new
store's tables) are in the time of each size; what an item costs is the difference between two.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from core.audio import RATE_HZ, write_clip
from core.dataset import write_dataset

CLIPS = 20
EVERY_S = 0.05
SENTENCE = (
    "I have been feeling so tired this week and do not know what to do about it any more "
    "because nothing helps and nobody asks"
)
INSPECT = """
import sys, tempfile, tiktoken
from types import SimpleNamespace

try:
    tiktoken.get_encoding("o200k_base")
except Exception:
    # It counts tokens by a vocabulary it fetches; where it cannot, by words.
    words = SimpleNamespace(encode=lambda text, **_: text.split())
    tiktoken.get_encoding = lambda name: words
    print("tokens counted by words: no vocabulary")

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate

samples = [Sample(id=str(n), input=f"{sys.argv[2]} number {n}", target="3")
           for n in range(int(sys.argv[1]))]
task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match())
with tempfile.TemporaryDirectory() as folder:
    log, = eval(task, model="mockllm/model", log_dir=folder, display="none")
assert log.status == "success" and log.results.completed_samples == len(samples)
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds, seconds of CPU, MiB of it and of all its processes."""

    wall_s: float
    cpu_s: float
    own_mib: float
    all_mib: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line a size, and what lies between them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness", description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="items, comma-joined")
    parser.add_argument("--conditions", default="TO", help="AO or AT: few clips, many items")
    parser.add_argument("--without-inspect", action="store_true", help="leave inspect_ai out")
    asked = parser.parse_args(arguments)
    sizes = [int(size) for size in asked.sizes.split(",")]
    print(f"{os.cpu_count()} cores, null model, distress in {asked.conditions}", flush=True)
    print(f"--help: {min(_help().wall_s for _ in range(5)):.2f} s", flush=True)
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(prefix="undertone-harness-") as name:
        for size in sizes:
            folder = Path(name) / str(size)
            _dataset(folder / "data", size, clips=asked.conditions != "TO")
            command = _command(folder, asked.conditions)
            environment = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
            cost = measured(command, environment)
            again = measured(command, environment)
            costs.append(cost)
            print(f"{size:>7,} items: {_said(cost, size)}; again {again.wall_s:.1f} s", flush=True)
    for pair in _neighbours(sizes, costs):
        (few, _), (many, _) = pair
        print(
            f"from {few:,} to {many:,}: {1e3 * _apart(pair, 'wall_s'):.2f} ms an item, "
            f"{1e3 * _apart(pair, 'cpu_s'):.2f} ms of CPU, "
            f"{1024 * _apart(pair, 'all_mib'):.1f} KiB"
        )
    if not asked.without_inspect:
        _beside_inspect(sizes[:2], costs[:2])


def _said(cost: Cost, items: int) -> str:
    return (
        f"{cost.wall_s:.1f} s, {1e3 * cost.wall_s / items:.2f} ms an item "
        f"({1e3 * cost.cpu_s / items:.2f} ms of CPU); {cost.own_mib:.0f} MiB, "
        f"{cost.all_mib:.0f} MiB with the model's process"
    )


def _neighbours(
    sizes: Sequence[int], costs: Sequence[Cost]
) -> Iterator[tuple[tuple[int, Cost], tuple[int, Cost]]]:
    pairs = list(zip(sizes, costs, strict=True))
    return pairwise(pairs)


def _command(folder: Path, conditions: str) -> list[str]:
    words = {"model": "null", "runner": "process", "conditions": conditions}
    words |= {"data": str(folder / "data"), "output": str(folder / "out")}
    asked = [word for name, value in words.items() for word in (f"--{name}", value)]
    return [sys.executable, "-m", "experiments.evaluate", *asked]


def _help() -> Cost:
    return measured([sys.executable, "-m", "experiments.evaluate", "--help"], {})


def _dataset(folder: Path, size: int, *, clips: bool) -> None:
    """Turns of about twenty words, twenty a session; with `clips`, few that many turns share."""
    drawing, words = random.Random(0), SENTENCE.split()
    names = [_clip(folder, number) for number in range(CLIPS)] if clips else []
    rows = [
        {
            "item_id": f"turn_{number:06d}",
            "audio": names[number % CLIPS] if clips else None,
            "transcript": f"{' '.join(drawing.choices(words, k=20))}, number {number}.",
            "label": number % 5 + 1,
            "session_id": f"session_{number // 20:05d}",
            "turn_index": number % 20,
            "context": f"Therapist: {' '.join(drawing.choices(words, k=8))}?",
        }
        for number in range(size)
    ]
    write_dataset(
        folder,
        pd.DataFrame(rows),
        name=f"made-up-{size}",
        task="distress",
        licence="Apache-2.0",
        source="random words and noise",
        synthetic=True,
    )


def _clip(folder: Path, number: int) -> str:
    noise = 0.1 * np.random.default_rng(number).standard_normal(2 * RATE_HZ)
    return write_clip(folder, noise.astype(np.float32)).name


def measured(command: Sequence[str], environment: dict[str, str]) -> Cost:
    """Run a command to its end; its output is shown where it fails."""
    own, together = 0.0, 0.0
    done = threading.Event()
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        child = subprocess.Popen(
            command,
            env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", **environment},
            stdout=said,
            stderr=said,
        )

        def watch() -> None:
            nonlocal own, together
            while not done.wait(EVERY_S):
                found = [_resident_mib(pid) for pid in _family(child.pid)]
                own = max(own, _peak_mib(child.pid))
                together = max(together, sum(found))

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        done.set()
        watching.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{said.read().decode(errors='replace')}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, own, max(own, together))


def _family(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    except OSError:
        pass  # it ended meanwhile
    return found


def _peak_mib(pid: int) -> float:
    """The most it has held since its program began, as the kernel noted it.

    Not what `wait4` tells: a new process begins that figure with the size of the one it was
    forked from, here of a benchmark that has made 100,000 rows.
    """
    return _noted_mib(pid, "status", "VmHWM:")


def _resident_mib(pid: int) -> float:
    """Its own pages and its part of those it shares: a fork is not counted as another whole."""
    return _noted_mib(pid, "smaps_rollup", "Pss:")


def _noted_mib(pid: int, file: str, name: str) -> float:
    """A line of a process's files in /proc; 0 where it has ended."""
    try:
        told = Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return 0.0
    line = next((line for line in told.splitlines() if line.startswith(name)), f"{name} 0 kB")
    return int(line.split()[1]) / 1024


def _beside_inspect(sizes: Sequence[int], ours: Sequence[Cost]) -> None:
    with tempfile.TemporaryDirectory(prefix="inspect-") as name:
        try:
            venv.create(name, with_pip=True)
            python = f"{name}/bin/python"
            install = [python, "-m", "pip", "install", "--quiet", "inspect_ai"]
            subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            told = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            print(f"inspect_ai: skipped, it could not be installed here ({told[-1]})")
            return
        asked = "from importlib.metadata import version; print(version('inspect_ai'))"
        version = subprocess.check_output([python, "-c", asked], text=True).strip()
        commands = {size: [python, "-c", INSPECT, str(size), SENTENCE] for size in sizes}
        theirs = [measured(commands[size], {}) for size in sizes]
        for size, cost in zip(sizes, theirs, strict=True):
            print(f"inspect_ai {version}, mockllm, {size:,} samples: {_said(cost, size)}")
        for our, their in zip(_neighbours(sizes, ours), _neighbours(sizes, theirs), strict=True):
            wall, cpu = (_apart(our, kind) / _apart(their, kind) for kind in ("wall_s", "cpu_s"))
            print(f"an item more takes {wall:.2f} of inspect_ai's time, {cpu:.2f} of its CPU")


def _apart(pair: tuple[tuple[int, Cost], tuple[int, Cost]], kind: str) -> float:
    """What each item between two sizes took."""
    (few, less), (many, more) = pair
    taken: float = getattr(more, kind) - getattr(less, kind)
    return taken / (many - few)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
