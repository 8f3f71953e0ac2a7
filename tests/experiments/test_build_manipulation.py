import json
from hashlib import sha256

import pytest
import soundfile

from core.dataset import read_dataset
from experiments import build_manipulation
from tests.core.speech.tones import Hummer, tone

ROWS = (
    "ID,Dialogue,Manipulative,Technique,Vulnerability\r\n"
    '1,"Person1: You were late.\nPerson2: I know that.",0,,\r\n'
    '2,"Person1: Are you coming?\nPerson2: \nPerson1: Answer me.",1,"Accusation,Intimidation",Naivete\r\n'
    '3,"Person1: I miss you all.\nPerson1: And you?\nPerson2: ...",1,,\r\n'
)


class Kokoro(Hummer):
    """Hums with Kokoro's voices."""

    name = "kokoro"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mentalmanip.csv"
    path.write_bytes(ROWS.encode())
    return path


@pytest.fixture
def build(source, tmp_path, monkeypatch):
    monkeypatch.setattr(build_manipulation, "Kokoro", Kokoro)

    def run(**options):
        words = {
            "source": source,
            "output": tmp_path / "set",
            "turns": tmp_path / "turns",
            **options,
        }
        return build_manipulation.main(
            [w for name, v in words.items() for w in (f"--{name}", str(v))]
        )

    return run


def test_a_limit_of_0_counts_and_writes_nothing(build, tmp_path, capsys):
    assert build(tts="kokoro", limit=0) == 0

    said = capsys.readouterr().out
    assert (
        "3 dialogues (2 manipulative, 1 not), 8 turns (up to 3, 1 empty), 1 with a speaker" in said
    )
    assert "Accusation" in said
    assert not (tmp_path / "set").exists()


def test_a_row_that_is_not_understood_makes_the_exit_code_1(build, source, capsys):
    source.write_bytes((ROWS + "4,Hello,1,,\r\n").encode())

    assert build(limit=0) == 1
    assert (
        "mentalmanip.csv, row 4 (line 10), id 4, Dialogue: expected lines"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source": "nowhere.csv"}, "source: there is no file 'nowhere.csv'."),
        ({"tts": "hal"}, "tts: expected one of none, kokoro, elevenlabs, found 'hal'."),
        ({"limit": "-1"}, "limit: expected a whole number of 0 or more, found '-1'."),
        ({"workers": "0"}, "workers: expected 1 or more, found '0'."),
        ({"audio": "nowhere"}, "audio: there is no folder 'nowhere'."),
        (
            {"audio": ".", "tts": "kokoro"},
            "audio and tts: give one of them, the clips or who speaks them.",
        ),
    ],
)
def test_a_wrong_value_ends_with_one_sentence_and_code_2(build, capsys, options, said):
    assert build(**options) == 2
    assert capsys.readouterr() == ("", f"build_manipulation: {said}\n")


def test_a_paid_engine_is_not_asked_before_its_cost_is_allowed(
    build, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("ELEVENLABS_API_KEY", "sk_test")
    paid = Kokoro()
    paid.name = "elevenlabs"
    monkeypatch.setattr(build_manipulation, "ElevenLabs", lambda: paid)

    assert build(tts="elevenlabs") == 2
    assert capsys.readouterr().err == (
        "build_manipulation: max_characters: 74 characters would be sent to ElevenLabs, about 0.02 "
        "dollars at 0.3 for 1,000; allow it with max_characters=74.\n"
    )
    assert paid.asked == []
    assert build(tts="elevenlabs", max_characters=74) == 0
    assert "6 turns spoken (74 characters)" in capsys.readouterr().out
    assert build(tts="elevenlabs") == 0, "nothing is left to be sent"


def test_elevenlabs_without_a_key_ends_before_any_work(build, monkeypatch, capsys):
    monkeypatch.delenv("ELEVENLABS_API_KEY", raising=False)

    assert build(tts="elevenlabs") == 2
    assert capsys.readouterr().err.startswith("build_manipulation: ElevenLabs needs a key")


def test_spoken_dialogues_become_a_dataset_that_can_be_read(build, tmp_path):
    assert build(tts="kokoro") == 0

    dataset = read_dataset(tmp_path / "set", "manipulation", manifest="dialogues")
    assert list(dataset.items["label"]) == ["NO", "YES", "YES"]
    assert list(dataset.items["techniques"]) == [None, "Accusation,Intimidation", None]
    assert (
        dataset.items["transcript"][1] == "Person1: Are you coming?\nPerson2: \nPerson1: Answer me."
    )
    assert dataset.synthetic
    assert dataset.about["source_sha256"] == sha256(ROWS.encode()).hexdigest()
    for audio, seconds in zip(dataset.items["audio"], dataset.items["seconds"], strict=True):
        assert soundfile.info(tmp_path / "set" / audio).duration == pytest.approx(seconds, abs=1e-3)


def test_a_dataset_names_the_rows_it_was_built_without(build, source, tmp_path):
    source.write_bytes((ROWS + "4,Hello,1,,\r\n").encode())

    assert build(tts="kokoro") == 1
    about = read_dataset(tmp_path / "set", "manipulation", manifest="dialogues").about
    assert [row[:32] for row in about["rows_not_understood"]] == [
        "mentalmanip.csv, row 4 (line 10)"
    ]


def test_building_again_gives_the_same_bytes(build, tmp_path):
    build(tts="kokoro")
    build(tts="kokoro", output=tmp_path / "again", turns=tmp_path / "other turns")

    def contents(folder):
        return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    assert contents(tmp_path / "set") == contents(tmp_path / "again")


def test_existing_clips_are_taken_as_they_are(build, tmp_path, capsys):
    given = tmp_path / "given"
    given.mkdir()
    for name in ("2_composed_amanda_mark.mp3", "1_composed_sassy_mark.mp3", "8_composed_a_b.mp3"):
        soundfile.write(given / name, tone(1.0), 16_000, format="WAV")

    assert build(audio=given) == 1

    dataset = read_dataset(tmp_path / "set", "manipulation", manifest="dialogues")
    assert list(dataset.items["item_id"]) == ["1", "2"]
    assert list(dataset.items["voices"]) == ["sassy,mark", "amanda,mark"]
    assert dataset.about["dialogues_without_a_clip"] == 1
    assert "left out: 8_composed_a_b.mp3: no dialogue 8" in capsys.readouterr().out


def test_clips_of_dialogues_beyond_the_limit_are_not_asked_for(build, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    for number in (1, 3):
        soundfile.write(given / f"{number}_composed_amanda_mark.wav", tone(1.0), 16_000)

    assert build(audio=given, limit=1) == 0
    assert json.loads((tmp_path / "set" / "dataset.json").read_text())["left_out"] == {}


@pytest.mark.shared
def test_the_studys_50_clips_are_25_of_each_label(shared, tmp_path):
    arguments = {
        "source": shared / "data" / "mentalmanip" / "mentalmanip_con.csv",
        "audio": shared / "data" / "speech_mentalmanip" / "audio",
        "output": tmp_path / "set",
    }

    assert (
        build_manipulation.main([w for n, v in arguments.items() for w in (f"--{n}", str(v))]) == 0
    )

    items = read_dataset(tmp_path / "set", "manipulation", manifest="dialogues").items
    assert items["label"].value_counts().to_dict() == {"YES": 25, "NO": 25}
    assert set(",".join(items["voices"]).split(",")) == {
        "amanda",
        "grandma",
        "grandpa",
        "ivanna",
        "mark",
        "sassy",
    }
