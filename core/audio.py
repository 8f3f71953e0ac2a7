"""The one place where a file becomes samples: mono, 16 kHz, float32.

`read_clip` gives the samples of a recording and the facts a reader of the
results may ask for; `prepare_clips` does so for many recordings at once and
leaves them in a folder under names made of their content, which is all a model
is ever shown.

    >>> recording = read_clip(Path("session.mp3"), start_s=12.5, end_s=31.0)  # doctest: +SKIP
    >>> recording.facts.level_dbfs, recording.facts.notes  # doctest: +SKIP
    (-23.4, ('stereo in antiphase: kept left channel',))
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from core.decoding import AudioError, Decoded, decode
from core.file_hash import sha256_of
from core.replacing import replacing

__all__ = [
    "RATE_HZ",
    "AudioError",
    "Facts",
    "Prepared",
    "Recording",
    "Samples",
    "Source",
    "clip_name",
    "cores",
    "holds_clip",
    "prepare_clips",
    "read_clip",
    "read_samples",
    "write_clip",
]

Samples = NDArray[np.float32]

RATE_HZ = 16_000
# Counts up whenever the same file would give other samples.
DECODER = 1
# Shorter than any syllable: a header, a click or a cut file, not speech.
SHORTEST_S = 0.1
LOWEST_DBFS = -120.0
SILENCE_DBFS = -50.0
_FULL_SCALE = 0.98
_WAV_HEADER_BYTES = 58


@dataclass(frozen=True)
class Facts:
    """What a recording was before it became samples, and what was done to it.

    Attributes:
        rate_hz, channels, format, subtype: of the file, e.g. 44100, 2, "WAV", "PCM_24".
        seconds: of the samples.
        level_dbfs: root mean square of the samples in dB re full scale; never
            under -120, which stands for digital silence.
        peak: largest absolute value in the file, 1.0 being full scale.
        silent_share: share of 20 ms frames under -50 dBFS, in [0, 1].
        clipped_share: share of the file's values at 98 % of full scale or above
            (8-bit and companded formats end there), in [0, 1].
        notes: departures from a plain reading, in words.
    """

    rate_hz: int
    channels: int
    format: str
    subtype: str
    seconds: float
    level_dbfs: float
    peak: float
    silent_share: float
    clipped_share: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """`samples` (n,) mono float32 at 16 kHz within [-1, 1], and their facts."""

    samples: Samples
    facts: Facts


@dataclass(frozen=True)
class Source:
    """A file, or the part of it from start_s to end_s."""

    path: Path
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True)
class Prepared:
    """A clip that lies ready in the folder: its file `name` and its facts."""

    name: str
    facts: Facts


def read_clip(
    path: Path | str, *, start_s: float | None = None, end_s: float | None = None
) -> Recording:
    """A file, or a part of it, as mono samples at 16 kHz.

    Channels are averaged; where they cancel each other the louder one is kept.
    Values beyond full scale (float files, loud mp3) scale the whole clip to a
    peak of 1, which keeps its shape; what resampling alone adds beyond full scale
    is clipped. Either is a note where it changes the level.

    Raises:
        AudioError: for a file that gives no such samples.
    """
    path = Path(path)
    decoded = decode(path, start_s, end_s)
    frames, rate_hz = decoded.frames, decoded.rate_hz
    _check_length(path, len(frames) / rate_hz)
    peak = _peak(path, frames)
    mono, notes = _one_channel(frames)
    loudest = float(np.abs(mono).max())
    if loudest > 1:
        notes += (f"peak {loudest:.3g} beyond full scale: scaled to 1",)
        mono = mono / np.float32(loudest)
    samples = mono
    if rate_hz != RATE_HZ:
        # HQ keeps 100 dB, far below the noise of any recording; VHQ sounds the same to a model.
        samples = soxr.resample(mono, rate_hz, RATE_HZ, quality="HQ")
    samples = np.clip(samples, -1, 1).astype(np.float32, copy=False)
    return Recording(samples, _facts(decoded, samples, peak, notes))


def flac(samples: Samples) -> bytes:
    """A clip as a FLAC file of 16 bits: lossless for what a model is given, half the size."""
    written = BytesIO()
    soundfile.write(written, samples, RATE_HZ, format="FLAC", subtype="PCM_16")
    return written.getvalue()


def clip_name(samples: Samples) -> str:
    """The file name of a clip: 32 hex digits of its samples' sha256, and ".wav"."""
    return sha256(_little_endian(samples)).hexdigest()[:32] + ".wav"


def write_clip(folder: Path, samples: Samples) -> Path:
    """Put samples (n,) in a folder as a 16 kHz float32 WAV named by content.

    A clip that is there already is left alone. The file appears whole or not at
    all: written beside, synced, renamed.
    """
    path = folder / clip_name(samples)
    if holds_clip(path, len(samples)):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    _write(path, _wav_header(len(samples)) + _little_endian(samples), durable=True)
    return path


def holds_clip(path: Path, samples: int) -> bool:
    """Whether a clip of so many samples lies there whole."""
    try:
        return path.stat().st_size == _WAV_HEADER_BYTES + 4 * samples
    except OSError:
        return False


def read_samples(path: Path) -> Samples:
    """The samples (n,) of a clip in the folder, as they were written."""
    samples, _ = soundfile.read(path, dtype="float32")
    return np.asarray(samples, np.float32)


def prepare_clips(
    sources: Sequence[Path | Source],
    folder: Path,
    *,
    workers: int | None = None,
    index: Path | None = None,
    progress: Callable[[], None] | None = None,
) -> list[Prepared | AudioError]:
    """Decode many files into a folder of clips; one bad file spoils no other.

    Args:
        sources: files or parts of files; equal ones are decoded once.
        folder: where the clips go; other runs may be writing there.
        workers: threads, default one a core. Threads suffice: decoding and hashing let
            go of the interpreter.
        index: where it is remembered which file gave which clip, by the file's
            content, so that it is not decoded again; default `<folder>-index`,
            outside the folder that models are shown.
        progress: called after each source.

    Returns:
        For each source, in order, its clip or the reason there is none.
    """
    index = index or folder.with_name(folder.name + "-index")
    wanted = [source if isinstance(source, Source) else Source(source) for source in sources]

    distinct = list(dict.fromkeys(wanted))
    paths = list(dict.fromkeys(source.path for source in wanted))

    def one(source: Source) -> Prepared | AudioError:
        try:
            return _prepare(source, folder, index / f"{_key(source, contents[source.path])}.json")
        except AudioError as error:
            return error
        finally:
            if progress:
                progress()

    with ThreadPoolExecutor(workers or cores()) as pool:
        # A session may be the source of hundreds of turns: it is hashed once.
        contents = dict(zip(paths, pool.map(_content_digest, paths), strict=True))
        ready = dict(zip(distinct, pool.map(one, distinct), strict=True))
    return [ready[source] for source in wanted]


def _check_length(path: Path, seconds: float) -> None:
    if seconds < SHORTEST_S:
        advice = "Leave the item out, or fetch its recording again."
        raise AudioError(path, f"at least {SHORTEST_S} s of sound", f"{seconds:.4f} s", advice)


def _peak(path: Path, frames: NDArray[np.float32]) -> float:
    peak = float(np.abs(frames).max())
    if not np.isfinite(peak):
        row = int(np.argmax(~np.isfinite(frames).all(axis=1)))
        advice = "The program that wrote the file divided by zero or overflowed: render it again."
        raise AudioError(path, "finite samples", f"{frames[row].max()} at frame {row}", advice)
    return peak


def _one_channel(frames: NDArray[np.float32]) -> tuple[Samples, tuple[str, ...]]:
    channels = frames.shape[1]
    if channels == 1:
        return frames[:, 0], ()
    mono = frames.mean(axis=1)
    powers = np.square(frames, dtype=np.float64).mean(axis=0)
    # Unrelated channels keep 1 / channels of their power when averaged, a fifth of that is
    # a correlation of -0.8 in stereo: the sum no longer sounds like either.
    if np.square(mono, dtype=np.float64).mean() >= 0.2 / channels * powers.mean():
        return mono, ()
    loudest = int(np.argmax(powers))
    name = ("left", "right")[loudest] if channels == 2 else f"number {loudest + 1}"
    kind = "stereo" if channels == 2 else f"{channels} channels"
    return frames[:, loudest], (f"{kind} in antiphase: kept {name} channel",)


def _facts(decoded: Decoded, samples: Samples, peak: float, notes: tuple[str, ...]) -> Facts:
    width = RATE_HZ // 50
    whole = samples[: len(samples) // width * width].reshape(-1, width)
    silent_share = float(np.mean(_level_dbfs(whole) < SILENCE_DBFS))
    clipped_share = float(np.mean(np.abs(decoded.frames) >= _FULL_SCALE))
    if silent_share == 1:
        notes += ("silent throughout",)
    if clipped_share > 0.001:
        notes += (f"{clipped_share:.1%} of the values at full scale",)
    return Facts(
        rate_hz=decoded.rate_hz,
        channels=decoded.frames.shape[1],
        format=decoded.format,
        subtype=decoded.subtype,
        seconds=len(samples) / RATE_HZ,
        level_dbfs=float(_level_dbfs(samples)),
        peak=peak,
        silent_share=silent_share,
        clipped_share=clipped_share,
        notes=decoded.notes + notes,
    )


def _level_dbfs(samples: Samples) -> NDArray[np.float64]:
    """(..., n) -> (...), in dB re an amplitude of 1; at least LOWEST_DBFS."""
    power = np.square(samples, dtype=np.float64).mean(axis=-1)
    level: NDArray[np.float64] = 10 * np.log10(np.maximum(power, 10 ** (LOWEST_DBFS / 10)))
    return level


def _prepare(source: Source, folder: Path, entry: Path) -> Prepared:
    known = _remembered(entry)
    if known and holds_clip(folder / known.name, round(known.facts.seconds * RATE_HZ)):
        return known
    recording = read_clip(source.path, start_s=source.start_s, end_s=source.end_s)
    prepared = Prepared(write_clip(folder, recording.samples).name, recording.facts)
    entry.parent.mkdir(parents=True, exist_ok=True)
    # A lost entry costs one decoding, so it is not synced.
    _write(entry, json.dumps(asdict(prepared)).encode(), durable=False)
    return prepared


def _content_digest(path: Path) -> str:
    try:
        # Reading a pipe would wait for a writer for ever.
        if path.is_file():
            return sha256_of(path)
    except (OSError, ValueError):
        pass  # `decode` refuses such a path, and says why
    return ""


def _key(source: Source, content: str) -> str:
    """What decides the samples: the file's content and name, the span, the decoder's versions.

    The name's extension is in because a note speaks of it; the folder is not, so a moved
    data set is not decoded again.
    """
    versions = (DECODER, soundfile.__libsndfile_version__, soxr.__version__)
    # A table's float64 and a typed number are one span.
    span = [None if at is None else float(at) for at in (source.start_s, source.end_s)]
    parts = (content, source.path.suffix, span, versions)
    return sha256(repr(parts).encode()).hexdigest()[:32]


def _remembered(entry: Path) -> Prepared | None:
    try:
        known = json.loads(entry.read_bytes())
        facts = known["facts"]
        return Prepared(known["name"], Facts(**{**facts, "notes": tuple(facts["notes"])}))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _little_endian(samples: Samples) -> bytes:
    return np.ascontiguousarray(samples, dtype="<f4").tobytes()


def _wav_header(samples: int) -> bytes:
    # libsndfile would put the time of day in a float WAV; equal samples are equal files here.
    size, rate, three = 4 * samples, RATE_HZ, (3).to_bytes(2, "little")
    words = [word.to_bytes(4, "little") for word in (50 + size, 18, rate, 4 * rate, 4, samples)]
    riff, fmt_size, rate_bytes, bytes_per_s, fact_size, count = words
    fmt = three + b"\x01\x00" + rate_bytes + bytes_per_s + b"\x04\x00\x20\x00\x00\x00"
    fact = b"fact" + fact_size + count
    data = b"data" + size.to_bytes(4, "little")
    return b"RIFF" + riff + b"WAVEfmt " + fmt_size + fmt + fact + data


def _write(path: Path, content: bytes, *, durable: bool) -> None:
    with replacing(path, durable=durable) as stream:
        # Whatever the umask: a container reads clips as another user.
        os.fchmod(stream.fileno(), 0o644)
        stream.write(content)


def cores() -> int:
    """How many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
