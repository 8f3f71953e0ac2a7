"""Phase 2: spoken turns joined to one clip, with the time of each turn.

Each turn is brought to the same loudness, the clip has a lead and gaps of fixed
length, and its length is checked to be the sum of its parts.

Source: SpeechMentalManip, section 3.2 (loudness, gaps of 0.2 s).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soxr

from core.replacing import replace_text
from core.speech.engine import Samples, Sound, SpeechError
from core.speech.loudness import levelled
from core.speech.turns import write_flac

RATE_HZ = 16_000
LEAD_S = 0.2
GAP_S = 0.2
# A turn without words is heard as a pause longer than a gap; the study names no length.
SILENT_TURN_S = 0.5


@dataclass(frozen=True)
class SpokenTurn:
    """One turn of a dialogue; `sound` is None where it has no word to say."""

    speaker: str
    voice: str
    text: str
    sound: Sound | None


@dataclass(frozen=True)
class TurnTime:
    """Where in the clip a turn is: `start_s` of its first sample, `end_s` after its last."""

    index: int
    speaker: str
    voice: str
    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Clip:
    """A composed dialogue: (n,) float32 at 16 kHz, peaks within full scale."""

    samples: Samples
    turns: tuple[TurnTime, ...]

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE_HZ


def compose(turns: Sequence[SpokenTurn], lead_s: float = LEAD_S, gap_s: float = GAP_S) -> Clip:
    """The turns in order: lead, turn, gap, turn, ..., turn.

    Raises:
        SpeechError: the clip is not as long as its parts.
    """
    parts: list[Samples] = [_silence(lead_s)]
    times: list[TurnTime] = []
    at = len(parts[0])
    for index, turn in enumerate(turns):
        if index:
            parts.append(_silence(gap_s))
            at += len(parts[-1])
        samples = clip_samples(turn.sound) if turn.sound else _silence(SILENT_TURN_S)
        parts.append(samples)
        end = at + len(samples)
        times.append(
            TurnTime(index, turn.speaker, turn.voice, turn.text, at / RATE_HZ, end / RATE_HZ)
        )
        at = end
    clip = Clip(np.concatenate(parts), tuple(times))
    if len(clip.samples) != at:
        raise SpeechError(f"A clip of {clip.seconds:.3f} s, but its parts last {at / RATE_HZ:.3f}.")
    return clip


def clip_samples(sound: Sound) -> Samples:
    """A sound at 16 kHz and at the common loudness: what a dataset holds of it."""
    resampled = soxr.resample(sound.samples, sound.rate_hz, RATE_HZ, quality="VHQ")
    return levelled(np.asarray(resampled, np.float32), RATE_HZ)


def write_clip(path: Path, clip: Clip, small: bool = False) -> None:
    """The clip as FLAC, and beside it `<name>.turns.json` with the time of each turn."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_flac(path, Sound(clip.samples, RATE_HZ), small)
    sidecar = {
        "schema": 1,
        "seconds": clip.seconds,
        "rate_hz": RATE_HZ,
        "turns": [asdict(turn) for turn in clip.turns],
    }
    text = json.dumps(sidecar, ensure_ascii=False, indent=1) + "\n"
    replace_text(path.with_suffix(".turns.json"), text)


def _silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE_HZ), np.float32)
