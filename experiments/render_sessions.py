"""Entry point `render_sessions`: the demo role-plays as whole recordings, both voices, by Kokoro.

For trying the way from recordings to labelled turns: each <session>.flac has a sidecar
<session>.turns.json with the true time, speaker and words of every turn. They are made, not
stored: the texts and this command are the recordings.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, read_options, whole

if TYPE_CHECKING:
    from core.datasets.roleplay import Session
    from core.speech.engine import Engine, Sound

OPTIONS = {
    "sources": ("demo/distress", "folder with session_*.toml"),
    "limit": ("0", "the first so many sessions; 0 for all"),
    "turns": ("outputs/turns", "folder that keeps each spoken turn"),
    "output": ("outputs/demo-sessions", "folder to write"),
}
# Between speakers, as people leave it; a study's pause of 5 s would be a turn of its own.
GAP_S = 0.6
VOICE_SEED = 0
# A frame this far under its turn's level is breath or noise; what leads up to the voice and
# what fades from it lies within the edge.
UNDER_DB = 14.0
EDGE_S = 0.05


def main(arguments: Sequence[str] | None = None, engine: Engine | None = None) -> int:
    """Render; 2 for a value or text that is wrong, 1 where no voice is here.

    Args:
        engine: instead of Kokoro, with its voices.
    """
    from core.datasets.roleplay import TextSourceError, read_sessions
    from core.speech.engine import SpeechError
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one

    try:
        said = read_options(OPTIONS, arguments, "render_sessions", __doc__)
        limit = whole("limit", said["limit"])
        sessions = read_sessions(existing_folder("sources", said["sources"]))
    except (OptionError, TextSourceError) as error:
        return _sorry(2, error)
    output = Path(said["output"]).expanduser()
    try:
        from core.speech.kokoro import Kokoro

        engine = engine or Kokoro()
        with only_one(output, "render_sessions"):
            for session in sessions[: limit or None]:
                _render(session, output, Path(said["turns"]).expanduser(), engine)
    except (SpeechError, FolderInUseError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, output))
    return 0


def _render(session: Session, output: Path, kept: Path, engine: Engine) -> None:
    from core.datasets.file_names import file_name
    from core.speech.compose import SpokenTurn, compose, write_clip
    from core.speech.turns import spoken_turn
    from core.speech.voices import assign_voices, too_alike, voice_pool

    pool = {voice.name: voice for voice in voice_pool(engine.name)}
    patient = pool[session.patient_voice]
    free = [
        voice
        for voice in pool.values()
        if voice != patient and frozenset((voice.name, patient.name)) not in too_alike(engine.name)
    ]
    therapist = assign_voices(session.session_id, ["therapist"], free, VOICE_SEED)["therapist"]
    voices = {"patient": patient, "therapist": therapist}
    clip = compose(
        [
            SpokenTurn(
                turn.role,
                voices[turn.role].name,
                turn.text,
                _voiced(spoken_turn(engine, turn.text, voices[turn.role].id, kept)),
            )
            for turn in session.turns
        ],
        gap_s=GAP_S,
    )
    path = output / f"{file_name(session.session_id)}.flac"
    write_clip(path, clip)
    print(f"{path}: {clip.seconds:.1f} s, {len(session.turns)} turns")


def _voiced(sound: Sound | None) -> Sound | None:
    """The sound from its first to its last frame of voice, so that a turn's times are the voice's.

    Some of Kokoro's voices end in half a second of breath that is no speech.
    """
    import numpy as np

    if sound is None:
        return None
    width = sound.rate_hz // 50
    frames = sound.samples[: len(sound.samples) // width * width].reshape(-1, width)
    levels = np.sqrt(np.square(frames, dtype=np.float64).mean(axis=1))
    whole = np.sqrt(np.square(sound.samples, dtype=np.float64).mean())
    loud = np.flatnonzero(levels > whole * 10 ** (-UNDER_DB / 20))
    edge = round(EDGE_S * sound.rate_hz)
    first, last = max(0, loud[0] * width - edge), (loud[-1] + 1) * width + edge
    return replace(sound, samples=sound.samples[first:last])


def _sorry(code: int, why: object) -> int:
    print(f"render_sessions: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
