"""WhisperX large-v3, its aligner and pyannote's speaker-diarization-3.1, from local files alone.

Calls whisperx 3.8.6 and pyannote.audio 4.0.7 by their public functions. Words get their
speaker from the exclusive diarization, in which nobody speaks at once with another; the
whole one is kept beside it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from containers.whisperx.recordings import RATE_HZ

LANGUAGE = "en"
# Where each repository of recogniser.toml lies under the folder of weights.
WHISPER, ALIGNER, COMMUNITY = "whisper", "aligner", "pyannote-community"
PIPELINE, SEGMENTATION, EMBEDDING = (
    "pyannote-pipeline/config.yaml",
    "pyannote-segmentation/pytorch_model.bin",
    "pyannote-embedding/pytorch_model.bin",
)
PLDA = f"{COMMUNITY}/plda"
DEFAULT_PRECISION = {"cuda": "float16", "cpu": "int8"}


class LoadError(RuntimeError):
    """Weights or packages that are not there; says which."""


class OutOfMemoryError(RuntimeError):
    """The device's memory does not hold the models and a batch."""


@dataclass(frozen=True)
class Models:
    """What transcribes: the recogniser, the aligner with its alphabet, the diarizer."""

    whisperx: Any
    torch: Any
    recogniser: Any
    aligner: Any
    alphabet: Any
    diarizer: Any
    device: str


def load(weights: Path, *, device: str, precision: str, threads: int) -> Models:
    """Everything, from `weights`.

    Raises:
        LoadError: a package or a file is missing.
    """
    missing = [
        name
        for name in (WHISPER, ALIGNER, PIPELINE, SEGMENTATION, EMBEDDING, PLDA)
        if not (weights / name).exists()
    ]
    if missing:
        raise LoadError(
            f"{weights} lacks {', '.join(missing)}; fetch them with: mlflow run . -e weights "
            "-P model=whisperx."
        )
    # A page of words about a decoder that nothing here needs: samples are given, not files.
    warnings.filterwarnings("ignore", r"\s*torchcodec is not installed", UserWarning)
    try:
        torch, whisperx, pyannote, yaml = (
            import_module(name) for name in ("torch", "whisperx", "pyannote.audio", "yaml")
        )
    except ImportError as error:
        raise LoadError(f"{error}; its image has it, see containers/whisperx.") from error
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    recogniser = whisperx.load_model(
        str(weights / WHISPER),
        device,
        compute_type=DEFAULT_PRECISION[device] if precision == "auto" else precision,
        language=LANGUAGE,
        local_files_only=True,
        threads=threads,
    )
    aligner, alphabet = whisperx.load_align_model(
        LANGUAGE, device, model_name=str(weights / ALIGNER), model_cache_only=True
    )
    config = yaml.safe_load((weights / PIPELINE).read_text(encoding="utf-8"))
    diarizer = pyannote.Pipeline.from_pretrained(local(config, weights))
    diarizer.to(torch.device(device))
    return Models(whisperx, torch, recogniser, aligner, alphabet, diarizer, device)


def local(config: dict[str, Any], weights: Path) -> dict[str, Any]:
    """A pipeline's configuration with the hub's names replaced by the files that are here."""
    parts = {
        "segmentation": str(weights / SEGMENTATION),
        "embedding": str(weights / EMBEDDING),
        "plda": str(weights / PLDA),
    }
    pipeline = config["pipeline"]
    return {**config, "pipeline": {**pipeline, "params": {**pipeline.get("params", {}), **parts}}}


def transcribe(
    models: Models, samples: Any, *, batch: int, speakers: tuple[int | None, int | None]
) -> dict[str, Any]:
    """One recording, (n,) float32 at 16 kHz, to segments and the diarization.

    Raises:
        OutOfMemoryError: so says the device.
    """
    try:
        heard = models.recogniser.transcribe(samples, batch_size=batch, language=LANGUAGE)
        aligned = models.whisperx.align(
            heard["segments"], models.aligner, models.alphabet, samples, models.device
        )
        waveform = models.torch.from_numpy(samples[None, :])
        told = models.diarizer(
            {"waveform": waveform, "sample_rate": RATE_HZ},
            min_speakers=speakers[0],
            max_speakers=speakers[1],
        )
    except RuntimeError as error:
        if "out of memory" in str(error).lower():
            raise OutOfMemoryError(str(error).splitlines()[0]) from error
        raise
    exclusive = stretches(told.exclusive_speaker_diarization)
    named = models.whisperx.assign_word_speakers(_frame(exclusive), aligned)
    return {
        "segments": named["segments"],
        "language": heard.get("language", LANGUAGE),
        "diarization": stretches(told.speaker_diarization),
        "exclusive_diarization": exclusive,
    }


def stretches(annotation: Any) -> list[dict[str, Any]]:
    """Who speaks from when to when, by start."""
    found = [
        {"start": float(segment.start), "end": float(segment.end), "speaker": str(speaker)}
        for segment, _, speaker in annotation.itertracks(yield_label=True)
    ]
    return sorted(found, key=lambda one: (one["start"], one["end"]))


def _frame(rows: list[dict[str, Any]]) -> Any:
    pandas = import_module("pandas")
    return pandas.DataFrame(rows, columns=["start", "end", "speaker"])
