import json
from collections import Counter
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import soundfile

from core.dataset import read_dataset
from core.datasets.roleplay import TextSourceError, read_dialogues, read_sessions
from experiments import render_demo

DEMO = Path(__file__).resolve().parents[2] / "demo"
TECHNIQUES = {
    "Accusation",
    "Brandishing Anger",
    "Denial",
    "Evasion",
    "Feigning Innocence",
    "Intimidation",
    "Persuasion or Seduction",
    "Playing Servant Role",
    "Playing Victim Role",
    "Rationalization",
    "Shaming or Belittlement",
}
needs_tts = pytest.mark.skipif(find_spec("hibari") is None, reason="needs the tts extra")


def test_the_distress_set_has_every_level_arc_and_voice():
    demo = read_dataset(DEMO / "distress", "distress", manifest="turns")

    assert Counter(demo.items["label"]) == dict.fromkeys((1, 2, 3, 4, 5), 6)
    assert set(demo.about["arcs"].values()) == {"rising", "falling", "up and down"}
    assert len(set(demo.items["voice"])) == 4
    assert demo.synthetic


def test_the_dialogues_are_half_manipulative_with_all_eleven_techniques():
    demo = read_dataset(DEMO / "manipulation", "manipulation", manifest="dialogues")

    assert Counter(demo.items["label"]) == {"YES": 6, "NO": 6}
    named = demo.items["techniques"].dropna().str.split(",").explode()
    assert set(named) == TECHNIQUES
    assert demo.synthetic


def test_manifests_hold_the_words_of_the_text_sources():
    turns = pd.read_csv(DEMO / "distress" / "manifest.csv")
    written = [t for s in read_sessions(DEMO / "distress") for t in s.turns if t.level]
    dialogues = read_dialogues(DEMO / "manipulation" / "dialogues.toml")

    assert list(turns["transcript"]) == [turn.text for turn in written]
    composed = pd.read_csv(DEMO / "manipulation" / "manifest.csv")["transcript"]
    assert list(composed) == [dialogue.transcript for dialogue in dialogues]


def test_no_context_holds_the_turn_it_comes_before():
    turns = pd.read_csv(DEMO / "distress" / "manifest.csv")

    assert not any(t in c for t, c in zip(turns["transcript"], turns["context"], strict=True))
    assert max(len(context.splitlines()) for context in turns["context"]) == 3


def test_the_audio_is_16_khz_mono_and_under_3_mb():
    clips = sorted(DEMO.glob("*/audio/*.flac"))

    assert len(clips) == 42
    assert sum(clip.stat().st_size for clip in clips) < 3_000_000
    for clip in clips:
        facts = soundfile.info(clip)
        assert (facts.samplerate, facts.channels, facts.subtype) == (16_000, 1, "PCM_16")


def test_the_times_beside_a_dialogue_cover_its_turns():
    for sidecar in sorted(DEMO.glob("manipulation/audio/*.turns.json")):
        about = json.loads(sidecar.read_text())
        frames = soundfile.info(sidecar.with_suffix("").with_suffix(".flac")).frames
        assert about["turns"][-1]["end_s"] == pytest.approx(frames / 16_000)
        for turn, following in zip(about["turns"], about["turns"][1:], strict=False):
            assert following["start_s"] - turn["end_s"] == pytest.approx(0.2)
            assert turn["voice"] != following["voice"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sources", "nowhere"], "sources: there is no folder 'nowhere'."),
        (["--listen", "perhaps"], "listen: expected true or false, found 'perhaps'."),
        (["--voice", "heart"], "unrecognized arguments: --voice heart; see --help."),
    ],
)
def test_a_wrong_value_ends_with_one_sentence_and_code_2(options, said, capsys):
    assert render_demo.main(options) == 2
    assert capsys.readouterr().err == f"render_demo: {said}\n"


def test_a_patient_turn_without_a_level_is_refused_by_file_and_turn(tmp_path):
    (tmp_path / "session_1.toml").write_text(
        'session_id = "s"\narc = "rising"\npatient_voice = "heart"\n'
        '[[turn]]\nrole = "patient"\ntext = "Hello."\n'
    )

    with pytest.raises(
        TextSourceError, match=r"session_1\.toml, turn 1: expected a level of 1 to 5"
    ):
        read_sessions(tmp_path)


@needs_tts
@pytest.mark.slow
def test_rendering_again_gives_the_same_bytes(tmp_path):
    sources = tmp_path / "texts"
    for task in ("distress", "manipulation"):
        (sources / task).mkdir(parents=True)
    session = (DEMO / "distress" / "session_1.toml").read_text().split("[[turn]]")
    (sources / "distress" / "session_1.toml").write_text("[[turn]]".join(session[:3]))
    text = (DEMO / "manipulation" / "dialogues.toml").read_text().split("[[dialogue]]")
    (sources / "manipulation" / "dialogues.toml").write_text("[[dialogue]]".join(text[:2]))

    for run in ("first", "second"):
        arguments = [
            "--sources",
            sources,
            "--output",
            tmp_path / run,
            "--turns",
            tmp_path / run / "kept",
        ]
        assert render_demo.main([str(argument) for argument in arguments]) == 0

    assert digests(tmp_path / "first") == digests(tmp_path / "second")
    assert len(digests(tmp_path / "first")) > 7


def digests(folder):
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
