"""Jobs of the null model for a cluster, and `python -m` a driver of one, to be killed.

Each request has a beginning of its own, so that none shares a batch with another and
answers come one by one.
"""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.card import read_card
from containers.runtime.response_log import read_responses
from core.audio import write_clip
from core.protocol import Request, write_requests
from experiments.runners import Job, Site, process, ray
from experiments.settings import ROOT

CARD = ROOT / "containers" / "null" / "model.toml"
LABELS = {"1": ("1",), "2": ("2",)}


def job_of(folder, address, count, clips=0):
    """A job of so many requests in a folder, the first of them about a clip each."""
    folder.mkdir(parents=True, exist_ok=True)
    requests = [
        Request(
            f"r{n}", None, (*_heard(folder, n, clips), {"text": "How?"}), LABELS, prefix_parts=1
        )
        for n in range(count)
    ]
    write_requests(folder / "requests.jsonl", requests)
    return Job(
        card=read_card(CARD),
        card_path=CARD,
        weights=folder,
        requests=folder / "requests.jsonl",
        responses=folder / "responses.jsonl",
        audio=folder,
        precision="none",
        device_map="auto",
        log=folder / "ray.log",
        site=Site(address=address),
    )


def _heard(folder, number, clips):
    words = {"text": f"Turn {number}."}
    if number >= clips:
        return (words,)
    samples = np.random.default_rng(number).normal(0, 0.1, 16_000 * (1 + number % 3))
    clip = write_clip(folder, samples.clip(-1, 1).astype(np.float32))
    return words, {"audio": clip.name}


def answers(job):
    """Answers by id, without what depends on the clock; each must be in the file once."""
    lines = job.responses.read_bytes().splitlines()
    found = {key: replace(a, latency_s=None) for key, a in read_responses(job.responses).items()}
    assert len(lines) == len(found)
    return found


def by_process(job):
    """What the process runner answers to the same requests."""
    folder = job.responses.parent / "process"
    folder.mkdir()
    alone = replace(job, responses=folder / "responses.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_NULL_LATENCY_S", "0")
        process.run(alone)
    return answers(alone)


def answered(job, least):
    """Wait until so many answers are on the disk."""
    deadline = time.monotonic() + 60
    while not job.responses.exists() or job.responses.read_bytes().count(b"\n") < least:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def keepers(job):
    """Process ids of the Ray workers that hold a shard of a job, by who started its process."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_text().split("\0")
            if "experiments.runners._shard" in words:
                order = json.loads((Path(words[-2]) / "order.json").read_bytes())
                if order["audio"] == str(job.audio):
                    found.append(int((place / "stat").read_text().rpartition(")")[2].split()[1]))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    ray.run(job_of(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
