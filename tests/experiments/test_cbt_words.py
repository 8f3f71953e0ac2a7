import pandas as pd
import pytest

from core.speech.transcription import Diarization, Transcription
from core.words import Stretch
from experiments import cbt_words
from experiments.settings import ROOT
from tests.core.datasets.releases import write_recording
from tests.core.datasets.spoken import said
from validation.schemas import validated
from validation.spoken import words as words_schema


@pytest.fixture
def make(tmp_path):
    write_recording(tmp_path / "recordings" / "001.wav", 5.0)
    write_recording(tmp_path / "recordings" / "002.wav", 6.0)
    asked = []

    def transcriber(samples):
        asked.append(len(samples) / 16_000)
        words = said(("A", 0.0, 2.0, "How are you?"), ("B", 2.5, 4.0, "Tired."))
        heard = Diarization((Stretch(0.0, 2.0, "A"), Stretch(2.5, 4.0, "B")), ())
        return Transcription(words, heard, "Thank you.")

    def run(**options):
        words = {
            "recordings": tmp_path / "recordings",
            "output": tmp_path / "words",
            "track": "false",
            **options,
        }
        return cbt_words.main(
            [w for k, v in words.items() for w in (f"--{k}", str(v))], transcriber
        )

    run.asked = asked
    return run


def test_each_recording_becomes_a_table_of_words(make, tmp_path, capsys):
    assert make() == 0

    path = tmp_path / "words" / "001.parquet"
    assert len(validated(pd.read_parquet(path), words_schema(), str(path))) == 4
    speech = pd.read_csv(tmp_path / "words" / "speech" / "002.csv")
    assert list(speech["speaker"]) == ["A", "B"]
    assert "001: 4 words, 2 speakers, 5 s; taken out, since nobody speaks there: 'Thank you.'" in (
        capsys.readouterr().out
    )


def test_a_recording_is_transcribed_once_and_again_when_it_changed(make, tmp_path):
    make()
    make()
    assert make.asked == [5.0, 6.0]

    write_recording(tmp_path / "recordings" / "002.wav", 7.0)
    make()
    assert make.asked == [5.0, 6.0, 7.0]


def test_a_file_that_is_no_sound_is_named_and_the_others_done(make, tmp_path, capsys):
    (tmp_path / "recordings" / "001.wav").write_text("<html>")

    assert make() == 1
    assert "001: failed: " in capsys.readouterr().out
    assert (tmp_path / "words" / "002.parquet").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"recordings": "nowhere"}, "recordings: there is no folder 'nowhere'."),
        ({"recordings": ROOT / "core" / "prompts" / "ssr"}, "ssr has no recording."),
        ({"asr": "cloud"}, "asr: expected one of offline, whisperx, found 'cloud'."),
        ({"threads": "0"}, "threads: expected 1 or more, found '0'."),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(make, capsys, options, said):
    assert make(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_words_of_another_recording_of_the_name_do_not_stay(make, tmp_path):
    make()
    (tmp_path / "recordings" / "001.wav").write_text("<html>")

    assert make() == 1
    assert not (tmp_path / "words" / "001.parquet").exists()
    assert (tmp_path / "words" / "002.parquet").exists()


def test_two_recordings_of_one_name_are_refused(make, tmp_path, capsys):
    write_recording(tmp_path / "recordings" / "001.flac", 5.0)

    assert make() == 2
    assert "two files are named '001'" in capsys.readouterr().err
