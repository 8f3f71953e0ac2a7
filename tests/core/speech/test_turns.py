import numpy as np
import pytest
import soundfile

from core.speech.engine import Sound, SpeechError
from core.speech.turns import Tally, spoken_turn, write_flac
from tests.core.speech.tones import RATE_HZ, Hummer, tone


def test_an_unchanged_turn_is_spoken_once(tmp_path):
    engine, tally = Hummer(), Tally()

    first = spoken_turn(engine, "Hello there.", "a", tmp_path, tally)
    again = spoken_turn(engine, "Hello there.", "a", tmp_path, tally)

    assert len(engine.asked) == 1
    assert np.array_equal(first.samples, again.samples)
    assert (tally.spoken, tally.kept, tally.characters) == (1, 1, 12)


def test_a_changed_line_or_voice_is_spoken_anew(tmp_path):
    engine = Hummer()

    for text, voice in (("Hello there.", "a"), ("Hello, there.", "a"), ("Hello there.", "b")):
        spoken_turn(engine, text, voice, tmp_path)

    assert len(engine.asked) == 3


@pytest.mark.parametrize("text", ["", "...", " -- ", "?!"])
def test_a_turn_without_a_word_is_not_sent(tmp_path, text):
    engine = Hummer()

    assert spoken_turn(engine, text, "a", tmp_path) is None
    assert engine.asked == []


def test_a_suspiciously_short_result_is_asked_for_once_more(tmp_path):
    engine = Hummer(answers=[Sound(tone(0.05), RATE_HZ), Sound(tone(2.0), RATE_HZ)])

    sound = spoken_turn(engine, "I never said that to anyone.", "a", tmp_path)

    assert sound.seconds == 2.0


def test_a_result_that_stays_too_short_is_a_failure_and_is_not_kept(tmp_path):
    engine = Hummer(answers=[Sound(tone(0.05), RATE_HZ)] * 2)

    with pytest.raises(SpeechError, match=r"hummer, voice a, .*0\.05 s of sound for 22 letters"):
        spoken_turn(engine, "I never said that to anyone.", "a", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_silence_is_no_answer(tmp_path):
    engine = Hummer(answers=[Sound(np.zeros(RATE_HZ, np.float32), RATE_HZ)] * 2)

    with pytest.raises(SpeechError, match="silence, then silence"):
        spoken_turn(engine, "Hello.", "a", tmp_path)


def test_peaks_over_full_scale_are_scaled_not_clipped(tmp_path):
    write_flac(tmp_path / "loud.flac", Sound(tone(1.0, amplitude=1.6), RATE_HZ))

    samples, _ = soundfile.read(tmp_path / "loud.flac")
    assert np.corrcoef(samples, tone(1.0))[0, 1] > 0.99999


def test_a_small_file_has_its_noise_60_db_under_the_speech(tmp_path):
    speech_like = np.random.default_rng(0).normal(0, 0.07, RATE_HZ).astype(np.float32)
    write_flac(tmp_path / "plain.flac", Sound(speech_like, RATE_HZ))
    write_flac(tmp_path / "small.flac", Sound(speech_like, RATE_HZ), small=True)

    noise = soundfile.read(tmp_path / "small.flac")[0] - speech_like
    assert 20 * np.log10(speech_like.std() / noise.std()) > 59
    plain, small = ((tmp_path / f"{n}.flac").stat().st_size for n in ("plain", "small"))
    assert small < 0.85 * plain
