"""Broken and whole recordings of one tone, laid down as files, and the pitch that is heard."""

import runpy
from pathlib import Path

import numpy as np

from core.audio import RATE_HZ

CORPUS = runpy.run_path(str(Path(__file__).parents[1] / "corpus" / "broken_audio.py"))
tone, encoded, wav, pcm = (CORPUS[name] for name in ("tone", "encoded", "wav", "pcm"))


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


def pitch_hz(samples):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 8 * len(samples)))
    return np.argmax(spectrum) * RATE_HZ / (8 * len(samples))
