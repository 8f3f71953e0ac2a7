"""From a file to its frames as they are stored: any rate, any channels, nothing mixed.

libsndfile reads wav, flac, mp3, ogg, aiff, au and caf; the ffmpeg program, where
it is installed, reads m4a, aac and webm. Which one is decided by content, never
by name. What the header promised is compared with what was decoded.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import soundfile
from numpy.typing import NDArray

from core.audio_headers import Content, Header, looks_like, misnamed, read_header

READABLE = "wav, flac, mp3, ogg, or m4a where ffmpeg is installed"
# One codec frame or so: decoders differ by that much about where a recording ends.
END_TOLERANCE_S = 0.05
_FFMPEG_DEMUXERS = {"MP4": "mov", "WEBM": "matroska", "AAC": "aac"}
_FFMPEG_LIMIT_S = 600
_SEEKS_EXACTLY = {"WAV", "WAVEX", "RF64", "W64", "FLAC", "AIFF", "AU", "CAF"}
_RATES_HZ = (4_000, 768_000)
_BLOCK = 1 << 18


class AudioError(ValueError):
    """A file that gives no samples: which, what was expected, what was found, what to do."""

    def __init__(self, path: Path | str, expected: str, found: str, advice: str) -> None:
        super().__init__(str(path), expected, found, advice)
        self.path, self.expected, self.found, self.advice = str(path), expected, found, advice

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}. {self.advice}"


@dataclass(frozen=True)
class Decoded:
    """Frames of a file: `frames` (n, channels) float32, integer formats scaled to [-1, 1)."""

    frames: NDArray[np.float32]
    rate_hz: int
    format: str
    subtype: str
    notes: tuple[str, ...]


def decode(path: Path, start_s: float | None = None, end_s: float | None = None) -> Decoded:
    """The frames of a file from start_s to end_s, or all of them.

    Raises:
        AudioError: for a file that is missing, empty, not audio, cut, or shorter
            than the span asked for.
    """
    _check_span(path, start_s, end_s)
    with _opened(path) as (file, content):
        header = read_header(content)
        if header.kind is None:
            advice = "Replace the file, or convert it to WAV."
            raise AudioError(path, f"audio ({READABLE})", looks_like(content), advice)
        if header.by_sndfile:
            _check_header(path, header)
            source: BinaryIO | int = io.BytesIO(header.repaired) if header.repaired else file
            decoded = _with_sndfile(path, source, start_s, end_s)
        else:
            decoded = _with_ffmpeg(path, header.kind, start_s, end_s)
    notes = header.notes
    if misnamed(header.kind, path.suffix):
        notes = (f"{header.kind} content in a file named {path.suffix}", *notes)
    return Decoded(
        decoded.frames, decoded.rate_hz, decoded.format, decoded.subtype, notes + decoded.notes
    )


def _check_span(path: Path, start_s: float | None, end_s: float | None) -> None:
    start, end = start_s or 0.0, math.inf if end_s is None else end_s
    if not 0 <= start < end or math.isinf(start):
        advice = "Correct start_s and end_s."
        raise AudioError(path, "0 <= start_s < end_s", f"{start_s} to {end_s}", advice)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, Content]]:
    """The file's descriptor and content; only a regular file that holds something."""
    expected = f"an audio file ({READABLE})"
    try:
        # Opening a pipe would wait for a writer for ever.
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        advice = "Check the path and its permissions."
        raise AudioError(path, expected, found.lower(), advice) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise AudioError(path, expected, "a folder or device", "Name a file.")
        if status.st_size == 0:
            raise AudioError(path, expected, "zero bytes", "Fetch or render the file again.")
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
            yield file, content
    finally:
        os.close(file)


def _check_header(path: Path, header: Header) -> None:
    advice = "The file was cut: fetch or render it again."
    if header.damage:
        raise AudioError(path, "a whole recording", header.damage, advice)
    if header.promised_s - header.held_s > END_TOLERANCE_S:
        found = f"{header.held_s:.2f} s" if header.held_s > 0 else "a header without samples"
        raise AudioError(path, f"{header.promised_s:.2f} s by its header", found, advice)


def _with_sndfile(
    path: Path, source: BinaryIO | int, start_s: float | None, end_s: float | None
) -> Decoded:
    try:
        with soundfile.SoundFile(source, closefd=False) as sound:
            _check_rate(path, sound.samplerate)
            frames, notes = _frames_of_span(path, sound, start_s, end_s)
            return Decoded(frames, sound.samplerate, sound.format, sound.subtype, notes)
    except (soundfile.LibsndfileError, MemoryError) as error:
        reason = str(error).removeprefix("Error : ").rstrip(".")
        reason = re.sub(r"^Error opening [^:]*: (Error : )?", "", reason)
        advice = "Fetch or render the file again, or convert it to WAV."
        raise AudioError(path, "audio that decodes to its end", reason, advice) from error


def _check_rate(path: Path, rate_hz: int) -> None:
    low, high = _RATES_HZ
    if not low <= rate_hz <= high:
        expected = f"a sample rate from {low} to {high} Hz"
        advice = "The header is damaged, or this is not a recording of speech."
        raise AudioError(path, expected, f"{rate_hz} Hz", advice)


def _frames_of_span(
    path: Path, sound: Any, start_s: float | None, end_s: float | None
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    rate_hz, total = sound.samplerate, sound.frames
    countless = total > 1 << 62
    skip = round((start_s or 0.0) * rate_hz)
    stop = total if end_s is None else round(end_s * rate_hz)
    at = 0
    if skip and sound.format in _SEEKS_EXACTLY and not countless:
        at = sound.seek(min(skip, total))
    blocks = []
    while at < stop:
        block = _block(sound, min(_BLOCK, stop - at), countless)
        if not len(block):
            break
        blocks.append(block[max(0, skip - at) :])
        at += len(block)
    tolerance = END_TOLERANCE_S * rate_hz
    short_of_end = at < stop - tolerance and not countless
    if (end_s is not None and at < stop - tolerance) or (start_s and at <= skip):
        _refuse_span(path, start_s, end_s, at / rate_hz)
    if end_s is None and short_of_end:
        advice = "The file was cut: fetch or render it again."
        found = f"{at / rate_hz:.2f} s"
        raise AudioError(path, f"{total / rate_hz:.2f} s by its header", found, advice)
    notes = ("the header states no length: read to the end",) if countless else ()
    frames = np.concatenate(blocks) if blocks else np.zeros((0, sound.channels), np.float32)
    return frames, notes


def _refuse_span(path: Path, start_s: float | None, end_s: float | None, held_s: float) -> None:
    end = "its end" if end_s is None else f"{end_s:g} s"
    expected = f"a recording that holds {start_s or 0:g} s to {end}"
    advice = "Correct start_s and end_s, or fetch the whole recording."
    raise AudioError(path, expected, f"{held_s:.2f} s", advice)


def _block(sound: Any, frames: int, countless: bool) -> NDArray[np.float32]:
    """Up to `frames` frames from here on."""
    if not countless:
        block: NDArray[np.float32] = sound.read(frames, dtype="float32", always_2d=True)
        return block
    # A FLAC made in a pipe states no length. libsndfile reads its last block, then fails to
    # seek to the end; what it read is what no longer is NaN.
    block = np.full((frames, sound.channels), np.nan, np.float32)
    try:
        return sound.read(dtype="float32", out=block)  # type: ignore[no-any-return]
    except soundfile.LibsndfileError as error:
        if "psf_fseek" not in str(error):
            raise
        return block[: np.argmax(np.isnan(block[:, 0]))]


def _with_ffmpeg(path: Path, kind: str, start_s: float | None, end_s: float | None) -> Decoded:
    program = shutil.which("ffmpeg")
    if program is None:
        advice = "Install ffmpeg, or convert the file to WAV or FLAC."
        raise AudioError(path, "ffmpeg to read this format", f"{kind} and no ffmpeg", advice)
    # The demuxer is named and protocols are few, so that no file can make ffmpeg follow a
    # playlist or a link; `file:` and an absolute path keep a leading "-" from being an option.
    command = [program, "-nostdin", "-hide_banner", "-nostats", "-protocol_whitelist", "file,pipe"]
    command += ["-f", _FFMPEG_DEMUXERS[kind], "-i", f"file:{path.absolute()}", "-map", "0:a:0"]
    command += ["-ss", f"{start_s:.6f}"] if start_s else []
    command += ["-to", f"{end_s:.6f}"] if end_s is not None else []
    command += ["-c:a", "pcm_f32le", "-f", "wav", "pipe:1"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_FFMPEG_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        found = f"ffmpeg still at work after {_FFMPEG_LIMIT_S} s"
        raise AudioError(path, "audio that decodes", found, "Convert it to WAV.") from error
    log = done.stderr.decode(errors="replace")
    if done.returncode or "partial file" in log:
        lines = [line for line in log.splitlines() if line.strip()] or ["no message"]
        found = f"{kind} that ffmpeg cannot read to its end ({lines[-1].strip()})"
        advice = "Fetch or render the file again."
        raise AudioError(path, "audio that decodes to its end", found, advice)
    if not done.stdout:
        _refuse_span(path, start_s, end_s, math.nan)
    piped = _with_sndfile(path, io.BytesIO(done.stdout), None, None)
    codec = re.search(r"Stream #0.*Audio: (\w+)", log)
    _check_ffmpeg_length(path, piped, log, start_s, end_s)
    return Decoded(piped.frames, piped.rate_hz, kind, codec[1].upper() if codec else "", ())


def _check_ffmpeg_length(
    path: Path, decoded: Decoded, log: str, start_s: float | None, end_s: float | None
) -> None:
    held_s = (start_s or 0.0) + len(decoded.frames) / decoded.rate_hz
    stated = re.search(r"Duration: (\d+):(\d\d):(\d\d\.\d+)", log)
    if len(decoded.frames) == 0 or (end_s is not None and held_s < end_s - END_TOLERANCE_S):
        _refuse_span(path, start_s, end_s, held_s)
    if stated and end_s is None:
        promised_s = 3600 * int(stated[1]) + 60 * int(stated[2]) + float(stated[3])
        # The stated length is the longest stream's; a film may outlast its sound a little.
        if held_s < promised_s - max(1.0, 0.02 * promised_s):
            advice = "The file was cut: fetch or render it again."
            found = f"{held_s:.2f} s"
            raise AudioError(path, f"{promised_s:.2f} s by its header", found, advice)
