"""Level of speech: BS.1770 loudness, true peak, and silence at the edges."""

from __future__ import annotations

import numpy as np

from core.speech.engine import Samples

TARGET_LUFS = -23.0
CEILING_DBTP = -1.0
# BS.1770's gating block. A shorter turn is one block of its own length.
BLOCK_S = 0.4
OVERSAMPLING = 4
EDGE_DB = -45.0
EDGE_S = 0.03


def level_lufs(samples: Samples, rate_hz: int) -> float:
    """Integrated loudness (ITU-R BS.1770-4) of mono samples; -inf for silence.

    Args:
        samples: (n,) float.
    """
    import pyloudnorm

    seconds = len(samples) / rate_hz
    if seconds == 0 or not np.any(samples):
        return -np.inf
    meter = pyloudnorm.Meter(rate_hz, block_size=min(BLOCK_S, seconds))
    with np.errstate(divide="ignore"):
        return float(meter.integrated_loudness(samples.astype(np.float64)))


def true_peak_dbtp(samples: Samples, rate_hz: int) -> float:
    """Peak between the samples too, by fourfold oversampling (BS.1770-4, annex 2)."""
    import soxr

    if not np.any(samples):
        return -np.inf
    finer = soxr.resample(samples.astype(np.float64), rate_hz, rate_hz * OVERSAMPLING)
    peak = max(float(np.abs(finer).max()), float(np.abs(samples).max()))
    return float(20 * np.log10(peak))


def levelled(
    samples: Samples,
    rate_hz: int,
    target_lufs: float = TARGET_LUFS,
    ceiling_dbtp: float = CEILING_DBTP,
) -> Samples:
    """The samples at the target loudness, or as near to it as the ceiling lets them.

    One gain for all of them: a limiter would change the voice. Silence, and sound
    that BS.1770 gates away as silence, comes back as it is.
    """
    level = level_lufs(samples, rate_hz)
    if not np.isfinite(level):
        return samples
    gain_db = min(target_lufs - level, ceiling_dbtp - true_peak_dbtp(samples, rate_hz))
    return np.asarray(samples * 10 ** (gain_db / 20), np.float32)


def trimmed(samples: Samples, rate_hz: int, edge_s: float = EDGE_S) -> Samples:
    """Without the silence before and after, but for `edge_s` seconds of it.

    Silence is what stays 45 dB under the peak: an engine's own padding differs by
    voice, and would add to every gap of a dialogue.
    """
    size = np.abs(samples)
    loud = np.flatnonzero(size > size.max(initial=0.0) * 10 ** (EDGE_DB / 20))
    if not len(loud):
        return samples[:0]
    edge = round(edge_s * rate_hz)
    return samples[max(0, loud[0] - edge) : loud[-1] + 1 + edge]
