"""One place where a clip file becomes samples, inside a container.

The host has decoded, resampled and named the clips already (16 kHz mono WAV);
here they are only read, and refused where they are anything else.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import soundfile

from containers.runtime.adapter import Clip

RATE_HZ = 16_000


class ClipError(ValueError):
    """A clip that cannot be given to a model: file, expected, found."""


def seconds_of(path: Path) -> float:
    """Length of a clip by its header, without reading the samples.

    Raises:
        ClipError: no such file, not a sound file, or not 16 kHz mono with at least one sample.
    """
    if not path.is_file():
        raise ClipError(f"{path.name}: no such file in the audio folder.")
    try:
        header = soundfile.info(str(path))
    except (soundfile.SoundFileError, RuntimeError, OSError) as error:
        raise ClipError(f"{path.name}: not a readable sound file ({error}).") from error
    if (header.samplerate, header.channels) != (RATE_HZ, 1) or header.frames < 1:
        raise ClipError(
            f"{path.name}: expected {RATE_HZ} Hz mono with samples, found {header.samplerate} Hz, "
            f"{header.channels} channels, {header.frames} samples. Decode it on the host first."
        )
    return float(header.frames) / RATE_HZ


def read_clip(path: Path) -> Clip:
    """The samples of a clip.

    Raises:
        ClipError: as `seconds_of`, and for samples that are not finite or fewer than declared.
    """
    declared = round(seconds_of(path) * RATE_HZ)
    try:
        samples, _ = soundfile.read(str(path), dtype="float32")
    except (soundfile.SoundFileError, RuntimeError, OSError) as error:
        raise ClipError(f"{path.name}: cannot be read ({error}).") from error
    if len(samples) != declared:
        raise ClipError(
            f"{path.name}: expected {declared} samples by its header, found {len(samples)}."
        )
    if not np.isfinite(samples).all():
        raise ClipError(f"{path.name}: holds samples that are not finite.")
    return Clip(path.name, str(path), samples)


def read_clips(folder: Path, names: Iterable[str]) -> dict[str, Clip | ClipError]:
    """Every named clip once; a bad one as its error, so that one file spoils one item."""
    clips: dict[str, Clip | ClipError] = {}
    for name in dict.fromkeys(names):
        try:
            clips[name] = read_clip(folder / name)
        except ClipError as error:
            clips[name] = error
            check_there(folder)
    return clips


def check_there(folder: Path) -> None:
    """Tell a folder that went away, as with a disk that was unmounted, from clips that are bad.

    Raises:
        OSError: it is gone or empty; to note every item as unreadable would be a lie.
    """
    # What was a mount point is an empty folder then.
    if next(folder.iterdir(), None) is None:
        said = "the folder of the clips is empty; is its disk still mounted?"
        raise FileNotFoundError(errno.ENOENT, said, str(folder))
