import pandas as pd

from core.speech.transcription import Diarization, transcribe
from core.words import Stretch
from tests.core.datasets.spoken import said
from tests.core.speech.tones import tone


def test_words_get_their_speakers_and_text_over_silence_goes(tmp_path):
    recognised = said(
        (None, 0.0, 2.0, "How are you?"), (None, 2.5, 4.0, "Tired."), (None, 8.0, 9.0, "Thank you.")
    )
    heard = Diarization((Stretch(0.0, 2.2, "A"), Stretch(2.4, 4.2, "B")), ((0.1, 2.0), (2.6, 4.0)))

    done = transcribe(tone(10.0), lambda samples: recognised, lambda samples: heard)

    assert list(zip(done.words["word"], done.words["speaker"], strict=True)) == [
        ("How", "A"),
        ("are", "A"),
        ("you?", "A"),
        ("Tired.", "B"),
    ]
    assert done.words["start_s"][0] == 0.1
    assert done.over_silence == "Thank you."


def test_where_nobody_speaks_no_word_is_left():
    recognised = said((None, 0.0, 2.0, "Thanks for watching!"))

    done = transcribe(tone(3.0), lambda samples: recognised, lambda samples: Diarization((), ()))

    assert done.words.empty
    assert isinstance(done.words, pd.DataFrame)
