"""Recordings to WhisperX's result with speakers, one JSON file each, without a network.

    python -m containers.whisperx --audio FOLDER --output FOLDER --weights FOLDER

Takes <name>.wav at 16 kHz, mono, 16 bit, as the host writes them, and leaves <name>.json:
WhisperX's segments with aligned words and speakers, and `diarization`, who speaks when with
overlaps. A recording that has its .json is not done again; one that fails has `failed` and
the reason in its place, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from containers.whisperx import recordings

OUT_OF_MEMORY = 3


def main(arguments: list[str] | None = None) -> int:
    """Transcribe what was not; 1 where the models cannot be loaded, 3 out of memory."""
    said = _parser().parse_args(arguments)
    todo = [
        path
        for path in sorted(said.audio.glob("*.wav"))
        if not (said.output / f"{path.stem}.json").is_file()
    ]
    if not todo:
        return 0
    # Both report their use over the network unless told so before their import.
    os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    from containers.whisperx import pipeline

    try:
        models = pipeline.load(
            said.weights, device=said.device, precision=said.precision, threads=said.threads
        )
    except pipeline.LoadError as error:
        print(f"whisperx: {error}", file=sys.stderr)
        return 1
    for number, path in enumerate(todo, start=1):
        started = time.monotonic()
        try:
            result = pipeline.transcribe(
                models,
                recordings.read(path),
                batch=said.batch,
                speakers=(said.min_speakers, said.max_speakers),
            )
        except pipeline.OutOfMemoryError as error:
            print(f"whisperx: {path.name}: out of memory ({error})", file=sys.stderr)
            return OUT_OF_MEMORY
        # One recording that a model chokes on is no reason to lose the others.
        except Exception as error:
            result = {"failed": f"{type(error).__name__}: {error}"}
        _write(said.output / f"{path.stem}.json", result)
        took = time.monotonic() - started
        ended = result.get("failed") or f"{len(result['segments'])} segments, {took:.0f} s"
        print(f"{number} of {len(todo)}: {path.stem}: {ended}", file=sys.stderr, flush=True)
    return 0


def _write(path: Path, result: dict[str, Any]) -> None:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as stream:
        # numpy's scalars become plain numbers.
        json.dump(result, stream, default=float, ensure_ascii=False)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="containers.whisperx", description=__doc__)
    for name in ("audio", "output", "weights"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--device", default="auto", help="auto, cuda or cpu")
    parser.add_argument("--precision", default="auto", help="float16, int8_float16, float32, int8")
    parser.add_argument("--batch", type=int, default=16, help="30 s pieces recognised together")
    parser.add_argument("--min-speakers", type=int, default=None)
    parser.add_argument("--max-speakers", type=int, default=None)
    parser.add_argument("--threads", type=int, default=4)
    return parser


if __name__ == "__main__":
    sys.exit(main())
