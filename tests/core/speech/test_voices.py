from hashlib import sha256

import pytest

from core.speech.engine import SpeechError
from core.speech.voices import Voice, assign_voices, style_path, voice_pool


def voices(*names, engine="kokoro"):
    return [Voice(engine, name, name, "female", "adult", "American") for name in names]


def test_speakers_of_a_dialogue_never_share_a_voice():
    pool = voice_pool("kokoro")
    for number in range(200):
        chosen = assign_voices(str(number), ["Person1", "Person2", "Person3"], pool, seed=0)
        assert len({voice.id for voice in chosen.values()}) == 3


def test_voices_depend_on_dialogue_and_seed_and_on_nothing_else():
    pool = voice_pool("elevenlabs")
    chosen = assign_voices("85514414", ["Person1", "Person2"], pool, seed=0)

    assert assign_voices("85514414", ["Person2", "Person1", "Person2"], pool, seed=0) == chosen
    others = [
        assign_voices("85514414", ["Person1", "Person2"], pool, seed) for seed in range(1, 20)
    ]
    assert any(other != chosen for other in others)


def test_every_voice_of_the_pool_is_used():
    pool = voice_pool("elevenlabs")
    used = {
        voice.name
        for number in range(200)
        for voice in assign_voices(str(number), ["Person1", "Person2"], pool, seed=0).values()
    }
    assert used == {"ivanna", "mark", "amanda", "sassy", "grandpa", "grandma"}


def test_two_voices_a_listener_cannot_tell_apart_never_meet():
    with pytest.raises(SpeechError, match="Dialogue 7: 2 speakers, but only 1 of 2 voices"):
        assign_voices("7", ["Person1", "Person2"], voices("heart", "bella"), seed=0)


def test_voice_files_are_the_ones_the_table_names():
    for voice in voice_pool("kokoro"):
        assert sha256(style_path(voice).read_bytes()).hexdigest() == voice.sha256
