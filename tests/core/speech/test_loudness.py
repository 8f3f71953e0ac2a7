import numpy as np
import pytest

from core.speech.loudness import level_lufs, levelled, trimmed, true_peak_dbtp
from tests.core.speech.tones import RATE_HZ, tone


def test_a_full_scale_997_hz_tone_measures_as_the_standard_says():
    # BS.1770-4: 0 dBFS at 997 Hz in one channel reads -3.01 LKFS; EBU Tech 3341 allows 0.1 LU.
    assert level_lufs(tone(3.0, amplitude=1.0, rate_hz=48_000), 48_000) == pytest.approx(
        -3.01, abs=0.1
    )


@pytest.mark.parametrize("seconds", [0.15, 0.39, 0.4, 3.0])
def test_turns_of_any_length_come_to_minus_23(seconds):
    quiet = levelled(tone(seconds, amplitude=0.003), RATE_HZ)

    assert level_lufs(quiet, RATE_HZ) == pytest.approx(-23, abs=0.01)


def test_a_peaky_sound_stays_under_the_ceiling_and_keeps_its_shape():
    clicks = 0.001 * tone(2.0)
    clicks[::4000] = 0.5

    louder = levelled(clicks, RATE_HZ)

    assert true_peak_dbtp(louder, RATE_HZ) <= -1 + 1e-6
    assert level_lufs(louder, RATE_HZ) < -23
    assert np.corrcoef(louder, clicks)[0, 1] == pytest.approx(1)


def test_a_peak_between_two_samples_is_seen():
    # A quarter of the rate, sampled 45 degrees off its crests: samples reach 0.707, the wave 1.
    at = np.arange(RATE_HZ)
    wave = np.sin(np.pi / 2 * at + np.pi / 4).astype(np.float32)

    assert np.abs(wave).max() == pytest.approx(0.7071, abs=1e-4)
    assert true_peak_dbtp(wave, RATE_HZ) == pytest.approx(0, abs=0.3)


def test_silence_has_no_level_and_stays_silence():
    silence = np.zeros(RATE_HZ, np.float32)

    assert level_lufs(silence, RATE_HZ) == -np.inf
    assert np.array_equal(levelled(silence, RATE_HZ), silence)


def test_silence_at_the_edges_goes_but_for_a_margin():
    padded = np.concatenate([np.zeros(8000), tone(1.0), np.zeros(4000)]).astype(np.float32)

    assert len(trimmed(padded, RATE_HZ, edge_s=0.03)) == pytest.approx(RATE_HZ + 2 * 480, abs=4)
    assert len(trimmed(np.zeros(100, np.float32), RATE_HZ)) == 0
