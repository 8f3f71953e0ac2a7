"""What libsndfile does not read goes through ffmpeg, whatever the file is called."""

import shutil
import subprocess

import pytest

from core.audio import AudioError, read_clip
from tests.core.recorded_tone import pcm, pitch_hz, put, tone, wav

NO_FFMPEG = "m4a is read where ffmpeg is installed, and it is not"
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason=NO_FFMPEG)


def m4a(folder, name="a.m4a", *more):
    source = put(folder, "source.wav", wav(pcm(tone(16_000))))
    path = folder / name
    command = ["ffmpeg", "-v", "error", "-i", str(source), *more, "-y", f"file:{path}"]
    subprocess.run(command, check=True)
    return path


@needs_ffmpeg
@pytest.mark.parametrize(
    "name", ["a.m4a", "-i.m4a", "a b;c'd.m4a", "http:a.m4a", "a.webm", "a.aac"]
)
def test_m4a_is_read_through_ffmpeg_whatever_its_name(tmp_path, name):
    recording = read_clip(m4a(tmp_path, name))

    assert recording.facts.seconds == pytest.approx(1, abs=0.15)
    assert pitch_hz(recording.samples) == pytest.approx(440, abs=1)
    assert recording.facts.subtype in ("AAC", "OPUS", "VORBIS")


@needs_ffmpeg
def test_a_relative_m4a_that_begins_with_a_dash_is_a_file(tmp_path, monkeypatch):
    m4a(tmp_path, "-i.m4a")
    monkeypatch.chdir(tmp_path)

    assert read_clip("-i.m4a").facts.format == "MP4"


@needs_ffmpeg
def test_a_span_of_an_m4a(tmp_path):
    path = m4a(tmp_path)

    assert read_clip(path, start_s=0.25, end_s=0.75).facts.seconds == pytest.approx(0.5, abs=0.001)
    with pytest.raises(AudioError, match=r"a recording that holds 0\.5 s to 2 s, found 1\.0"):
        read_clip(path, start_s=0.5, end_s=2)
    with pytest.raises(AudioError, match="a recording that holds 5 s to its end"):
        read_clip(path, start_s=5)


@needs_ffmpeg
@pytest.mark.parametrize("more", [(), ("-movflags", "faststart")])
def test_a_cut_m4a_is_refused(tmp_path, more):
    content = m4a(tmp_path, "a.m4a", *more).read_bytes()

    with pytest.raises(AudioError, match="expected audio that decodes to its end"):
        read_clip(put(tmp_path, "cut.m4a", content[: len(content) // 2]))


def test_an_m4a_without_ffmpeg_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    path = put(tmp_path, "a.m4a", b"\0\0\0\x20ftypM4A \0\0\0\0")

    with pytest.raises(AudioError, match=r"found MP4 and no ffmpeg\. Install ffmpeg, or convert"):
        read_clip(path)
