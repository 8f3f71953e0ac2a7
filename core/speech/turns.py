"""Phase 1: one file per spoken turn, kept under its key.

An interrupted build goes on where it stopped, an unchanged one speaks nothing
again, and a changed line speaks that line only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from core.replacing import replacing
from core.speech.engine import Engine, Sound, SpeechError, speakable, turn_key

# Nobody speaks 30 letters a second: less sound than that is not the text.
LETTERS_PER_SECOND_AT_MOST = 30.0
SHORTEST_S = 0.12
QUIETEST_PEAK = 1e-3
TRIES = 2
SMALL_BITS = 13


@dataclass
class Tally:
    """What a build asked of its engine."""

    spoken: int = 0
    kept: int = 0
    silent: int = 0
    characters: int = 0


def spoken_turn(
    engine: Engine, text: str, voice: str, folder: Path, tally: Tally | None = None
) -> Sound | None:
    """The turn's sound, from `folder` or else from the engine; None for a turn with no word in it.

    Raises:
        SpeechError: the engine failed twice, or gave too little sound for the text twice.
    """
    tally = tally or Tally()
    if not speakable(text):
        tally.silent += 1
        return None
    if keep_turn(engine, text, voice, folder):
        tally.spoken += 1
        tally.characters += len(speakable(text))
    else:
        tally.kept += 1
    # Read back even when just written, so that a resumed build hears the same samples.
    samples, rate_hz = soundfile.read(turn_path(engine, text, voice, folder), dtype="float32")
    return Sound(samples, rate_hz)


def keep_turn(engine: Engine, text: str, voice: str, folder: Path) -> bool:
    """Have the turn's file in `folder`; whether the engine had to speak for it.

    Kept as 16-bit FLAC at the engine's rate. A level is no part of it: peaks over
    full scale are brought under it here, loudness is set when turns are composed.

    Raises:
        SpeechError: as `spoken_turn`.
    """
    path = turn_path(engine, text, voice, folder)
    if path.exists():
        return False
    sound = _spoken(engine, text, voice)
    folder.mkdir(parents=True, exist_ok=True)
    write_flac(path, sound)
    return True


def turn_path(engine: Engine, text: str, voice: str, folder: Path) -> Path:
    """Where the turn's file is, or will be."""
    return folder / f"{turn_key(engine, text, voice)}.flac"


def write_flac(path: Path, sound: Sound, small: bool = False) -> None:
    """16-bit FLAC, whole or not at all; peaks over full scale are scaled, never clipped.

    Args:
        small: leaves the lowest three bits zero, which FLAC does not store, and packs
            slowly: two thirds of the size, noise 60 dB under speech at -23 LUFS.
    """
    peak = float(np.abs(sound.samples).max(initial=0.0))
    samples = sound.samples / peak * 0.999 if peak > 0.999 else sound.samples
    if small:
        steps = 2 ** (SMALL_BITS - 1)
        samples = np.clip(np.round(samples * steps), -steps, steps - 1) / steps
    with replacing(path) as stream:
        soundfile.write(
            stream,
            samples,
            sound.rate_hz,
            format="FLAC",
            subtype="PCM_16",
            compression_level=1.0 if small else 0.5,
        )


def complaint(sound: Sound, text: str) -> str | None:
    """Why this sound cannot be that text, or None."""
    letters = sum(character.isalnum() for character in text)
    least = max(SHORTEST_S, letters / LETTERS_PER_SECOND_AT_MOST)
    if sound.seconds < least:
        return (
            f"{sound.seconds:.2f} s of sound for {letters} letters, expected at least {least:.2f}"
        )
    if float(np.abs(sound.samples).max(initial=0.0)) < QUIETEST_PEAK:
        return "silence"
    return None


def _spoken(engine: Engine, text: str, voice: str) -> Sound:
    faults = []
    for _ in range(TRIES):
        sound = engine.speak(speakable(text), voice)
        fault = complaint(sound, text)
        if fault is None:
            return sound
        faults.append(fault)
    raise SpeechError(f"{engine.name}, voice {voice}, {text!r}: {', then '.join(faults)}.")
