"""Audio preparation: decoding, one channel at 16 kHz, the hash that names it, the file on the disk.

    python -m benchmarks.audio [--recordings folder] [--repeats 3]

Without a folder the demo's turns are taken, which are short. Cold is from files never seen;
warm is the same again, from what is remembered by content. Times real time is seconds of sound
over seconds of wall time, the best of the repeats; over seconds of CPU beside it, which is
what to read on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from core.audio import AudioError, Prepared, prepare_clips

DEMO = Path(__file__).resolve().parents[1] / "demo"
SUFFIXES = (".mp3", ".flac", ".wav", ".ogg", ".m4a")


@dataclass(frozen=True)
class Took:
    """Seconds of wall time and of CPU."""

    wall_s: float
    cpu_s: float

    def said(self, seconds: float) -> str:
        """How many times faster than the sound, in words."""
        return (
            f"{self.wall_s:.2f} s, {seconds / self.wall_s:,.0f} times real time "
            f"({seconds / self.cpu_s:,.0f} a second of CPU)"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for one worker, for all of them, and for files that are known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audio", description=__doc__)
    parser.add_argument("--recordings", type=Path, default=DEMO, help="any folder of sound files")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many is shown")
    asked = parser.parse_args(arguments)
    paths = sorted(p for p in asked.recordings.rglob("*") if p.suffix.lower() in SUFFIXES)
    if not paths:
        raise SystemExit(f"{asked.recordings}: no sound file ({', '.join(SUFFIXES)}) is in it.")
    cores = len(os.sched_getaffinity(0))
    runs = [_runs(paths, workers) for _ in range(asked.repeats) for workers in (1, cores)]
    seconds = runs[0][2]
    print(f"{cores} cores, {len(paths)} files, {seconds / 60:.1f} minutes of sound")
    for name, found in (
        ("cold, one worker", [cold for cold, _, _ in runs[::2]]),
        (f"cold, {cores} workers", [cold for cold, _, _ in runs[1::2]]),
        (f"warm, {cores} workers", [warm for _, warm, _ in runs[1::2]]),
    ):
        print(f"{name}: {min(found, key=lambda took: took.wall_s).said(seconds)}")


def _runs(paths: Sequence[Path], workers: int) -> tuple[Took, Took, float]:
    """Cold and warm, and the seconds of sound."""
    with tempfile.TemporaryDirectory() as name:
        cold, ready = _took(paths, Path(name) / "audio", workers)
        warm, again = _took(paths, Path(name) / "audio", workers)
    clips = [one for one in ready if isinstance(one, Prepared)]
    if clips != [one for one in again if isinstance(one, Prepared)]:
        raise SystemExit("What is remembered is not what was decoded: remove the index.")
    return cold, warm, sum(one.facts.seconds for one in clips)


def _took(
    paths: Sequence[Path], folder: Path, workers: int
) -> tuple[Took, list[Prepared | AudioError]]:
    began, spent = perf_counter(), process_time()
    ready = prepare_clips(paths, folder, workers=workers)
    return Took(perf_counter() - began, process_time() - spent), ready


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
