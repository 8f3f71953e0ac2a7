"""Log mel filterbanks as Kaldi computes them: what BEATs was trained on.

Takes samples, gives frames; normalisation included. Written from the public
description of Kaldi's `compute-fbank-feats` (Povey et al. 2011) with the options
that BEATs uses: 25 ms frames every 10 ms, no dither, 128 bins from 20 Hz to
8 kHz, natural logarithm, power spectrum.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

RATE_HZ = 16_000
FRAME = 400
SHIFT = 160
FFT = 512
BINS = 128
LOWEST_HZ = 20.0
PREEMPHASIS = 0.97
# Kaldi reads 16-bit integers: full scale is 32768, not 1.
FULL_SCALE = 2.0**15
# Of AudioSet, published with BEATs; it divides by twice the deviation.
MEAN = 15.41663
DEVIATION = 6.55582


def beats_fbank(samples: Tensor) -> Tensor:
    """Normalised log mel frames of one clip.

    Args:
        samples: (n,) float32 in [-1, 1] at 16 kHz, n >= 400.

    Returns:
        (1 + (n - 400) // 160, 128) float32; samples beyond the last whole frame are left out.
    """
    return (kaldi_fbank(samples * FULL_SCALE) - MEAN) / (2 * DEVIATION)


def kaldi_fbank(samples: Tensor) -> Tensor:
    """Log mel frames of (n,) float32 samples at 16-bit scale; shapes as in `beats_fbank`."""
    frames = samples.unfold(0, FRAME, SHIFT)
    frames = frames - frames.mean(dim=1, keepdim=True)
    # The first sample of a frame has no predecessor there and stands in for it.
    before = torch.cat([frames[:, :1], frames[:, :-1]], dim=1)
    frames = (frames - PREEMPHASIS * before) * _window().to(frames)
    power = torch.fft.rfft(frames, n=FFT).abs().square()
    mel = power @ _mel_filters().to(frames).T
    return mel.clamp(min=torch.finfo(torch.float32).eps).log()


@lru_cache(maxsize=1)
def _window() -> Tensor:
    """(400,) Povey's window: Hann's to the power of 0.85."""
    # In float32 on purpose: its rounding is the floor of a pure tone's quiet bands.
    return torch.hann_window(FRAME, periodic=False, dtype=torch.float32).pow(0.85)


@lru_cache(maxsize=1)
def _mel_filters() -> Tensor:
    """(128, 257) triangles, equally wide and half overlapping on the mel scale."""
    edges = torch.linspace(_mel(LOWEST_HZ), _mel(RATE_HZ / 2), BINS + 2, dtype=torch.float64)
    hz = torch.arange(FFT // 2 + 1, dtype=torch.float64) * RATE_HZ / FFT
    mel = 1127.0 * torch.log1p(hz / 700.0)
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (mel - low) / (centre - low), (high - mel) / (high - centre)
    return torch.minimum(rising, falling).clamp(min=0)


def _mel(hz: float) -> float:
    return 1127.0 * math.log1p(hz / 700.0)
