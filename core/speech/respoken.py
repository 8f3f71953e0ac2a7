"""The same words without their affect: each transcript spoken by a neutral voice.

One voice a gender speaks all items, so that between items nothing differs but the words. An
item that this voice spoke in the first place gets the other of its gender. Every clip has the
same loudness, since how loudly somebody spoke is affect too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import soundfile

from core.speech.compose import clip_samples
from core.speech.engine import Engine, Samples, Sound, SpeechError, speakable, turn_key
from core.speech.rendering import Job, Phase1, missing, speak
from core.speech.turns import turn_path
from core.speech.voices import Voice, voice_pool

NEUTRAL = {"female": ("heart", "emma"), "male": ("michael", "george")}
"""Names of Kokoro voices, the first being the usual one."""

UNKNOWN = "female"
"""Whose voice speaks where nobody says a gender."""


def neutral_voice(gender: str | None, own: str | None) -> Voice:
    """The voice that speaks an item again.

    Args:
        gender: of the item's speaker, "female" or "male"; anything else is unknown.
        own: name of the voice that spoke it, where that is a TTS voice.
    """
    names = NEUTRAL.get(gender or UNKNOWN, NEUTRAL[UNKNOWN])
    chosen = next(name for name in names if name != own)
    return next(voice for voice in voice_pool("kokoro") if voice.name == chosen)


def respoken(
    engine: Engine,
    rows: Sequence[Mapping[Hashable, Any]],
    gender_of: Callable[[Mapping[Hashable, Any]], Hashable | None],
    kept: Path,
    progress: Callable[[Phase1, int], None] | None = None,
) -> Iterator[tuple[str, Samples | str]]:
    """Each item's id with its samples at 16 kHz, or with the reason why it was not spoken.

    All are spoken before the first is given; one clip at a time is in memory.

    Args:
        rows: with item_id, transcript and, where there is one, voice.
        kept: folder of spoken turns; what is there is not spoken again.

    Raises:
        SpeechError: the engine is not here at all.
    """
    jobs: dict[str, Job] = {}
    for row in rows:
        if words := speakable(str(row["transcript"])):
            voice = neutral_voice(_text(gender_of(row)), _text(row.get("voice")))
            jobs[str(row["item_id"])] = Job(words, voice.id)
    distinct = list(dict.fromkeys(jobs.values()))
    if unspoken := missing(engine, distinct, kept):
        # An engine that is not here would fail turn by turn, and each turn look at fault.
        engine.speak("One.", unspoken[0].voice)
    result = speak(engine, distinct, kept, os.cpu_count() or 1, progress)
    for row in rows:
        item_id = str(row["item_id"])
        yield item_id, _spoken(engine, jobs.get(item_id), kept, result)


def _spoken(engine: Engine, job: Job | None, kept: Path, result: Phase1) -> Samples | str:
    if job is None:
        return "its transcript has no word to speak"
    path = turn_path(engine, job.text, job.voice, kept)
    if not path.exists():
        key = turn_key(engine, job.text, job.voice)
        return result.failures.get(key, result.stopped or "it was not spoken")
    samples, rate_hz = soundfile.read(path, dtype="float32")
    return _levelled(Sound(samples, rate_hz))


def _levelled(sound: Sound) -> Samples:
    try:
        return clip_samples(sound)
    except ImportError as error:
        raise SpeechError(f"{error.name} is not installed: pip install -e '.[tts]'.") from error


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
