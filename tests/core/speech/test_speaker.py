"""The features a voice's vector is computed from."""

import numpy as np

from core.speech.speaker import filterbanks


def test_a_frame_begins_every_ten_milliseconds_and_the_last_is_whole():
    assert filterbanks(np.zeros(400 + 3 * 160 + 159)).shape == (4, 80)


def test_a_pure_tone_is_loudest_in_its_own_band():
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)

    loudest = filterbanks(tone).argmax(axis=1)

    # 80 bands equally wide between 31.75 mel (20 Hz) and 2840.02 mel (8 kHz); 1 kHz is
    # 999.99 mel, (999.99 - 31.75) / (2808.27 / 81) = 27.93: nearest the centre of the 28th.
    assert set(loudest) == {27}


def test_silence_has_the_floor_of_single_precision():
    assert np.allclose(filterbanks(np.zeros(400)), np.log(np.finfo(np.float32).eps))
