import json

import numpy as np
import pytest
import soundfile

from core.datasets.roleplay import read_sessions
from core.speech.engine import Sound
from experiments import render_sessions
from experiments.settings import ROOT
from tests.core.speech.tones import Hummer, tone


class Kokoro(Hummer):
    """Hums with Kokoro's voices."""

    name = "kokoro"


def render(tmp_path, **options):
    words = {"turns": tmp_path / "turns", "output": tmp_path / "sessions", **options}
    arguments = [w for k, v in words.items() for w in (f"--{k}", str(v))]
    return render_sessions.main(arguments, Kokoro())


def test_a_role_play_becomes_one_recording_with_the_time_of_each_turn(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)

    assert render(tmp_path, limit=1) == 0

    (session, *_) = read_sessions(ROOT / "demo" / "distress")
    told = json.loads((tmp_path / "sessions" / "session_1.turns.json").read_text())
    assert [(t["speaker"], t["text"]) for t in told["turns"]] == [
        (turn.role, turn.text) for turn in session.turns
    ]
    assert {t["voice"] for t in told["turns"] if t["speaker"] == "patient"} == {"heart"}
    assert len({t["voice"] for t in told["turns"]}) == 2
    pauses = [
        b["start_s"] - a["end_s"] for a, b in zip(told["turns"], told["turns"][1:], strict=False)
    ]
    assert pauses == pytest.approx([0.6] * len(pauses))
    found = soundfile.info(tmp_path / "sessions" / "session_1.flac")
    assert found.duration == pytest.approx(told["seconds"])


def test_breath_after_a_turn_is_no_part_of_it():
    breath = np.full(8_000, 0.001, np.float32)
    sound = Sound(np.concatenate([tone(1.0), breath]), 16_000)

    # The voice and 50 ms behind it.
    assert render_sessions._voiced(sound).seconds == pytest.approx(1.05)


def test_a_wrong_value_is_one_sentence_and_2(tmp_path, capsys):
    assert render(tmp_path, sources="nowhere") == 2
    assert capsys.readouterr().err == "render_sessions: sources: there is no folder 'nowhere'.\n"
