"""What a text-to-speech engine is here: a name, a pinned model, and text in, sound out.

Engines are interchangeable because everything that decides a sound (text, voice,
engine, model, settings) is in its key; see `turn_key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.protocol import digest

Samples = NDArray[np.float32]

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_STAGE_MARKS = re.compile(r"[*_~^|\\{}\[\]<>#]+")
_TYPOGRAPHY = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "—", "\u00a0": " ", "\ufffd": " "}
)


class SpeechError(RuntimeError):
    """Speech that could not be made: says which text or file, what was found, what to do."""


class AccountError(SpeechError):
    """The account is used up or refused: asking on would fail too, a later run can go on."""


@dataclass(frozen=True)
class Sound:
    """Mono samples, (n,) float32; an engine's peaks may exceed 1."""

    samples: Samples
    rate_hz: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate_hz


class Engine(Protocol):
    """A text-to-speech engine.

    Attributes:
        name: "kokoro", "elevenlabs", ...
        model: what exactly speaks: a model id, or the digest of the weights.
        settings: everything else that changes the sound.
    """

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str | float]: ...

    def speak(self, text: str, voice: str) -> Sound:
        """The text in that voice.

        Raises:
            SpeechError: where the engine gives no sound.
        """
        ...


def turn_key(engine: Engine, text: str, voice: str) -> str:
    """Digest under which a spoken turn may be used again.

    Text as it is spoken, not as it was written: a second space is the same sound.
    Model and settings, so that a new model or speed speaks every turn anew. No
    dialogue id and no position: the same words in the same voice are one file.
    """
    return digest(
        {
            "text": speakable(text),
            "voice": voice,
            "engine": engine.name,
            "model": engine.model,
            "settings": dict(engine.settings),
        }
    )


def speakable(text: str) -> str:
    """The text as an engine should read it; "" where it holds nothing to say.

    Markup tags and marks that are never read aloud go, typographic quotes become
    plain, a double hyphen becomes a dash, runs of white space one space.
    """
    plain = _STAGE_MARKS.sub(" ", _TAG.sub("", text.translate(_TYPOGRAPHY)))
    plain = " ".join(re.sub(r"-{2,}", "—", plain).split())
    return plain if any(character.isalnum() for character in plain) else ""
