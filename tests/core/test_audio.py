"""Files become samples, whatever they are called and however they were written."""

import os
from hashlib import sha256

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.audio import (
    RATE_HZ,
    AudioError,
    Source,
    clip_name,
    prepare_clips,
    read_clip,
    write_clip,
)
from tests.core.recorded_tone import CORPUS, encoded, pcm, pitch_hz, put, tone, wav

WHOLE, BROKEN = CORPUS["whole"](), CORPUS["broken"]()


@pytest.mark.parametrize("name", WHOLE)
def test_a_second_of_tone_is_read_from_every_format(tmp_path, name):
    recording = read_clip(put(tmp_path, name, WHOLE[name]))

    assert recording.samples.dtype == np.float32
    assert recording.samples.ndim == 1
    # An MP3 without a frame count keeps the silence its encoder put round it.
    assert recording.facts.seconds == pytest.approx(1.0, abs=0.1 if "count" in name else 1e-9)
    assert pitch_hz(recording.samples) == pytest.approx(440, abs=1)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_file_expected_found_and_advice(tmp_path, name):
    content, expected, found = BROKEN[name]
    path = put(tmp_path, name, content)

    with pytest.raises(AudioError) as refused:
        read_clip(path)

    assert refused.value.path == str(path)
    assert expected in refused.value.expected
    assert found in refused.value.found
    assert str(refused.value).startswith(f"{path}: expected {refused.value.expected}, found ")
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("mp3-named.wav", "MP3 content in a file named .wav"),
        ("flac-named.mp3", "FLAC content in a file named .mp3"),
        ("antiphase.wav", "stereo in antiphase: kept left channel"),
        ("beyond-full-scale.wav", "peak 3 beyond full scale: scaled to 1"),
        ("streaming-header.wav", "streaming header: length taken from the file"),
        ("recorder-killed.wav", "header states no length: read to the end of the file"),
        ("from-a-pipe.flac", "the header states no length: read to the end"),
    ],
)
def test_a_departure_from_a_plain_reading_is_noted(tmp_path, name, note):
    assert note in read_clip(put(tmp_path, name, WHOLE[name])).facts.notes


def test_a_plain_file_has_no_notes(tmp_path):
    assert read_clip(put(tmp_path, "a.wav", WHOLE["24bit.wav"])).facts.notes == ()


def test_facts_describe_the_file(tmp_path):
    facts = read_clip(put(tmp_path, "a.wav", WHOLE["stereo.wav"])).facts

    assert (facts.rate_hz, facts.channels, facts.format, facts.subtype) == (
        44_100,
        2,
        "WAV",
        "PCM_16",
    )
    # A sine of amplitude 0.5: 20 log10(0.5 / sqrt 2) = -9.03 dB.
    assert facts.level_dbfs == pytest.approx(-9.03, abs=0.05)
    assert facts.peak == pytest.approx(0.5, abs=1e-3)
    assert (facts.silent_share, facts.clipped_share) == (0, 0)


def test_silence_is_reported_and_not_refused(tmp_path):
    facts = read_clip(put(tmp_path, "a.wav", wav(bytes(32_000)))).facts

    assert (facts.level_dbfs, facts.silent_share) == (-120, 1)
    assert "silent throughout" in facts.notes


def test_half_a_silence_is_half_a_silence(tmp_path):
    samples = np.concatenate([tone(16_000), np.zeros(16_000)])

    assert read_clip(put(tmp_path, "a.wav", wav(pcm(samples)))).facts.silent_share == 0.5


def test_clipping_is_reported(tmp_path):
    samples = np.clip(tone(16_000, peak=2.0), -1, 1)

    facts = read_clip(put(tmp_path, "a.wav", wav(pcm(samples)))).facts

    # |2 sin| exceeds 0.98 for 1 - 2 asin(0.49) / pi of the time.
    assert facts.clipped_share == pytest.approx(1 - 2 * np.arcsin(0.49) / np.pi, abs=0.01)
    assert any("at full scale" in note for note in facts.notes)


def test_values_beyond_full_scale_keep_their_shape(tmp_path):
    loud = read_clip(put(tmp_path, "a.wav", WHOLE["beyond-full-scale.wav"]))

    assert loud.facts.peak == pytest.approx(3, abs=0.01)
    np.testing.assert_allclose(loud.samples, tone(16_000, peak=1.0), atol=0.01)


def test_the_louder_channel_of_an_antiphase_pair_is_kept(tmp_path):
    pair = np.stack([-0.5 * tone(16_000), tone(16_000)], axis=1)

    recording = read_clip(put(tmp_path, "a.wav", encoded(pair, 16_000)))

    assert recording.facts.notes == ()  # unequal, so half the level is left
    pair = np.stack([-0.9 * tone(16_000), tone(16_000)], axis=1)
    recording = read_clip(put(tmp_path, "b.wav", encoded(pair, 16_000)))
    assert recording.facts.notes == ("stereo in antiphase: kept right channel",)
    np.testing.assert_allclose(recording.samples, tone(16_000), atol=1e-3)


def test_unrelated_channels_are_averaged(tmp_path):
    pair = np.random.default_rng(1).uniform(-0.5, 0.5, (16_000, 2))

    recording = read_clip(put(tmp_path, "a.wav", encoded(pair, 16_000)))

    np.testing.assert_allclose(recording.samples, pair.mean(axis=1), atol=1e-3)


def test_an_mp3_glued_from_two_is_read_to_its_end(tmp_path):
    recording = read_clip(put(tmp_path, "a.mp3", 2 * WHOLE["plain.mp3"]))

    assert recording.facts.seconds == pytest.approx(2, abs=0.15)
    assert pitch_hz(recording.samples[-12_000:-4_000]) == pytest.approx(440, abs=2)


def test_a_few_lost_milliseconds_at_the_end_are_no_fault(tmp_path):
    content = wav(pcm(tone(16_000))[:-320], stated=32_000)

    assert read_clip(put(tmp_path, "a.wav", content)).facts.seconds == 0.99


@pytest.mark.parametrize("name", ["stereo.wav", "192khz.flac", "plain.mp3", "vorbis.ogg"])
def test_a_span_is_the_part_of_the_whole(tmp_path, name):
    path = put(tmp_path, name, WHOLE[name])

    part = read_clip(path, start_s=0.25, end_s=0.75).samples

    whole = read_clip(path).samples
    assert len(part) == 8_000
    # The resampler's filter reaches over the edges of the span.
    np.testing.assert_allclose(part[200:-200], whole[4_200:11_800], atol=0.02)


@pytest.mark.parametrize(("start_s", "end_s"), [(0.5, 2.0), (1.5, None), (None, 1.2), (3, 4)])
@pytest.mark.parametrize("name", ["24bit.wav", "plain.mp3", "from-a-pipe.flac"])
def test_a_span_past_the_end_is_refused_with_the_length_there_is(tmp_path, name, start_s, end_s):
    path = put(tmp_path, name, WHOLE[name])

    with pytest.raises(AudioError, match=r"a recording that holds .*, found 1\.00 s"):
        read_clip(path, start_s=start_s, end_s=end_s)


@pytest.mark.parametrize(("start_s", "end_s"), [(-1, 1), (1, 1), (2, 1), (float("nan"), 1)])
def test_a_span_that_is_none_is_refused(tmp_path, start_s, end_s):
    path = put(tmp_path, "a.wav", WHOLE["24bit.wav"])

    with pytest.raises(AudioError, match="expected 0 <= start_s < end_s"):
        read_clip(path, start_s=start_s, end_s=end_s)


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")

    for path, found in [
        (tmp_path / "none.wav", "no such file"),
        (tmp_path, "a folder or device"),
        (tmp_path / "pipe.wav", "a folder or device"),
        (tmp_path / "zero\0byte.wav", "null "),
    ]:
        with pytest.raises(AudioError) as refused:
            read_clip(path)
        assert found in refused.value.found


@settings(max_examples=60, deadline=None)
@given(
    # FLAC has room for odd rates up to 65,535 Hz only.
    rate_hz=st.integers(4_000, 65_535) | st.sampled_from([88_200, 96_000, 192_000]),
    channels=st.integers(1, 6),
    seconds=st.floats(0.11, 0.5),
    pitch=st.integers(200, 1_500),
    form=st.sampled_from(
        [("WAV", width) for width in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")]
        + [("WAV", "ALAW"), ("WAV", "ULAW"), ("FLAC", "PCM_16"), ("FLAC", "PCM_24")]
        + [("AIFF", "PCM_16"), ("W64", "PCM_24"), ("AU", "PCM_16"), ("CAF", "PCM_16")]
    ),
)
def test_any_rate_width_and_channel_count_keeps_length_and_pitch(
    tmp_path_factory, rate_hz, channels, seconds, pitch, form
):
    frames = round(seconds * rate_hz)
    wave = 0.5 * np.sin(2 * np.pi * pitch * np.arange(frames) / rate_hz)
    content = encoded(np.repeat(wave[:, None], channels, axis=1), rate_hz, *form)

    recording = read_clip(put(tmp_path_factory.mktemp("a"), "a", content))

    assert abs(len(recording.samples) - frames * RATE_HZ / rate_hz) <= 1
    assert pitch_hz(recording.samples) == pytest.approx(pitch, abs=0.5 / seconds)
    assert recording.facts.level_dbfs == pytest.approx(-9.03, abs=0.3)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(WHOLE)),
    cut=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6),
    near_start=st.booleans(),
)
def test_damage_of_any_kind_gives_samples_or_a_reason(
    tmp_path_factory, name, cut, flips, near_start
):
    content = bytearray(WHOLE[name])
    reach = min(100, len(content)) if near_start else len(content)
    for place, value in flips:
        content[min(int(place * reach), len(content) - 1)] = value
    content = content[: max(1, int(len(content) * (1 if near_start else cut)))]

    try:
        recording = read_clip(put(tmp_path_factory.mktemp("a"), name, bytes(content)))
    except AudioError:
        pass  # how it reads is tested above
    else:
        assert np.isfinite(recording.samples).all()
        assert np.abs(recording.samples).max() <= 1


def test_a_clip_is_named_by_its_samples_and_reads_back_unchanged(tmp_path):
    samples = tone(16_000).astype(np.float32)

    path = write_clip(tmp_path / "clips", samples)

    assert path.name == clip_name(samples) == sha256(samples.tobytes()).hexdigest()[:32] + ".wav"
    np.testing.assert_array_equal(read_clip(path).samples, samples)
    described = soundfile.info(path)
    assert (described.samplerate, described.channels, described.subtype) == (16_000, 1, "FLOAT")


def test_equal_samples_are_one_file_with_equal_bytes(tmp_path):
    samples = tone(16_000).astype(np.float32)

    first, second = write_clip(tmp_path / "a", samples), write_clip(tmp_path / "b", samples)

    assert first.read_bytes() == second.read_bytes()
    assert clip_name(samples) != clip_name(-samples)


def test_a_clip_that_is_there_is_left_alone_and_a_cut_one_is_mended(tmp_path):
    samples = tone(16_000).astype(np.float32)
    path = write_clip(tmp_path, samples)
    written, before = path.read_bytes(), path.stat().st_mtime_ns

    assert write_clip(tmp_path, samples).stat().st_mtime_ns == before
    path.write_bytes(written[:100])
    assert write_clip(tmp_path, samples).read_bytes() == written
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_one_bad_file_spoils_no_other(tmp_path):
    good = put(tmp_path, "good.wav", WHOLE["24bit.wav"])
    bad = put(tmp_path, "bad.wav", b"<html>")
    os.mkfifo(tmp_path / "pipe.wav")
    ticks = []

    ready = prepare_clips(
        [good, bad, Source(good, 0.0, 0.5), good, tmp_path / "none.wav", tmp_path / "pipe.wav"],
        tmp_path / "clips",
        progress=lambda: ticks.append(1),
    )

    refused = [isinstance(each, AudioError) for each in ready]
    assert refused == [False, True, False, False, True, True]
    assert ready[0] == ready[3]
    assert ready[2].facts.seconds == 0.5
    assert {path.name for path in (tmp_path / "clips").iterdir()} == {ready[0].name, ready[2].name}
    assert len(ticks) == 5  # the file named twice is decoded once


def test_an_unchanged_file_is_not_decoded_again(tmp_path, monkeypatch):
    path = put(tmp_path, "a.wav", WHOLE["antiphase.wav"])
    first = prepare_clips([path], tmp_path / "clips")
    monkeypatch.setattr("core.audio.decode", lambda *_: pytest.fail("decoded again"))

    assert prepare_clips([path], tmp_path / "clips") == first


def test_a_replaced_file_or_a_lost_clip_is_decoded_again(tmp_path):
    path = put(tmp_path, "a.wav", WHOLE["24bit.wav"])
    (first,) = prepare_clips([path], tmp_path / "clips")

    (tmp_path / "clips" / first.name).unlink()
    assert prepare_clips([path], tmp_path / "clips") == [first]
    assert (tmp_path / "clips" / first.name).exists()
    put(tmp_path, "a.wav", wav(pcm(tone(16_000, peak=0.25))))
    assert prepare_clips([path], tmp_path / "clips")[0].name != first.name


def test_a_damaged_index_costs_one_decoding(tmp_path):
    path = put(tmp_path, "a.wav", WHOLE["24bit.wav"])
    first = prepare_clips([path], tmp_path / "clips")
    for entry in (tmp_path / "clips-index").iterdir():
        entry.write_bytes(b"{")

    assert prepare_clips([path], tmp_path / "clips") == first


@pytest.mark.shared
def test_the_published_dialogues_are_read_whole(shared):
    paths = sorted((shared / "data/speech_mentalmanip/audio").glob("*.mp3"))[:5]

    for path in paths:
        facts = read_clip(path).facts
        assert facts.format == "MP3"
        # MPEG frames of 1152 samples; encoders trim up to two of them at the ends.
        assert facts.seconds == pytest.approx(soundfile.info(path).duration, abs=0.06)
        assert -40 < facts.level_dbfs < -10
