"""Clips of variants lie among all clips, made once, with a reason where there is none."""

import numpy as np
import pytest
import soundfile

from core.audio import RATE_HZ, read_samples, write_clip
from core.variants.clips import silent, spoken, worse
from core.variants.degradation import Degradation, degradation


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "audio"


@pytest.fixture
def own(folder):
    """A quiet clip, a loud one, and one of digital silence."""
    time = np.arange(RATE_HZ) / RATE_HZ
    sounds = {"quiet": 0.05, "loud": 0.9, "nothing": 0.0}
    return {
        name: write_clip(folder, (peak * np.sin(2 * np.pi * 300 * time)).astype(np.float32)).name
        for name, peak in sounds.items()
    }


def made(own, folder, said, seed=0):
    return worse(own, degradation(said), folder, seed=seed, index=folder.with_name("index"))


def test_silence_is_as_long_as_the_clip_it_stands_for(own, folder):
    found = silent({"quiet": own["quiet"]}, folder)
    samples = read_samples(folder / found.clips["quiet"])

    assert len(samples) == RATE_HZ
    assert not samples.any()


def test_a_clip_that_is_silence_already_has_a_reason_and_no_silent_variant(own, folder):
    found = silent(own, folder)

    assert set(found.clips) == {"quiet", "loud"}
    assert found.reasons == {"nothing": "its own clip is digital silence already"}


def test_a_change_that_changes_nothing_is_no_variant(own, folder):
    found = made({"nothing": own["nothing"]}, folder, "level:-12")

    assert found.clips == {}
    assert found.reasons["nothing"].startswith("the changed clip is the item's own")


def test_noise_is_the_items_own_and_the_same_each_time(own, folder):
    twice = {"one": own["quiet"], "two": own["quiet"]}
    first = made(twice, folder, "noise:10")

    assert first.clips["one"] != first.clips["two"]
    assert made(twice, folder, "noise:10") == first
    assert made(twice, folder, "noise:10", seed=1).clips["one"] != first.clips["one"]


def test_a_clip_made_before_is_not_made_again(own, folder, monkeypatch):
    first = made(own, folder, "telephone")
    monkeypatch.setattr("core.variants.clips.degraded", None)

    assert made(own, folder, "telephone") == first


def test_a_clip_that_was_deleted_is_made_again(own, folder):
    first = made(own, folder, "speed:0.9")
    (folder / first.clips["loud"]).unlink()

    assert made(own, folder, "speed:0.9") == first
    assert (folder / first.clips["loud"]).exists()


def test_silence_in_noise_has_a_reason(own, folder):
    found = made(own, folder, "noise:10")

    assert found.reasons == {"nothing": "digital silence has no ratio to noise"}


def test_a_rise_that_full_scale_stopped_is_told_with_what_was_reached(own, folder):
    found = made(own, folder, "level:+12")

    # A peak of 0.9 has 0.92 dB of room.
    assert found.scaled_db == {"loud": pytest.approx(0.92 - 12, abs=0.01)}
    assert found.notes == [
        "level +12 dB: 1 of 3 clips would have gone beyond full scale and were scaled to it as a "
        "whole, not clipped; they got +0.9 dB at the median."
    ]


def test_clips_are_the_files_that_models_are_given(own, folder):
    found = made(own, folder, "speed:1.1")
    facts = soundfile.info(folder / found.clips["quiet"])

    assert (facts.samplerate, facts.channels, facts.subtype) == (RATE_HZ, 1, "FLOAT")


def test_words_that_come_instead_of_sound_are_the_reason(own, folder):
    sounds = [("quiet", np.ones(1600, np.float32)), ("loud", "it could not be spoken")]
    found = spoken(own, sounds, folder)

    assert list(found.clips) == ["quiet"]
    assert found.reasons == {"loud": "it could not be spoken"}


def test_each_change_has_a_meaning_a_reader_understands():
    assert Degradation("level", -12.0).meaning == "level -12 dB"
    assert Degradation("telephone").meaning == "band of 300 to 3400 Hz"
