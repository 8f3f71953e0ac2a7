"""A run of the real command on a scripted model, a few clips and a few requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile

from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests

SCRIPTED = Path(__file__).with_name("scripted") / "model.toml"
ROOT = Path(__file__).parents[3]
CHOICES = {level: (level, f" {level}") for level in "12345"}


@dataclass
class Case:
    """A folder with requests, clips and answers; `start` and `run` run the command on it."""

    folder: Path
    card: Path = SCRIPTED

    @property
    def responses(self) -> Path:
        return self.folder / "responses.jsonl"

    def clip(self, name: str, seconds: float = 1.5, seed: int = 0) -> str:
        samples = np.random.default_rng(seed).normal(0, 0.1, int(seconds * 16_000))
        soundfile.write(self.folder / "audio" / name, samples.astype("f4"), 16_000, subtype="FLOAT")
        return name

    def ask(self, *requests: Request) -> None:
        write_requests(self.folder / "requests.jsonl", requests)

    def start(self, *options: str, mode: str = "", card: Path | None = None) -> subprocess.Popen:
        command = [sys.executable, "-m", "containers.runtime", "--card", str(card or self.card)]
        for name in ("requests.jsonl", "responses.jsonl"):
            command += [f"--{name.removesuffix('.jsonl')}", str(self.folder / name)]
        command += ["--weights", str(self.folder), "--audio", str(self.folder / "audio"), *options]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "SCRIPTED": mode},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str, mode: str = "", card: Path | None = None) -> Ended:
        return ended(self, self.start(*options, mode=mode, card=card))


@dataclass
class Ended:
    """How a run ended: exit code, summary, what it said, and all answers by id."""

    code: int
    summary: dict
    said: str
    answers: dict

    @property
    def statuses(self) -> dict[str, str]:
        return {key: answer.status for key, answer in self.answers.items()}


def ended(case: Case, process: subprocess.Popen) -> Ended:
    out, said = process.communicate(timeout=60)
    summary = json.loads(out)["summary"] if out else {}
    return Ended(process.returncode, summary, said, read_responses(case.responses))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (tmp_path / "audio").mkdir()
    return Case(tmp_path)


@pytest.fixture
def finish():
    """Wait for a process that `Case.start` gave."""
    return ended


@pytest.fixture
def asked():
    """A request of the given id, words and clips."""

    def make(id: str, words: str = "", *clips: str, **changes) -> Request:
        parts = (*({"audio": name} for name in clips), {"text": words})
        return Request(**{"id": id, "system": None, "parts": parts, "choices": CHOICES, **changes})

    return make
