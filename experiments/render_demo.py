"""Entry point `render_demo`: the demo texts spoken by Kokoro, as two dataset folders.

Reads demo/distress/session_*.toml and demo/manipulation/dialogues.toml, writes beside
them dataset.json, manifest.csv and audio/. The same texts give the same bytes. With
`--listen true` Whisper hears every clip, and clips it mishears are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.dataset import Dataset, DatasetError, write_dataset
from core.datasets.dialogue import Dialogue
from core.datasets.file_names import file_name
from core.datasets.roleplay import (
    Session,
    TextSourceError,
    read_dialogues,
    read_sessions,
)
from core.speech.compose import RATE_HZ, SpokenTurn, clip_samples, compose, write_clip
from core.speech.engine import Engine, Sound, SpeechError
from core.speech.kokoro import Kokoro
from core.speech.listening import recogniser
from core.speech.loudness import TARGET_LUFS
from core.speech.turns import SMALL_BITS, Tally, spoken_turn, write_flac
from core.speech.voices import assign_voices, voice_pool
from experiments.listening import listen, report
from experiments.options import OptionError, existing_folder, read_options, truth
from experiments.output_lock import FolderInUseError, disk_sentence, only_one

OPTIONS = {
    "sources": ("demo", "folder with distress/session_*.toml and manipulation/dialogues.toml"),
    "output": ("demo", "folder the two dataset folders go under"),
    "turns": ("outputs/turns", "folder that keeps each spoken turn"),
    "listen": ("false", "true lets Whisper hear the clips and prints its word errors"),
}
LICENCE = "CC0-1.0"
SOURCE = "Text written for this project; speech by Kokoro-82M (int8 ONNX), offline."
NOTE = (
    "Labels are the writer's intent, by construction. The synthetic voices carry no affect: "
    "what the audio adds here is the words, so these sets show that the pipeline runs and say "
    "nothing about how well a model hears distress or manipulation."
)
VOICE_SEED = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Render both sets; the exit code is 2 for a value that cannot be meant."""
    try:
        said = read_options(OPTIONS, arguments, "render_demo", __doc__)
        sources = existing_folder("sources", said["sources"])
        check = truth("listen", said["listen"])
        sessions = read_sessions(sources / "distress")
        dialogues = read_dialogues(sources / "manipulation" / "dialogues.toml")
    except (OptionError, TextSourceError) as error:
        print(f"render_demo: {error}", file=sys.stderr)
        return 2
    output, turns, tally = Path(said["output"]), Path(said["turns"]), Tally()
    try:
        engine = Kokoro()
        with only_one(output, "render_demo"):
            sets = (
                render_distress(sessions, output / "distress", engine, turns, tally),
                render_manipulation(dialogues, output / "manipulation", engine, turns, tally),
            )
        print(f"{tally.spoken} turns spoken, {tally.kept} kept from before.")
        for dataset in sets:
            print(f"{dataset.folder}: {dataset.name}, {len(dataset.items)} items, {dataset.hash}")
        if check:
            recognise = recogniser()
            for dataset in sets:
                print(report(dataset.name, listen(dataset.folder, dataset.items, recognise)))
    except (SpeechError, DatasetError, FolderInUseError) as error:
        print(f"render_demo: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"render_demo: {disk_sentence(error, output)}", file=sys.stderr)
        return 1
    return 0


def render_distress(
    sessions: Sequence[Session], folder: Path, engine: Engine, kept: Path, tally: Tally
) -> Dataset:
    """Each patient turn as a clip of its own; the therapist is text in the context only."""
    voices = {voice.name: voice.id for voice in voice_pool(engine.name)}
    rows = []
    for session in sessions:
        if session.patient_voice not in voices:
            raise SpeechError(f"{session.session_id}: no voice {session.patient_voice!r}.")
        for index, turn in enumerate(session.turns):
            if turn.level is None:
                continue
            item_id = f"{session.session_id}_{index:02d}"
            sound = spoken_turn(engine, turn.text, voices[session.patient_voice], kept, tally)
            audio = f"audio/{file_name(item_id)}.flac"
            seconds = _write_turn(folder / audio, item_id, sound)
            rows.append(
                {
                    "item_id": item_id,
                    "session_id": session.session_id,
                    "turn_index": index,
                    "audio": audio,
                    "transcript": turn.text,
                    "context": session.context(index),
                    "label": turn.level,
                    "speaker": "patient",
                    "voice": session.patient_voice,
                    "seconds": seconds,
                }
            )
    arcs = {session.session_id: session.arc for session in sessions}
    return _write(folder, "distress", pd.DataFrame(rows), engine, {"arcs": arcs})


def render_manipulation(
    dialogues: Sequence[Dialogue], folder: Path, engine: Engine, kept: Path, tally: Tally
) -> Dataset:
    """Each dialogue composed to one clip, two voices, with a sidecar of turn times."""
    pool = voice_pool(engine.name)
    rows = []
    for dialogue in dialogues:
        voices = assign_voices(dialogue.dialogue_id, dialogue.speakers, pool, VOICE_SEED)
        clip = compose(
            [
                SpokenTurn(
                    speaker,
                    voices[speaker].name,
                    text,
                    spoken_turn(engine, text, voices[speaker].id, kept, tally),
                )
                for speaker, text in dialogue.turns
            ]
        )
        path = folder / "audio" / f"{file_name(dialogue.dialogue_id)}.flac"
        write_clip(path, clip, small=True)
        rows.append(
            {
                "item_id": dialogue.dialogue_id,
                "audio": f"audio/{path.name}",
                "transcript": dialogue.transcript,
                "label": dialogue.label,
                "techniques": ",".join(dialogue.techniques),
                "voices": ",".join(voices[speaker].name for speaker in dialogue.speakers),
                "seconds": round(clip.seconds, 3),
            }
        )
    return _write(folder, "manipulation", pd.DataFrame(rows), engine, {"voice_seed": VOICE_SEED})


def _write(
    folder: Path, task: str, items: pd.DataFrame, engine: Engine, about: dict[str, Any]
) -> Dataset:
    named = items["voices"].str.split(",").explode() if "voices" in items else items["voice"]
    clips = {str(voice): int(count) for voice, count in named.value_counts().sort_index().items()}
    return write_dataset(
        folder,
        items,
        name=f"demo-{task}",
        task=task,
        manifest="turns" if task == "distress" else "dialogues",
        licence=LICENCE,
        source=SOURCE,
        synthetic=True,
        suffix="csv",
        about={
            "note": NOTE,
            "engine": engine.name,
            "engine_model": engine.model,
            "engine_settings": dict(engine.settings),
            "voices": clips,
            "level_lufs": TARGET_LUFS,
            "significant_bits": SMALL_BITS,
            "seconds": round(float(items["seconds"].sum()), 2),
            **about,
        },
    )


def _write_turn(path: Path, item_id: str, sound: Sound | None) -> float:
    if sound is None:
        raise SpeechError(f"{item_id}: a patient turn needs words.")
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = clip_samples(sound)
    write_flac(path, Sound(samples, RATE_HZ), small=True)
    return round(len(samples) / RATE_HZ, 3)


if __name__ == "__main__":
    sys.exit(main())
