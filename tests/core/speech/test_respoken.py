"""The same words by a neutral voice, at one loudness, with a reason where there are none."""

import numpy as np
import pytest

from core.speech.engine import SpeechError
from core.speech.loudness import TARGET_LUFS, level_lufs
from core.speech.respoken import neutral_voice, respoken
from core.variants.partners import gender_of
from tests.core.speech.tones import Hummer

ROWS = [
    {"item_id": "a", "transcript": "I could not sleep at all.", "gender": "female"},
    {"item_id": "b", "transcript": "I could not sleep at all.", "gender": "male"},
    {"item_id": "c", "transcript": " ... "},
    {"item_id": "d", "transcript": "It was a good week for me."},
]


def test_each_gender_has_one_voice_and_nobody_is_spoken_by_their_own():
    assert neutral_voice("female", None).name == neutral_voice(None, None).name == "heart"
    assert neutral_voice("male", "george").name == "michael"
    assert neutral_voice("female", "heart").gender == "female"
    assert neutral_voice("female", "heart").name != "heart"
    assert neutral_voice("unsaid", None).name == "heart"


def test_every_item_comes_with_sound_or_with_its_reason(tmp_path):
    engine = Hummer()
    found = dict(respoken(engine, ROWS, gender_of, tmp_path))

    assert list(found) == ["a", "b", "c", "d"]
    assert found["c"] == "its transcript has no word to speak"
    assert {voice for _, voice in engine.asked[1:]} == {"af_heart", "am_michael"}
    for item_id in "abd":
        assert level_lufs(found[item_id], 16_000) == pytest.approx(TARGET_LUFS, abs=0.2)


def test_what_was_spoken_is_not_spoken_again(tmp_path):
    first = dict(respoken(Hummer(), ROWS, gender_of, tmp_path))
    engine = Hummer()
    again = dict(respoken(engine, ROWS, gender_of, tmp_path))

    assert engine.asked == []
    assert np.array_equal(first["a"], again["a"])


def test_an_engine_that_is_not_here_is_an_error_and_not_a_reason_for_each_item(tmp_path):
    class Absent(Hummer):
        def speak(self, text, voice):
            raise SpeechError("hibari-tts==0.2.1 is not installed: pip install -e '.[tts]'.")

    with pytest.raises(SpeechError, match=r"pip install -e '\.\[tts\]'"):
        list(respoken(Absent(), ROWS, gender_of, tmp_path))


def test_a_text_the_engine_cannot_speak_is_the_reason_of_its_items_alone(tmp_path):
    class Choosy(Hummer):
        def speak(self, text, voice):
            if "week" in text:
                raise SpeechError("Nothing to pronounce.")
            return super().speak(text, voice)

    found = dict(respoken(Choosy(), ROWS, gender_of, tmp_path))

    assert found["d"] == "Nothing to pronounce."
    assert not isinstance(found["a"], str)
