"""How well a recording was transcribed: who spoke when, and which turns came back.

Times are compared in frames of 10 ms. Without a collar every frame counts; with one, those
round each boundary of the reference do not, as telephone evaluations have it (NIST's
md-eval: 0.25 s on each side), and with overlaps skipped those in which two speak do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from core.words import Stretch

FRAME_S = 0.01
NIST_COLLAR_S = 0.25


@dataclass(frozen=True)
class DiarizationError:
    """Seconds that went wrong, of `total_s` that somebody speaks in the reference.

    Two who speak at once count twice. `mapping`: found speaker -> reference speaker.
    """

    missed_s: float
    false_alarm_s: float
    confused_s: float
    total_s: float
    mapping: dict[str, str]

    @property
    def rate(self) -> float:
        """Diarization error rate; NaN where nobody speaks."""
        wrong = self.missed_s + self.false_alarm_s + self.confused_s
        return wrong / self.total_s if self.total_s else float("nan")


def diarization_error(
    reference: Sequence[Stretch],
    found: Sequence[Stretch],
    *,
    collar_s: float = 0.0,
    skip_overlap: bool = False,
) -> DiarizationError:
    """The error under the best one-to-one mapping of speakers.

    Args:
        collar_s: not counted on each side of every boundary of the reference.
        skip_overlap: do not count where two speak at once in the reference.

    Source: the NIST definition (missed, false alarm and confusion over speaker time).
    """
    end = max((stretch.end_s for stretch in (*reference, *found)), default=0.0)
    frames = round(end / FRAME_S)
    real_names, real = _speaking(reference, frames)
    names, ours = _speaking(found, frames)
    counted = np.ones(frames, dtype=bool)
    if collar_s:
        for stretch in reference:
            for edge in (stretch.start_s, stretch.end_s):
                first = max(0, round((edge - collar_s) / FRAME_S))
                counted[first : round((edge + collar_s) / FRAME_S)] = False
    if skip_overlap:
        counted &= real.sum(axis=0) < 2
    real, ours = real[:, counted], ours[:, counted]
    shared = ours.astype(int) @ real.astype(int).T
    rows, columns = linear_sum_assignment(-shared)
    right = int(shared[rows, columns].sum())
    spoken, heard = real.sum(axis=0), ours.sum(axis=0)
    return DiarizationError(
        missed_s=float(np.maximum(spoken - heard, 0).sum() * FRAME_S),
        false_alarm_s=float(np.maximum(heard - spoken, 0).sum() * FRAME_S),
        confused_s=float((np.minimum(spoken, heard).sum() - right) * FRAME_S),
        total_s=float(spoken.sum() * FRAME_S),
        mapping={names[row]: real_names[c] for row, c in zip(rows, columns, strict=True)},
    )


def recovered(
    reference: Sequence[tuple[float, float]],
    found: Sequence[tuple[float, float]],
    tolerance_s: float,
) -> float:
    """Share of the reference's spans that a found one matches at both ends; NaN without any."""
    if not reference:
        return float("nan")
    hits = [
        any(abs(a - start) <= tolerance_s and abs(b - end) <= tolerance_s for a, b in found)
        for start, end in reference
    ]
    return float(np.mean(hits))


def _speaking(stretches: Sequence[Stretch], frames: int) -> tuple[list[str], NDArray[np.bool_]]:
    """Names, and (speakers, frames) whether each speaks."""
    names = sorted({stretch.speaker for stretch in stretches})
    speaking = np.zeros((len(names), frames), dtype=bool)
    for stretch in stretches:
        first, last = round(stretch.start_s / FRAME_S), round(stretch.end_s / FRAME_S)
        speaking[names.index(stretch.speaker), first:last] = True
    return names, speaking
