import json

import pytest
import soundfile

from core.speech.compose import SpokenTurn, compose, write_clip
from core.speech.engine import Sound
from core.speech.loudness import level_lufs
from tests.core.speech.tones import RATE_HZ, tone


def spoken(speaker, seconds, amplitude=0.1, rate_hz=24_000):
    sound = None if seconds is None else Sound(tone(seconds, amplitude, rate_hz), rate_hz)
    return SpokenTurn(speaker, f"voice of {speaker}", f"{speaker} hums.", sound)


def test_a_clip_is_as_long_as_its_parts():
    clip = compose([spoken("A", 1.0), spoken("B", 0.5), spoken("A", 2.0)])

    # lead, three turns, two gaps
    assert clip.seconds == pytest.approx(0.2 + 1.0 + 0.2 + 0.5 + 0.2 + 2.0, abs=1e-6)


def test_each_turn_knows_where_it_is():
    clip = compose([spoken("A", 1.0), spoken("B", 0.5)])

    assert [(t.speaker, t.start_s, t.end_s) for t in clip.turns] == [
        ("A", pytest.approx(0.2), pytest.approx(1.2)),
        ("B", pytest.approx(1.4), pytest.approx(1.9)),
    ]


def test_a_turn_without_words_is_a_pause_with_its_place_in_the_order():
    clip = compose([spoken("A", 1.0), spoken("B", None), spoken("A", 1.0)])

    start, end = (round(s * RATE_HZ) for s in (clip.turns[1].start_s, clip.turns[1].end_s))
    assert end - start == 0.5 * RATE_HZ
    assert not clip.samples[start:end].any()
    assert clip.seconds == pytest.approx(0.2 + 1.0 + 0.2 + 0.5 + 0.2 + 1.0)


def test_a_loud_and_a_quiet_speaker_come_to_the_same_level():
    clip = compose([spoken("A", 2.0, amplitude=0.9), spoken("B", 2.0, amplitude=0.002)])

    for turn in clip.turns:
        samples = clip.samples[round(turn.start_s * RATE_HZ) : round(turn.end_s * RATE_HZ)]
        assert level_lufs(samples, RATE_HZ) == pytest.approx(-23, abs=0.1)


def test_a_written_clip_is_16_khz_mono_16_bit_flac_with_its_times_beside_it(tmp_path):
    clip = compose([spoken("A", 1.0), spoken("B", 0.5)])

    write_clip(tmp_path / "audio" / "d1.flac", clip)

    facts = soundfile.info(tmp_path / "audio" / "d1.flac")
    assert (facts.samplerate, facts.channels, facts.format, facts.subtype) == (
        16_000,
        1,
        "FLAC",
        "PCM_16",
    )
    sidecar = json.loads((tmp_path / "audio" / "d1.turns.json").read_text())
    assert sidecar["seconds"] == pytest.approx(facts.frames / 16_000)
    assert [turn["text"] for turn in sidecar["turns"]] == ["A hums.", "B hums."]
