"""Prosody of one clip, from its samples: pitch, rate, pauses, level and voice quality.

Numpy only. The pitch tracker is Boersma's windowed autocorrelation without the
path search, the syllable counter de Jong and Wempe's; both are accurate enough
for the averages that a score is made of, and for no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from containers.runtime.adapter import Samples

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RATE_HZ = 16_000
HOP = 160
# Three periods of the lowest pitch, as the autocorrelation method needs.
WINDOW = 640
FFT = 2048
LOWEST_HZ, HIGHEST_HZ = 75.0, 500.0
# Praat's defaults for pitch by autocorrelation (Boersma 1993; Praat manual, "Sound: To Pitch").
VOICING_THRESHOLD = 0.45
OCTAVE_COST = 0.01
# Praat's "To TextGrid (silences)", and de Jong & Wempe (2009): speech lies within
# 25 dB of the loud parts; a syllable is a peak with dips of 2 dB about it.
BELOW_LOUD_DB = 25.0
DIP_DB = 2.0
# Below this nothing is speech, however even the clip: 16-bit dither is near -96 dBFS.
SILENCE_DBFS = -65.0
# Goldman-Eisler's limit between articulation and hesitation.
PAUSE_S = 0.25
LEAST_VOICED_S = 0.2
BLOCK = 2048


@dataclass(frozen=True)
class Prosody:
    """Averages over one clip.

    Attributes:
        pitch_hz: median of the voiced frames.
        pitch_spread_st: standard deviation of pitch in semitones.
        level_dbfs: mean level of the speech frames.
        level_spread_db: its standard deviation.
        syllables_per_s: articulation rate, pauses left out.
        pause_share: time in pauses of at least 0.25 s, between first and last speech.
        alpha_db: energy in 1-5 kHz against 50-1000 Hz in voiced frames.
        hnr_db: mean harmonics-to-noise ratio of voiced frames.
        speech_s: seconds of speech frames.
    """

    pitch_hz: float
    pitch_spread_st: float
    level_dbfs: float
    level_spread_db: float
    syllables_per_s: float
    pause_share: float
    alpha_db: float
    hnr_db: float
    speech_s: float


def prosody(samples: Samples) -> Prosody | None:
    """Prosody of a clip, or None where there is no voice in it to measure.

    Args:
        samples: (n,) mono at 16 kHz; a constant offset does no harm.
    """
    if len(samples) < WINDOW:
        return None
    frames = _Frames.of(samples - samples.mean())
    speech = frames.level_db > max(np.percentile(frames.level_db, 95) - BELOW_LOUD_DB, SILENCE_DBFS)
    voiced = speech & (frames.periodicity > VOICING_THRESHOLD)
    if voiced.sum() * HOP / RATE_HZ < LEAST_VOICED_S:
        return None
    pitch_hz = _without_octave_errors(frames.pitch_hz[voiced])
    span, pauses = _span_and_pauses(speech)
    spoken_s = (span - pauses) * HOP / RATE_HZ
    r = np.clip(frames.periodicity[voiced], 1e-6, 1 - 1e-6)
    low, high = frames.low_energy[voiced].sum(), frames.high_energy[voiced].sum()
    return Prosody(
        pitch_hz=float(np.median(pitch_hz)),
        pitch_spread_st=float(np.std(12 * np.log2(pitch_hz))),
        level_dbfs=float(frames.level_db[speech].mean()),
        level_spread_db=float(frames.level_db[speech].std()),
        syllables_per_s=_syllables(frames.level_db, voiced) / spoken_s,
        pause_share=pauses / span,
        alpha_db=float(10 * np.log10((high + 1e-12) / (low + 1e-12))),
        hnr_db=float(np.mean(10 * np.log10(r / (1 - r)))),
        speech_s=float(speech.sum() * HOP / RATE_HZ),
    )


@dataclass(frozen=True)
class _Frames:
    """Per frame of 40 ms, every 10 ms: level, best pitch and its strength, energy in two bands."""

    level_db: Floats
    pitch_hz: Floats
    periodicity: Floats
    low_energy: Floats
    high_energy: Floats

    @classmethod
    def of(cls, samples: Samples) -> _Frames:
        columns = list(zip(*_measured_blocks(samples), strict=True))
        return cls(*(np.concatenate(column).astype(np.float64) for column in columns))


def _measured_blocks(samples: Samples) -> Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Blocks of frames, so that ten minutes take no more memory than twenty seconds."""
    every = sliding_window_view(samples, WINDOW)[::HOP]
    window = np.hanning(WINDOW + 2)[1:-1].astype(np.float32)
    of_window = _autocorrelation(np.abs(np.fft.rfft(window, FFT)) ** 2)
    lags = np.arange(int(RATE_HZ / HIGHEST_HZ), int(RATE_HZ / LOWEST_HZ) + 1)
    # Among nearly equal peaks the shortest lag wins, or the pitch falls an octave.
    handicap = OCTAVE_COST * np.log2(LOWEST_HZ * lags / RATE_HZ)
    hertz = np.fft.rfftfreq(FFT, 1 / RATE_HZ)
    low, high = (hertz >= 50) & (hertz < 1000), (hertz >= 1000) & (hertz < 5000)
    for start in range(0, len(every), BLOCK):
        frames = every[start : start + BLOCK]
        level_db = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)
        centred = frames - frames.mean(axis=1, keepdims=True)
        power = np.abs(np.fft.rfft(centred * window, FFT)) ** 2
        r = _autocorrelation(power) / of_window
        best = np.argmax(r[:, lags] - handicap, axis=1)
        strength = np.clip(r[np.arange(len(r)), lags[best]], 0, 1)
        pitch = RATE_HZ / _refined(r, lags[best])
        yield level_db, pitch, strength, power[:, low].sum(1), power[:, high].sum(1)


def _autocorrelation(power: Floats) -> Floats:
    """(..., lags) from (..., bins), 1 at lag zero; zero throughout for silence."""
    r = np.fft.irfft(power)[..., : WINDOW // 2]
    normal: Floats = r / np.maximum(r[..., :1], 1e-12)
    return normal


def _refined(r: Floats, lag: NDArray[np.intp]) -> Floats:
    """Lag of the parabola through a peak and its neighbours, within half a sample."""
    row = np.arange(len(r))
    before, at, after = r[row, lag - 1], r[row, lag], r[row, lag + 1]
    bend = before - 2 * at + after
    shift = np.where(bend < 0, 0.5 * (before - after) / np.where(bend < 0, bend, 1), 0)
    refined: Floats = lag + np.clip(shift, -0.5, 0.5)
    return refined


def _without_octave_errors(pitch_hz: Floats) -> Floats:
    """Pitches within ten semitones of the median: an octave error is twelve away."""
    away_st = 12 * np.abs(np.log2(pitch_hz / np.median(pitch_hz)))
    return pitch_hz[away_st < 10]


def _span_and_pauses(speech: Flags) -> tuple[int, int]:
    """Frames from first to last speech, and frames of pauses among them."""
    places = np.flatnonzero(speech)
    gaps = np.diff(places) - 1
    long_gaps = gaps[gaps * HOP / RATE_HZ >= PAUSE_S]
    return int(places[-1] - places[0] + 1), int(long_gaps.sum())


def _syllables(level_db: Floats, voiced: Flags) -> int:
    """Voiced peaks of the smoothed level that stand out by a dip on either side."""
    smooth = np.convolve(np.pad(level_db, 2, mode="edge"), np.full(5, 0.2), mode="valid")
    peaks = 0
    valley, peak, at = np.inf, -np.inf, 0
    rising = True
    for place, level in enumerate(smooth):
        if rising:
            if level > peak:
                peak, at = level, place
            elif level < peak - DIP_DB:
                peaks += bool(voiced[at])
                rising, valley = False, level
        elif level < valley:
            valley = level
        elif level > valley + DIP_DB:
            rising, peak, at = True, level, place
    if rising and np.isfinite(peak) and peak - valley > DIP_DB:
        peaks += bool(voiced[at])
    return peaks
