"""What a file says it holds, read from its bytes: its kind, its length, its damage.

Decoders trust headers in ways that lose sound without a word: a WAV cut in half
decodes as a shorter WAV, an MP3 without a frame count or glued from two files
stops early. This module looks before anything is decoded; it decodes nothing.
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass

Content = bytes | mmap.mmap

# By the first bytes. Only these are read: decoders know many more formats, and some of
# those accept nearly any bytes.
_WITH_SNDFILE = {"WAV", "W64", "FLAC", "OGG", "MP3", "AIFF", "AU", "CAF"}
_SUFFIXES = {
    "WAV": {".wav", ".wave"},
    "W64": {".w64"},
    "FLAC": {".flac"},
    "OGG": {".ogg", ".oga", ".opus"},
    "MP3": {".mp3"},
    "AIFF": {".aiff", ".aif", ".aifc"},
    "AU": {".au", ".snd"},
    "CAF": {".caf"},
    "MP4": {".m4a", ".mp4", ".m4b", ".mov", ".3gp", ".aac"},
    "WEBM": {".webm", ".mkv", ".mka", ".weba"},
    "AAC": {".aac"},
}
_STREAMING = 0x7FFFF000
_MPEG_RATES_HZ = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_KBPS_MPEG1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBPS_MPEG2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)


@dataclass(frozen=True)
class Header:
    """A file's own account of itself.

    Attributes:
        kind: "WAV", "MP3", ... ; None for content that is not audio we read.
        promised_s: length the header states; NaN where it states none.
        held_s: length that is there, as far as it can be told without decoding;
            NaN where it cannot.
        damage: what is broken, in words; None for a whole file.
        repaired: bytes to decode in place of the file's, or None.
        notes: what a reader of the results should know.
    """

    kind: str | None
    promised_s: float = float("nan")
    held_s: float = float("nan")
    damage: str | None = None
    repaired: bytes | None = None
    notes: tuple[str, ...] = ()

    @property
    def by_sndfile(self) -> bool:
        return self.kind in _WITH_SNDFILE


def read_header(content: Content) -> Header:
    """The header of a file's content."""
    kind = kind_of(content)
    if kind == "WAV" and content[:4] == b"RIFF":
        return _wav(content)
    if kind == "AIFF":
        return _aiff(content)
    if kind == "MP3":
        return _mp3(content)
    if kind == "OGG":
        return _ogg(content)
    return Header(kind)


def kind_of(content: Content) -> str | None:
    """The container's name by content, or None."""
    head = bytes(content[:16])
    if head[:4] in (b"RIFF", b"RIFX", b"RF64") and head[8:12] == b"WAVE":
        return "WAV"
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "AIFF"
    if head[4:8] == b"ftyp":
        return "MP4"
    starts = {b"fLaC": "FLAC", b"OggS": "OGG", b".snd": "AU", b"caff": "CAF", b"riff": "W64"}
    if head[:4] in starts:
        return starts[head[:4]]
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return "WEBM"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "AAC"
    start = _after_id3(content, 0)
    if start and content[start : start + 4] == b"fLaC":
        return "FLAC"
    return "MP3" if _mpeg_frame(content, start) else None


def looks_like(content: Content) -> str:
    """What a file that is not audio seems to be, for the error that names it."""
    head = bytes(content[:512]).lstrip(b"\xef\xbb\xbf \t\r\n")
    lowered = head.lower()
    if lowered.startswith((b"<!doctype html", b"<html", b"<head")):
        return "an HTML page"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file it stands for"
    known = {b"{": "JSON", b"[": "JSON", b"<": "XML", b"PK": "a ZIP archive", b"%PDF": "a PDF"}
    for start, name in known.items():
        if head.startswith(start):
            return name
    if re.fullmatch(rb"[\t\r\n\x20-\x7e]+", head):
        return f"text beginning {head[:24].decode()!r}"
    return f"unknown content beginning {bytes(content[:8]).hex(' ')}"


def misnamed(kind: str, suffix: str) -> bool:
    """Whether a file's extension says another format than its content."""
    return suffix.lower() not in _SUFFIXES[kind] and bool(suffix)


def _wav(content: Content) -> Header:
    bytes_per_s = 0
    at = 12
    while at + 8 <= len(content):
        name, size = bytes(content[at : at + 4]), int.from_bytes(content[at + 4 : at + 8], "little")
        start, left = at + 8, len(content) - at - 8
        if name == b"fmt ":
            bytes_per_s = int.from_bytes(content[start + 8 : start + 12], "little")
        if name == b"data":
            return _wav_data(content, at, size, left, bytes_per_s)
        at = start + size + (size & 1)
    return Header("WAV", damage="a WAV header without a data chunk")


def _wav_data(content: Content, at: int, size: int, left: int, bytes_per_s: int) -> Header:
    if bytes_per_s == 0:
        # Compressed sound in a WAV need not state its bytes a second.
        return Header("WAV")
    if size == 0 and left and not _is_chunk(content, at + 8):
        # A recorder that was killed leaves 0 where the length belongs.
        whole = bytearray(content[:])
        whole[at + 4 : at + 8] = min(left, 0xFFFFFFFF).to_bytes(4, "little")
        notes = ("header states no length: read to the end of the file",)
        return Header("WAV", held_s=left / bytes_per_s, repaired=bytes(whole), notes=notes)
    if size > left and size >= _STREAMING:
        notes = ("streaming header: length taken from the file",)
        return Header("WAV", held_s=left / bytes_per_s, notes=notes)
    return Header("WAV", promised_s=size / bytes_per_s, held_s=min(size, left) / bytes_per_s)


def _is_chunk(content: Content, at: int) -> bool:
    name, size = bytes(content[at : at + 4]), int.from_bytes(content[at + 4 : at + 8], "little")
    return re.fullmatch(rb"[A-Za-z0-9 ]{4}", name) is not None and at + 8 + size <= len(content)


def _aiff(content: Content) -> Header:
    bytes_per_s, at = 0.0, 12
    while at + 8 <= len(content):
        name, size = bytes(content[at : at + 4]), int.from_bytes(content[at + 4 : at + 8], "big")
        if name == b"COMM":
            bytes_per_s = _aiff_bytes_per_s(bytes(content[at + 8 : at + 26]))
        if name == b"SSND" and bytes_per_s:
            sound, left = size - 8, len(content) - at - 16
            return Header("AIFF", sound / bytes_per_s, min(sound, left) / bytes_per_s)
        at += 8 + size + (size & 1)
    return Header("AIFF")


def _aiff_bytes_per_s(comm: bytes) -> float:
    channels, width = int.from_bytes(comm[:2], "big"), int.from_bytes(comm[6:8], "big")
    # The rate is an 80-bit float: sign and exponent in 16 bits, then the integer bit and fraction.
    # A damaged one may be beyond any number; 2**32 Hz is enough to be refused.
    exponent = min(int.from_bytes(comm[8:10], "big") - 16383, 32)
    rate_hz = int.from_bytes(comm[10:18], "big") * 2.0 ** (exponent - 63)
    return channels * -(-width // 8) * rate_hz


def _ogg(content: Content) -> Header:
    last = content.rfind(b"OggS")
    page = bytes(content[last : last + 27])
    if len(page) < 27:
        return Header("OGG", damage="an Ogg file cut inside a page")
    lacing = bytes(content[last + 27 : last + 27 + page[26]])
    if len(lacing) < page[26] or last + 27 + page[26] + sum(lacing) > len(content):
        return Header("OGG", damage="an Ogg file cut inside a page")
    ended = page[5] & 0x04
    return Header(
        "OGG", notes=() if ended else ("no end-of-stream mark: the recording may be cut",)
    )


@dataclass(frozen=True)
class _MpegFrame:
    size: int
    samples: int
    rate_hz: int
    mono: bool
    mpeg1: bool

    @property
    def tag_at(self) -> int:
        """Where a Xing or Info tag would stand in the frame, past the side information."""
        return 4 + ((17 if self.mono else 32) if self.mpeg1 else (9 if self.mono else 17))


def _mpeg_frame(content: Content, at: int) -> _MpegFrame | None:
    head = content[at : at + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    kbps_index, rate_index = head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or layer != 1 or not 0 < kbps_index < 15 or rate_index == 3:
        return None
    mpeg1 = version == 3
    rate_hz = _MPEG_RATES_HZ[version][rate_index]
    kbps = (_KBPS_MPEG1 if mpeg1 else _KBPS_MPEG2)[kbps_index]
    size = (144_000 if mpeg1 else 72_000) * kbps // rate_hz + (head[2] >> 1 & 1)
    return _MpegFrame(size, 1152 if mpeg1 else 576, rate_hz, head[3] >> 6 == 3, mpeg1)


def _after_id3(content: Content, at: int) -> int:
    while content[at : at + 3] == b"ID3" and len(content) >= at + 10:
        size = 0
        for byte in content[at + 6 : at + 10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if content[at + 5] & 0x10 else 0)
    return at


def _mp3(content: Content) -> Header:
    start = _after_id3(content, 0)
    first = _mpeg_frame(content, start)
    if first is None:
        return Header("MP3", damage="an MP3 without a frame")
    frames, cut = _count_frames(content, start, first)
    tag = bytes(content[start + first.tag_at : start + first.tag_at + 12])
    tagged = tag[:4] in (b"Xing", b"Info") and bool(tag[7] & 1)
    seconds = first.samples / first.rate_hz
    held = frames - tagged - cut
    if tagged:
        promised = int.from_bytes(tag[8:], "big")
        if promised >= held:
            return Header("MP3", promised * seconds, held * seconds)
    # Without a true frame count the decoder guesses the length from the first frame's
    # bit rate and stops there, so it is given a count.
    body = bytes(content[start + (first.size if tagged else 0) :])
    repaired = _counting_frame(bytes(content[start : start + 4]), first, held) + body
    notes = ("the MP3 header counts fewer frames than the file holds: read all",) if tagged else ()
    return Header("MP3", held_s=held * seconds, repaired=repaired, notes=notes)


def _count_frames(content: Content, at: int, first: _MpegFrame) -> tuple[int, bool]:
    """Frames from `at` on, and whether the last is cut; tags and junk between are skipped."""
    count, end, frame = 0, len(content), None
    while at + 4 <= end:
        frame = _mpeg_frame(content, at)
        if frame is not None and frame.rate_hz == first.rate_hz:
            count, at = count + 1, at + frame.size
            continue
        skipped = _after_id3(content, at)
        sync = content.find(b"\xff", max(skipped, at + 1))
        if sync < 0:
            break
        at = sync
    return count, at > end


def _counting_frame(head: bytes, first: _MpegFrame, frames: int) -> bytes:
    """A silent frame with a Xing tag that states the number of frames, and nothing else."""
    nine = bytes((head[0], head[1] | 1, 0x90 | head[2] & 0x0C, head[3]))
    size = _mpeg_frame(nine, 0)
    tag = b"Xing" + (1).to_bytes(4, "big") + frames.to_bytes(4, "big")
    body = nine + bytes(first.tag_at - 4) + tag
    return body.ljust(size.size if size else len(body), b"\0")
