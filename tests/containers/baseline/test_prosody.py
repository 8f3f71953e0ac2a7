"""Prosody of signals whose prosody is known."""

from __future__ import annotations

import numpy as np
import pytest

from containers.baseline.prosody import prosody

RATE_HZ = 16_000


def voice(pitch_hz, syllables_per_s=4.0, seconds=4.0, noise=0.001, level=0.1, seed=0):
    """A harmonic tone in bursts: as many a second as there would be syllables."""
    time = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    pitch = np.broadcast_to(pitch_hz, time.shape)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE_HZ
    tone = np.sum([np.sin(k * phase) / k for k in range(1, 10)], axis=0)
    envelope = np.sin(np.pi * syllables_per_s * time) ** 2
    hiss = np.random.default_rng(seed).normal(0, noise, len(time))
    return (level * tone * envelope + hiss).astype("f4")


@pytest.mark.parametrize("pitch_hz", [90, 120, 210, 320])
def test_pitch_is_right_within_a_percent(pitch_hz):
    assert prosody(voice(pitch_hz)).pitch_hz == pytest.approx(pitch_hz, rel=0.01)


def test_a_steady_pitch_has_no_spread_and_a_gliding_one_that_of_its_glide():
    # An octave up at an even pace in semitones: the standard deviation is 12 / sqrt(12).
    glide = 120 * 2 ** np.linspace(0, 1, 4 * RATE_HZ)
    assert prosody(voice(150)).pitch_spread_st < 0.1
    assert prosody(voice(glide)).pitch_spread_st == pytest.approx(12 / np.sqrt(12), rel=0.05)


@pytest.mark.parametrize("rate", [2.5, 4.0, 5.5])
def test_the_rate_is_that_of_the_bursts(rate):
    assert prosody(voice(150, rate)).syllables_per_s == pytest.approx(rate, abs=0.4)


def test_a_pause_counts_and_silence_around_the_speech_does_not():
    gap = np.zeros(2 * RATE_HZ, dtype="f4")
    speech = voice(150, seconds=2)
    broken = prosody(np.concatenate([speech, gap, speech]))
    padded = prosody(np.concatenate([gap, speech, speech, gap]))
    assert broken.pause_share == pytest.approx(2 / 6, abs=0.03)
    assert padded.pause_share == 0


def test_noise_in_the_voice_lowers_its_harmonicity():
    assert prosody(voice(150, noise=0.02)).hnr_db < prosody(voice(150)).hnr_db - 3


def test_loudness_changes_the_level_and_nothing_else():
    quiet, loud = prosody(voice(150, level=0.05, noise=0)), prosody(voice(150, level=0.4, noise=0))
    assert loud.level_dbfs - quiet.level_dbfs == pytest.approx(18.06, abs=0.1)
    for measure in ("pitch_hz", "level_spread_db", "syllables_per_s", "alpha_db", "hnr_db"):
        assert getattr(loud, measure) == pytest.approx(getattr(quiet, measure), rel=1e-3)


def test_an_offset_does_no_harm():
    assert prosody(voice(150) + np.float32(0.3)).pitch_hz == pytest.approx(150, rel=0.01)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(RATE_HZ),
        np.zeros(1),
        np.full(RATE_HZ, 0.5),
        np.random.default_rng(0).normal(0, 0.1, 3 * RATE_HZ),
        1e-5 * voice(150),
    ],
    ids=["silence", "one sample", "a constant", "white noise", "far below the noise floor"],
)
def test_where_there_is_no_voice_there_is_no_prosody(samples):
    assert prosody(np.asarray(samples, dtype="f4")) is None


def test_a_long_clip_measures_as_its_parts_do():
    # More frames than one block holds.
    long = prosody(np.tile(voice(150), 8))
    assert long.pitch_hz == pytest.approx(150, rel=0.01)
    assert long.syllables_per_s == pytest.approx(4, abs=0.4)
