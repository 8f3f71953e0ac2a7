"""Audio as it arrives: whole in odd formats, or broken in a known way.

Made afresh by each test run; `python tests/corpus/broken_audio.py FOLDER` writes
all files to a folder to look at. The whole ones hold one second of a 440 Hz tone.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import soundfile

TONE_HZ = 440
SECONDS = 1.0


def tone(rate_hz: int, seconds: float = SECONDS, *, peak: float = 0.5) -> np.ndarray:
    return peak * np.sin(2 * np.pi * TONE_HZ * np.arange(round(seconds * rate_hz)) / rate_hz)


def encoded(samples: np.ndarray, rate_hz: int, form: str = "WAV", subtype: str = "PCM_16") -> bytes:
    """Samples (n,) or (n, channels) as the bytes of a file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate_hz, format=form, subtype=subtype)
    return buffer.getvalue()


def wav(data: bytes, *, stated: int | None = None, rate_hz: int = 16_000) -> bytes:
    """A 16-bit mono WAV whose header states a length of its own."""
    size = len(data) if stated is None else stated
    riff = min(size + 36, 0xFFFFFFFF)
    numbers = [(16, 4), (1, 2), (1, 2), (rate_hz, 4), (2 * rate_hz, 4), (2, 2), (16, 2)]
    fmt = b"".join(value.to_bytes(width, "little") for value, width in numbers)
    head = b"RIFF" + riff.to_bytes(4, "little") + b"WAVEfmt " + fmt
    return head + b"data" + size.to_bytes(4, "little") + data


def pcm(samples: np.ndarray) -> bytes:
    return (samples * 32767).astype("<i2").tobytes()


def mp3(rate_hz: int = 44_100, channels: int = 1) -> bytes:
    samples = np.repeat(tone(rate_hz)[:, None], channels, axis=1)
    return encoded(samples, rate_hz, "MP3", "MPEG_LAYER_III")


def mp3_without_count(rate_hz: int = 44_100) -> bytes:
    """An MP3 as a stream gives it: its first frame, which counts the others, is lost."""
    content = mp3(rate_hz)
    second = content.find(content[:2], 4)
    return content[second:]


def flac_from_a_pipe() -> bytes:
    """A FLAC whose writer could not go back to fill in the length."""
    content = bytearray(encoded(tone(48_000), 48_000, "FLAC"))
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    return bytes(content)


def whole() -> dict[str, bytes]:
    """File name -> content of one second of tone; every one can be read."""
    plain = tone(16_000)
    left_and_right = np.stack([tone(44_100), tone(44_100)], axis=1)
    return {
        "8bit.wav": encoded(plain, 16_000, "WAV", "PCM_U8"),
        "24bit.wav": encoded(plain, 16_000, "WAV", "PCM_24"),
        "32bit.wav": encoded(plain, 16_000, "WAV", "PCM_32"),
        "float.wav": encoded(plain, 16_000, "WAV", "FLOAT"),
        "double.wav": encoded(plain, 16_000, "WAV", "DOUBLE"),
        "a-law-8khz.wav": encoded(tone(8_000), 8_000, "WAV", "ALAW"),
        "mu-law-8khz.wav": encoded(tone(8_000), 8_000, "WAV", "ULAW"),
        "11khz.wav": encoded(tone(11_025), 11_025),
        "192khz.flac": encoded(tone(192_000), 192_000, "FLAC", "PCM_24"),
        "stereo.wav": encoded(left_and_right, 44_100),
        "antiphase.wav": encoded(left_and_right * [1, -1], 44_100),
        "six-channels.wav": encoded(np.repeat(tone(48_000)[:, None], 6, axis=1), 48_000),
        "beyond-full-scale.wav": encoded(tone(16_000, peak=3.0), 16_000, "WAV", "FLOAT"),
        "vorbis.ogg": encoded(tone(48_000), 48_000, "OGG", "VORBIS"),
        "opus.ogg": encoded(tone(48_000), 48_000, "OGG", "OPUS"),
        "plain.mp3": mp3(),
        "without-count.mp3": mp3_without_count(),
        "mp3-named.wav": mp3(),
        "flac-named.mp3": encoded(tone(48_000), 48_000, "FLAC"),
        "from-a-pipe.flac": flac_from_a_pipe(),
        "big-endian.aiff": encoded(plain, 16_000, "AIFF"),
        "streaming-header.wav": wav(pcm(plain), stated=0xFFFFFFFF),
        "recorder-killed.wav": wav(pcm(plain), stated=0),
    }


def broken() -> dict[str, tuple[bytes, str, str]]:
    """File name -> content, and words its error says after "expected" and after "found"."""
    plain = pcm(tone(16_000))
    half = len(plain) // 2
    flac = encoded(tone(16_000), 16_000, "FLAC")
    aiff = encoded(tone(16_000), 16_000, "AIFF")
    absurd = bytearray(aiff)
    absurd[28:30] = b"\x7f\xff"  # the exponent of its rate
    ogg = encoded(tone(48_000, 8.0), 48_000, "OGG", "VORBIS")
    whole_mp3 = mp3()
    with_nan, with_inf = tone(16_000), tone(16_000)
    with_nan[100], with_inf[100] = np.nan, np.inf
    return {
        "zero-bytes.wav": (b"", "an audio file", "zero bytes"),
        "page.wav": (b"<!DOCTYPE html><title>404</title>", "audio (wav, flac", "an HTML page"),
        "page.mp3": (b"\n<html><body>login</body>", "audio (wav, flac", "an HTML page"),
        "error.wav": (b'{"detail": "quota_exceeded"}', "audio (wav, flac", "JSON"),
        "pointer.wav": (
            b"version https://git-lfs.github.com/spec/v1\n",
            "audio (wav, flac",
            "a Git LFS pointer",
        ),
        "words.wav": (b"hello", "audio (wav, flac", "text beginning 'hello'"),
        "noise.mp3": (bytes(range(1, 200)), "audio (wav, flac", "unknown content"),
        "playlist.m4a": (b"#EXTM3U\nhttp://127.0.0.1/a.ts\n", "audio (wav, flac", "#EXTM3U"),
        "list.m4a": (b"ffconcat version 1.0\nfile /etc/passwd\n", "audio (wav", "ffconcat"),
        "header-only.wav": (wav(b"", stated=32_000), "1.00 s by its header", "without samples"),
        "no-samples.wav": (wav(b""), "at least 0.1 s of sound", "0.0000 s"),
        "half-a-header.wav": (wav(plain)[:30], "a whole recording", "without a data chunk"),
        "cut.wav": (wav(plain[:half], stated=len(plain)), "1.00 s by its header", "0.50 s"),
        "cut.mp3": (whole_mp3[: len(whole_mp3) // 2], "s by its header", " s"),
        "cut.flac": (flac[: len(flac) // 2], "decodes to its end", "lost sync"),
        "cut.ogg": (ogg[: len(ogg) // 2], "a whole recording", "cut inside a page"),
        "cut.aiff": (aiff[: len(aiff) // 2], "1.00 s by its header", "0.50 s"),
        "one-sample.wav": (wav(plain[:2]), "at least 0.1 s of sound", "0.0001 s"),
        "nan.wav": (encoded(with_nan, 16_000, "WAV", "FLOAT"), "finite samples", "at frame 100"),
        "inf.wav": (encoded(with_inf, 16_000, "WAV", "FLOAT"), "finite samples", "at frame 100"),
        "absurd-rate.aiff": (bytes(absurd), "a sample rate from 4000", "67108864 Hz"),
        "one-hertz.wav": (wav(plain, rate_hz=1), "a sample rate from 4000", "1 Hz"),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    files = whole() | {name: content for name, (content, *_) in broken().items()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
