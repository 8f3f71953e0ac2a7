"""A clip is 16 kHz mono samples or an error that says what it is."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from containers.runtime.clips import ClipError, check_there, read_clip, read_clips

TONE = np.sin(np.arange(16_000) / 20).astype("f4")


def write(folder, name, samples=TONE, rate_hz=16_000):
    soundfile.write(folder / name, samples, rate_hz, subtype="FLOAT")
    return folder / name


def test_samples_come_back_as_written(tmp_path):
    clip = read_clip(write(tmp_path, "a.wav"))
    assert clip.seconds == 1.0
    np.testing.assert_array_equal(clip.samples, TONE)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "says"),
    [
        (TONE, 8_000, "found 8000 Hz"),
        (np.stack([TONE, TONE], axis=1), 16_000, "2 channels"),
        (TONE[:0], 16_000, "0 samples"),
        (np.array([0.1, np.nan], dtype="f4"), 16_000, "not finite"),
    ],
)
def test_anything_else_is_refused_with_what_was_found(tmp_path, samples, rate_hz, says):
    with pytest.raises(ClipError, match=says):
        read_clip(write(tmp_path, "a.wav", samples, rate_hz))


@pytest.mark.parametrize("content", [b"", b"RIFF", b"<html></html>", b"RIFF\0\0\0\0WAVEfmt "])
def test_a_file_that_is_no_sound_is_refused(tmp_path, content):
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(ClipError, match=r"a\.wav"):
        read_clip(tmp_path / "a.wav")


def test_a_file_cut_short_has_the_length_that_is_there(tmp_path):
    path = write(tmp_path, "a.wav")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 4 * 6_000])
    assert read_clip(path).seconds == 10_000 / 16_000


def test_one_bad_clip_leaves_the_others_readable(tmp_path):
    write(tmp_path, "good.wav")
    clips = read_clips(tmp_path, ["good.wav", "gone.wav", "good.wav"])
    assert list(clips) == ["good.wav", "gone.wav"]
    assert isinstance(clips["gone.wav"], ClipError)


def test_a_folder_that_went_away_is_no_fault_of_each_clip(tmp_path):
    """A disk that is unmounted leaves an empty folder behind, or none."""
    for gone in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=str(gone)):
            read_clips(gone, ["a.wav"])

    write(tmp_path, "b.wav")
    check_there(tmp_path)
    assert isinstance(read_clips(tmp_path, ["a.wav"])["a.wav"], ClipError)
