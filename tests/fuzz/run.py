"""Search for values that a reader or parser does not expect, with atheris.

    pip install atheris
    python -m tests.fuzz.run manifest_csv --seconds 120     # one target
    python -m tests.fuzz.run all --seconds 120              # one after the other

Starts from `seeds.py` and the kept corpus. A fault does not end the search: the first value
for each place that raises is written to --found, and all are told at the end (exit code 1).
What is found belongs, once mended, in `corpus/<target>/` under a name that says what it is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn

from tests.fuzz.targets import TARGETS, give

ROOT = Path(__file__).resolve().parents[2]
SLOW_S = 5.0
LARGEST_BYTES = 20_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("target", choices=["all", *TARGETS])
    parser.add_argument("--seconds", type=int, default=120, help="for each target")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder of faults")
    asked = parser.parse_args()
    if asked.target != "all":
        _search(asked.target, asked.seconds, asked.found / asked.target)
    words = ["--seconds", str(asked.seconds), "--found", str(asked.found)]
    codes = [
        subprocess.run([sys.executable, "-m", "tests.fuzz.run", name, *words]).returncode
        for name in TARGETS
    ]
    return int(any(codes))


def _search(name: str, seconds: int, found: Path) -> NoReturn:
    import atheris

    from tests.fuzz.seeds import seeds

    with atheris.instrument_imports(include=["core", "validation", "experiments", "containers"]):
        for seed in seeds(name):
            _faults_of(name, seed)
    places: dict[str, str] = {}
    began, tries = time.monotonic(), 0

    def once(data: bytes) -> None:
        nonlocal tries
        tries += 1
        for place, told in _faults_of(name, data):
            if place not in places:
                places[place] = told
                found.mkdir(parents=True, exist_ok=True)
                (found / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
        spent = time.monotonic() - began
        if spent > seconds:
            print(f"{name}: {tries:,} values in {spent:.0f} s, {len(places)} faults")
            print("".join(f"  {told}\n" for told in places.values()), end="", flush=True)
            # libFuzzer knows no end but a crash or its own exit, which runs nothing of ours.
            os._exit(bool(places))

    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        for number, seed in enumerate(seeds(name)):
            (Path(folder) / str(number)).write_bytes(seed)
        words = [f"-max_len={LARGEST_BYTES}", "-verbosity=0", "-rss_limit_mb=4096", folder]
        atheris.Setup([sys.argv[0], *words], once)
        atheris.Fuzz()


def _faults_of(name: str, data: bytes) -> list[tuple[str, str]]:
    started = time.process_time()
    try:
        give(name, data)
    except Exception as error:
        own = [f for f in traceback.extract_tb(error.__traceback__) if str(ROOT) in f.filename]
        last = own[-1]
        place = f"{type(error).__name__} at {Path(last.filename).relative_to(ROOT)}:{last.lineno}"
        return [(place, f"{place}: {str(error)[:200]}")]
    if (spent := time.process_time() - started) > SLOW_S:
        return [("slow", f"{spent:.1f} s for {len(data)} bytes")]
    return []


if __name__ == "__main__":
    sys.exit(main())
