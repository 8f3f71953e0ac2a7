"""A recording as the host hands it over: 16 kHz, mono, 16 bit, in a WAV file."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

RATE_HZ = 16_000


def read(path: Path) -> Any:
    """(n,) float32 samples in [-1, 1].

    Raises:
        ValueError: a file that is another.
    """
    import numpy as np

    with wave.open(str(path), "rb") as file:
        found = (file.getframerate(), file.getnchannels(), file.getsampwidth())
        if found != (RATE_HZ, 1, 2):
            raise ValueError(f"{path.name}: expected 16 kHz, mono, 16 bit, found {found}.")
        frames = file.readframes(file.getnframes())
    return np.frombuffer(frames, np.int16).astype(np.float32) / 32768.0
