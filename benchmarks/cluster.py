"""What a cluster gains, and what its driver needs, from 1 to 8 nodes.

    python -m benchmarks.cluster [--items 4000] [--full] [--nodes 1,2,4,8] [--latency 0.01]

The cluster is simulated: Ray nodes on this machine, one shard each, and the null model
waiting as long for an item as a GPU would compute. 10 ms is what a 7 B model needs for a turn
of 10 s in a batch, on an H100 at 40 % of its peak. `--full` asks 100,000 items. Each number of
nodes has a driver of its own, whose memory and processor time are those of the run. Efficiency
is the time the items alone take on so many nodes, of the time from the first shard sent to the
last answer written; what starting so many processes costs on few cores is in it.

Then an estimate on paper, of what was not run: all models on CBT-Audio's 1,802 turns in three
conditions, and ten million items.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from containers.runtime.card import Card, read_card
from core.protocol import Request, write_requests
from experiments.runners import Job, Site
from experiments.settings import ROOT, models

FULL = 100_000
STORE_BYTES = 80 << 20
# A distress prompt with its context has about as many.
CHARACTERS = 1_200
# Assumed for the estimate, none of it measured here: an H100's dense bf16 peak and the share
# of it that a prefill reaches, a turn's length in positions (10 s of audio and the words), and
# how fast weights come from a disk.
PEAK_FLOPS, SHARE, POSITIONS, DISK_BYTES_S = 989e12, 0.4, 550, 1e9
TURNS, CONDITIONS, MANY = 1_802, 3, 10_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each number of nodes, then the estimate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--items", type=int, default=4_000)
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} items")
    parser.add_argument("--nodes", default="1,2,4,8", help="how many, with commas between")
    parser.add_argument("--latency", type=float, default=0.01, help="seconds an item")
    parser.add_argument("--driver", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    items = FULL if asked.full else asked.items
    if asked.driver:
        print(json.dumps(_measured(asked.driver, items)))
        return
    os.environ |= {"OMP_NUM_THREADS": "1", "UNDERTONE_NULL_LATENCY_S": str(asked.latency)}
    print(
        f"{os.cpu_count()} cores, {items:,} items of {1000 * asked.latency:g} ms, simulated nodes"
    )
    cost_s = 0.0
    for nodes in map(int, asked.nodes.split(",")):
        words = ["--driver", str(nodes), "--items", str(items)]
        command = [sys.executable, "-m", "benchmarks.cluster", *words]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        told = json.loads(ended.stdout.splitlines()[-1])
        ideal_s = items * asked.latency / nodes
        cost_s = told["cpu_s"] / items
        print(
            f"{nodes} nodes: {told['seconds']:.1f} s, the first answer after "
            f"{told['first_answer_s']:.1f} s, {items / told['seconds']:.0f} items/s, efficiency "
            f"{ideal_s / told['seconds']:.0%}; driver {1000 * cost_s:.2f} ms of processor an item, "
            f"peak {told['peak_mib']:.0f} MiB ({told['idle_mib']:.0f} before the run)",
            flush=True,
        )
    _print_estimate(cost_s)


def _measured(nodes: int, items: int) -> dict[str, Any]:
    """One run as its own driver."""
    from experiments.runners import ray

    with _cluster(nodes) as address, tempfile.TemporaryDirectory() as name:
        job = _job(Path(name), address, items)
        if reason := ray.why_not(job.card, job.site):
            raise SystemExit(reason)
        idle, began, cpu = _peak_mib(), time.monotonic(), time.process_time()
        ray.run(job)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        answered = job.responses.read_bytes().count(b"\n")
        if answered != items:
            raise SystemExit(f"expected {items} answers, found {answered}.")
        told = json.loads(job.responses.with_name("work.json").read_bytes())["summary"]
    return {
        "seconds": seconds,
        "first_answer_s": told["first_answer_s"],
        "cpu_s": cpu,
        "idle_mib": idle,
        "peak_mib": _peak_mib(),
    }


@contextmanager
def _cluster(nodes: int) -> Iterator[str]:
    """Address of a cluster of so many nodes with one place each, and a head with none."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    from ray.cluster_utils import Cluster

    given = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **given})
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        yield str(made.address)
    finally:
        ray.shutdown()
        made.shutdown()


def _job(folder: Path, address: str, items: int) -> Job:
    card_path = ROOT / "containers" / "null" / "model.toml"
    labels = {str(level): (str(level),) for level in range(1, 6)}
    words = "How distressed is the speaker? " * (CHARACTERS // 31)
    write_requests(
        folder / "requests.jsonl",
        (
            Request(f"{n:032x}", "Rate.", ({"text": f"{n} {words}"},), labels, seed=n)
            for n in range(items)
        ),
    )
    return Job(
        card=read_card(card_path),
        card_path=card_path,
        weights=folder,
        requests=folder / "requests.jsonl",
        responses=folder / "responses.jsonl",
        audio=folder,
        precision="none",
        device_map="auto",
        site=Site(address=address),
    )


def _peak_mib() -> float:
    # In kB on Linux.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _print_estimate(driver_s: float) -> None:
    cards = [read_card(ROOT / "containers" / name / "model.toml") for name in models()]
    alms = [card for card in cards if card.repos]
    print(
        f"On paper, not measured: {POSITIONS} positions an item, {SHARE:.0%} of an H100's "
        f"{PEAK_FLOPS / 1e12:.0f} TFLOP/s, weights at {DISK_BYTES_S / 1e9:g} GB/s, one shard a GPU"
    )
    asked = TURNS * CONDITIONS
    for gpus in (1, 8, 64):
        hours = sum(_seconds(card, asked, gpus) for card in alms) / 3600
        print(
            f"  {len(alms)} models x {CONDITIONS} conditions x {TURNS:,} turns on {gpus} GPUs: "
            f"{60 * hours:.0f} minutes, {sum(_load_s(card) for card in alms) / 60:.0f} of them "
            "loading"
        )
    middle = sorted(alms, key=lambda card: card.parameters)[len(alms) // 2]
    for gpus in (8, 64, 512):
        hours = _seconds(middle, MANY, gpus) / 3600
        print(f"  {MANY:,} items of {middle.name} on {gpus} GPUs: {hours:.1f} hours")
    print(
        f"  its driver: {driver_s * MANY / 3600:.1f} hours of one core beside them, so up to "
        f"{1 / driver_s:,.0f} items/s"
    )


def _seconds(card: Card, items: int, gpus: int) -> float:
    return items * 2 * card.parameters * POSITIONS / (PEAK_FLOPS * SHARE) / gpus + _load_s(card)


def _load_s(card: Card) -> float:
    return card.bytes / DISK_BYTES_S


if __name__ == "__main__":
    main()
