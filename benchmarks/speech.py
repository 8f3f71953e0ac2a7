"""Speed of study 2's build: reading the dialogues, speaking them, composing them.

    python -m benchmarks.speech [--source mentalmanip_con.csv] [--dialogues 4]

Without a source the demo dialogues are spoken and a file of 2,915 of them is read.
Speaking is timed on one thread; composing reads kept turns and writes FLAC.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from core.datasets.dialogue import Dialogue
from core.datasets.mentalmanip import COLUMNS, read_mentalmanip
from core.datasets.roleplay import read_dialogues
from core.speech.compose import write_clip
from core.speech.kokoro import Kokoro
from core.speech.rendering import Casting, cast, clips, jobs, speak
from core.speech.turns import spoken_turn
from core.speech.voices import voice_pool

DEMO = Path(__file__).resolve().parent.parent / "demo" / "manipulation" / "dialogues.toml"
PUBLISHED_DIALOGUES = 2915


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of the three, with what the machine is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="a CSV of MentalManip's layout")
    parser.add_argument("--dialogues", type=int, default=4, help="dialogues to speak")
    asked = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        source = asked.source or many_dialogues(Path(name) / "many.csv")
        began = perf_counter()
        dialogues = read_mentalmanip(source).dialogues
        print(f"read {len(dialogues):,} dialogues: {perf_counter() - began:.2f} s")
        _speaking(dialogues[: asked.dialogues], Path(name))


def _speaking(dialogues: Sequence[Dialogue], folder: Path) -> None:
    engine = Kokoro()
    casting = cast(dialogues, voice_pool(engine.name), seed=0)
    spoken_turn(engine, "The weights load with the first turn.", "af_heart", folder / "first")
    turns = jobs(dialogues, casting)
    began = perf_counter()
    result = speak(engine, turns, folder / "turns")
    speaking = perf_counter() - began
    _composed(engine, dialogues, casting, folder)
    began = perf_counter()
    seconds = _composed(engine, dialogues, casting, folder)
    composing = perf_counter() - began
    print(
        f"speak {result.characters:,} characters, {seconds:.0f} s of sound: {speaking:.1f} s, "
        f"{result.characters / speaking:.0f} characters/s, real-time factor "
        f"{speaking / seconds:.2f}"
    )
    print(f"compose: {composing:.2f} s, {seconds / composing:.0f} x real time")
    for copies in (1, 4):
        tracemalloc.start()
        _composed(engine, list(dialogues) * copies, casting, folder)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"compose {len(dialogues) * copies} dialogues: peak {peak / 2**20:.1f} MiB")


def _composed(
    engine: Kokoro, dialogues: Sequence[Dialogue], casting: Casting, folder: Path
) -> float:
    seconds = 0.0
    for dialogue, clip in clips(engine, dialogues, casting, folder / "turns"):
        write_clip(folder / "audio" / f"{dialogue.dialogue_id}.flac", clip)
        seconds += clip.seconds
    return seconds


def many_dialogues(path: Path) -> Path:
    """A file with as many dialogues as the published one, made of the demo's."""
    dialogues = read_dialogues(DEMO)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for number in range(PUBLISHED_DIALOGUES):
            one = dialogues[number % len(dialogues)]
            techniques = ",".join(one.techniques)
            writer.writerow([number, one.transcript, int(one.manipulative), techniques, ""])
    return path


if __name__ == "__main__":
    main()
