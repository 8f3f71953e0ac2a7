"""Who may speak: the pool of each engine, and which speaker of a dialogue gets which voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

from core.seeds import seed_of
from core.speech.engine import SpeechError

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Voice:
    """One voice of an engine's pool; `id` is the provider's, `name` is ours.

    `sha256` is of a voice file that lies here, "" for a voice that lives elsewhere.
    """

    engine: str
    name: str
    id: str
    gender: str
    age: str
    accent: str
    sha256: str = ""


def voice_pool(engine: str) -> tuple[Voice, ...]:
    """The engine's voices in the order of `voices.toml`; empty for an engine it does not know."""
    return tuple(Voice(**entry) for entry in _table()["voice"] if entry["engine"] == engine)


def every_voice() -> tuple[Voice, ...]:
    """The voices of all engines; no two have one name."""
    return tuple(Voice(**entry) for entry in _table()["voice"])


def too_alike(engine: str) -> frozenset[frozenset[str]]:
    """Pairs of names that one dialogue must not hold."""
    pairs = (entry["pair"] for entry in _table()["too_alike"] if entry["engine"] == engine)
    return frozenset(frozenset(pair) for pair in pairs)


def assign_voices(
    dialogue_id: str, speakers: Sequence[str], pool: Sequence[Voice], seed: int
) -> dict[str, Voice]:
    """A voice for each speaker, distinct within the dialogue.

    Each choice is a draw named by (seed, dialogue, speaker): no other dialogue, no
    order of work and no earlier, interrupted run has a say in it. Speakers choose in
    the order of their names.

    Raises:
        SpeechError: fewer voices that can be told apart than speakers.
    """
    chosen: dict[str, Voice] = {}
    for speaker in sorted(set(speakers)):
        free = [voice for voice in pool if not _clashes(voice, chosen)]
        if not free:
            raise SpeechError(
                f"Dialogue {dialogue_id}: {len(set(speakers))} speakers, but only {len(chosen)} of "
                f"{len(pool)} voices can be told apart. Add some to core/speech/voices/voices.toml."
            )
        chosen[speaker] = free[seed_of(seed, dialogue_id, speaker, "voice") % len(free)]
    return chosen


def style_path(voice: Voice) -> Path:
    """Where a voice file of ours lies."""
    return FOLDER / f"{voice.id}.f16"


def _clashes(voice: Voice, chosen: dict[str, Voice]) -> bool:
    alike = too_alike(voice.engine)
    return any(
        voice.id == other.id or frozenset((voice.name, other.name)) in alike
        for other in chosen.values()
    )


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "voices.toml").read_text(encoding="utf-8"))
