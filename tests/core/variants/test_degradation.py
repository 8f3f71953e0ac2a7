"""Signal checks of each change: what was asked for is what the samples hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import welch

from core.audio import RATE_HZ
from core.variants.degradation import (
    Degradation,
    UnchangedError,
    degradation,
    degraded,
    sped,
    telephone,
    with_noise,
)


def tone(hz, seconds=1.0, peak=0.1):
    return (peak * np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE_HZ)) / RATE_HZ)).astype(
        np.float32
    )


def white(seconds=2.0, level=0.05):
    drawn = np.random.default_rng(1).standard_normal(int(seconds * RATE_HZ))
    return (level * drawn).astype(np.float32)


def noise():
    return np.random.default_rng(7)


def decibel(one, other):
    return 10 * np.log10(np.square(one, dtype=float).mean() / np.square(other, dtype=float).mean())


@settings(max_examples=40, deadline=None)
@given(st.floats(-20, 60), st.integers(1600, 20_000), st.floats(0.001, 1.0))
def test_the_ratio_of_signal_to_noise_is_the_one_asked_for(snr_db, samples, peak):
    clip = tone(220, peak=peak)[:samples]

    added = with_noise(clip, snr_db, noise()) - clip

    assert decibel(clip, added) == pytest.approx(snr_db, abs=1e-6)


def test_the_ratio_holds_where_noise_would_go_beyond_full_scale():
    clip = tone(220, peak=0.9)

    found = degraded(clip, Degradation("noise", 0.0), noise)

    assert np.abs(found.samples).max() == pytest.approx(1.0)
    whole = with_noise(clip, 0.0, noise())
    assert found.samples == pytest.approx(whole / np.abs(whole).max(), abs=1e-6)
    assert found.scaled_db == pytest.approx(-20 * np.log10(np.abs(whole).max()))


def test_two_ratios_differ_in_the_ratio_only():
    clip = tone(220)
    loud, soft = (with_noise(clip, snr, noise()) - clip for snr in (0.0, 20.0))

    assert loud == pytest.approx(10 * soft)


def test_silence_has_no_ratio_to_noise():
    with pytest.raises(UnchangedError, match="silence"):
        degraded(np.zeros(1600, np.float32), Degradation("noise", 10.0), noise)


def test_a_telephone_passes_its_band_and_nothing_else():
    clip = white()
    # Without detrending, which would take the lowest of the band from both.
    measured = {"nperseg": 1024, "window": "blackman", "detrend": False}
    hz, before = welch(clip, RATE_HZ, **measured)
    _, after = welch(telephone(clip), RATE_HZ, **measured)
    change = 10 * np.log10(after / before)

    assert np.abs(change[(hz > 400) & (hz < 3300)]).max() < 0.1
    assert change[(hz < 150) | (hz > 3550)].max() < -50


def test_a_telephone_neither_delays_nor_shortens():
    clip = tone(1000)
    heard = telephone(clip)

    assert len(heard) == len(clip)
    middle = slice(2000, -2000)
    assert heard[middle] == pytest.approx(clip[middle], abs=1e-4)


@pytest.mark.parametrize("factor", [0.9, 1.1, 2.0])
def test_speed_changes_duration_and_pitch_together(factor):
    found = sped(tone(440, seconds=2.0), factor)

    assert len(found) == pytest.approx(2.0 * RATE_HZ / factor, abs=1)
    spectrum = np.abs(np.fft.rfft(found * np.hanning(len(found))))
    peak_hz = np.argmax(spectrum) * RATE_HZ / len(found)
    assert peak_hz == pytest.approx(440 * factor, abs=1)


def test_a_clip_that_speed_would_make_too_short_says_so():
    with pytest.raises(UnchangedError, match=r"0\.15 s at 2 times the speed are under 0\.1 s"):
        sped(tone(440, seconds=0.15), 2.0)


@pytest.mark.parametrize("level_db", [-12.0, 12.0])
def test_level_changes_by_as_much_where_there_is_room(level_db):
    clip = tone(440, peak=0.1)
    found = degraded(clip, Degradation("level", level_db), noise)

    assert decibel(found.samples, clip) == pytest.approx(level_db, abs=1e-4)
    assert found.scaled_db == 0.0


def test_a_rise_beyond_full_scale_is_less_of_a_rise_and_never_a_clipped_wave():
    # A peak of 0.5 has 6.02 dB of room.
    clip = tone(440, peak=0.5)
    found = degraded(clip, Degradation("level", 12.0), noise)

    assert decibel(found.samples, clip) == pytest.approx(6.02, abs=0.01)
    assert found.scaled_db == pytest.approx(6.02 - 12, abs=0.01)
    assert found.samples == pytest.approx(clip / np.abs(clip).max(), abs=1e-6)


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ("noise:10", "noise_10"),
        ("noise:-5", "noise_minus_5"),
        ("noise:-0", "noise_0"),
        ("Telephone", "telephone"),
        (" speed:0.90", "speed_0.9"),
        ("level:+12", "level_12"),
        ("level:-12", "level_minus_12"),
    ],
)
def test_what_is_asked_for_has_a_name_without_a_minus_sign(said, slug):
    assert degradation(said).slug == slug


@pytest.mark.parametrize(
    "said",
    [
        *("noise", "noise:", "noise:99", "noise:nan", "noise:1e1", "telephone:8", "speed:1"),
        *("speed:1.0", "speed:0", "speed:-1.1", "level:0", "level:+41", "level:12 dB", "echo:3"),
        *("", "level:٣"),
    ],
)
def test_what_cannot_be_meant_is_refused(said):
    assert degradation(said) is None


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["noise:0", "noise:20", "telephone", "speed:0.9", "speed:1.1", "level:12"]),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50),
)
def test_no_sound_leaves_full_scale_or_loses_a_sample_to_nan(said, shape):
    clip = np.resize(np.array(shape, np.float32), 3200)
    try:
        found = degraded(clip, degradation(said), noise)
    except UnchangedError:
        assert not clip.any()
        return

    assert found.samples.dtype == np.float32
    assert np.isfinite(found.samples).all()
    assert np.abs(found.samples).max() <= 1
    assert found.scaled_db <= 0
