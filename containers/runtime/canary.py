"""Does the model hear? Asked before a run, with the run's own question.

Three prompts that differ in their samples alone: speech, other speech, silence.
All have the same length, so a model that only counts frames is found out; the
logits of the first answer token must differ between each pair by more than the
model differs from itself on a repeat. Then one clip is answered, and the
seconds it says it used must be the seconds it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from containers.runtime.adapter import Adapter, Clip, Logits, Prompt, Samples
from containers.runtime.clips import RATE_HZ

LONGEST_S = 8.0
SHORTEST_S = 1.0
# Of the spread of the logits over the vocabulary; float32 round-off between two
# orders of summation is below 1e-5 of it, the least reaction seen in a random
# model that does get the audio is above 1e-3.
LEAST_CHANGE = 1e-4
TIMES_NOISE = 3.0
# Full scale is 1. A quieter clip may hold no speech, and says nothing about the model.
LEAST_LEVEL = 1e-3
# A copy of a clip that is louder, noisier or on a telephone correlates with it; two stretches
# of speech hardly do.
MOST_ALIKE = 0.5
# Encoders work in frames of up to 160 ms and may round either way.
SECONDS_TOLERANCE = 0.2


class DeafError(RuntimeError):
    """The model's answer does not depend on the audio it is given."""


@dataclass(frozen=True)
class Hearing:
    """What the canary measured; changes are in spreads of the logits."""

    changes: dict[str, float]
    noise: float
    seconds_given: float
    seconds_used: float
    speech: str


def check_hearing(
    adapter: Adapter, question: Prompt, speech: Sequence[Clip], folder: Path
) -> Hearing:
    """Raise unless the model's next token depends on what is said.

    Args:
        adapter: the loaded model.
        question: a prompt of the run with at least one clip.
        speech: clips of the run, longest first; where there are not two that
            differ, synthetic voices stand in and `Hearing.speech` says so.
        folder: an empty folder for the canary's clips; some models read files only.

    Raises:
        DeafError: with what was compared and the figures.
    """
    pair, origin = _two_voices(speech)
    names = ("speech", "other speech", "silence")
    clips = [
        _written(folder, name, samples)
        for name, samples in zip(names, (*pair, np.zeros_like(pair[0])), strict=True)
    ]
    # One at a time, so that no batch can leak one clip into another's place.
    asked = [_asked(question, clip) for clip in clips]
    logits = [_first_logits(adapter, prompt) for prompt in asked]
    noise = _change(logits[0], _first_logits(adapter, asked[0]))
    changes = {
        f"{names[i]} / {names[j]}": _change(logits[i], logits[j])
        for i, j in combinations(range(3), 2)
    }
    needed = max(LEAST_CHANGE, TIMES_NOISE * noise)
    if unmoved := [pair_name for pair_name, change in changes.items() if change <= needed]:
        raise DeafError(
            "the model does not hear: its next-token logits are the same for "
            f"{' and for '.join(unmoved)} ({origin} speech; expected a change above {needed:.2g} "
            f"of their spread, found {min(changes.values()):.2g}). No request was answered. "
            "Check that the processor is given the audio under the argument it reads."
        )
    given, used = _seconds(adapter, asked[0])
    # NaN is within no tolerance.
    if not abs(used - given) <= SECONDS_TOLERANCE:
        raise DeafError(
            f"the model was given {given:.2f} s of audio and used {used:.2f} s (tolerance "
            f"{SECONDS_TOLERANCE} s). No request was answered. Check the feature extractor's "
            "padding and truncation."
        )
    return Hearing(changes, noise, given, used, origin)


def _asked(question: Prompt, clip: Clip) -> Prompt:
    """The question about this clip alone: exemplars are left out, words are kept."""
    parts = question.parts[question.prefix_parts :]
    last = max(place for place, part in enumerate(parts) if isinstance(part, Clip))
    kept = [
        clip if place == last else part
        for place, part in enumerate(parts)
        if place == last or not isinstance(part, Clip)
    ]
    return replace(
        question, id=f"canary {clip.name}", parts=tuple(kept), prefix_parts=0, max_new_tokens=1
    )


def _first_logits(adapter: Adapter, prompt: Prompt) -> NDArray[np.float64]:
    logits: Logits = adapter.next_token_logits([prompt])
    row = np.asarray(logits[0], dtype=np.float64)
    if np.isnan(row).any() or not np.isfinite(row).any():
        raise DeafError(
            f"the next-token logits for {prompt.id!r} are not numbers. No request was answered. "
            "Try another precision."
        )
    return row


def _change(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    # Vocabularies are padded with -inf in some heads: those say nothing.
    both = np.isfinite(one) & np.isfinite(other)
    spread = float(np.std(one[both])) or 1.0
    return float(np.max(np.abs(one[both] - other[both]))) / spread


def _seconds(adapter: Adapter, prompt: Prompt) -> tuple[float, float]:
    answer = adapter.answer([prompt])[0]
    return sum(clip.seconds for clip in prompt.clips), answer.audio_seconds_used


def _two_voices(speech: Sequence[Clip]) -> tuple[tuple[Samples, Samples], str]:
    heard = [
        clip.samples
        for clip in speech
        if clip.seconds >= SHORTEST_S and np.std(clip.samples) > LEAST_LEVEL
    ]
    for one, other in combinations(heard, 2):
        length = min(len(one), len(other), int(LONGEST_S * RATE_HZ))
        pair = (_loudest(one, length), _loudest(other, length))
        if not _alike(*pair):
            return pair, "the run's own"
    return (_voice(110.0, 3.1, 0), _voice(210.0, 4.7, 1)), "synthetic"


def _alike(one: Samples, other: Samples) -> bool:
    """Whether two windows are of one sound: a model may rightly take it for the same."""
    if min(np.ptp(one), np.ptp(other)) == 0:
        return True
    return bool(abs(np.corrcoef(one, other)[0, 1]) > MOST_ALIKE)


def _loudest(samples: Samples, length: int) -> Samples:
    """The window of this length with the most energy: a turn may begin with a pause."""
    energy = np.concatenate(([0.0], np.cumsum(samples.astype(np.float64) ** 2)))
    starts = np.arange(0, len(samples) - length + 1, RATE_HZ // 10)
    start = int(starts[np.argmax(energy[starts + length] - energy[starts])])
    return samples[start : start + length]


def _voice(pitch_hz: float, syllables_per_s: float, seed: int) -> Samples:
    """Three seconds of a harmonic, syllable-modulated tone with some breath in it."""
    time = np.arange(3 * RATE_HZ) / RATE_HZ
    phase = 2 * np.pi * np.cumsum(pitch_hz * (1 + 0.1 * np.sin(2 * np.pi * 0.7 * time))) / RATE_HZ
    tone = np.sum([np.sin(k * phase) / k for k in range(1, 12)], axis=0)
    breath = 0.1 * np.random.default_rng(seed).standard_normal(len(time))
    envelope = np.maximum(0, np.sin(np.pi * syllables_per_s * time)) ** 2
    samples: Samples = (0.1 * envelope * (tone + breath)).astype(np.float32)
    return samples


def _written(folder: Path, name: str, samples: Samples) -> Clip:
    path = folder / f"canary_{name.replace(' ', '_')}.wav"
    soundfile.write(str(path), samples, RATE_HZ, subtype="FLOAT")
    return Clip(path.name, str(path), samples)
