"""Audio of dialogues that somebody already made, matched to their dialogues by file name.

The study's files are `<id>_composed_<voice>_<voice>.mp3`. The voices are taken to be in
the order of the speakers' names; the study does not say. Files are copied byte for byte.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.audio import AudioError, read_clip
from core.datasets.dialogue import Dialogue
from core.replacing import replacing

_NAME = re.compile(r"(?P<id>[^_]+)_composed_(?P<voices>[^.]+)\.(mp3|wav|flac|ogg|m4a)")


@dataclass(frozen=True)
class ClipFile:
    """A clip and what its name says."""

    path: Path
    dialogue_id: str
    voices: tuple[str, ...]


@dataclass(frozen=True)
class Imported:
    """A clip that lies in the dataset; `audio` is relative to the dataset folder."""

    dialogue: Dialogue
    audio: str
    voices: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class LeftOut:
    """A file or dialogue that is not in the dataset, and why."""

    what: str
    reason: str


def find_clips(folder: Path) -> tuple[list[ClipFile], list[LeftOut]]:
    """Clips of a folder by name, and files whose names are not of the form."""
    found: list[ClipFile] = []
    left_out = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.is_dir():
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            left_out.append(
                LeftOut(path.name, "a link out of the folder; put the file itself there")
            )
        elif match := _NAME.fullmatch(path.name):
            found.append(ClipFile(path, match["id"], tuple(match["voices"].split("_"))))
        else:
            left_out.append(
                LeftOut(path.name, "expected a name like 85514414_composed_amanda_mark.mp3")
            )
    return found, left_out


def import_clips(
    files: Sequence[ClipFile], dialogues: Sequence[Dialogue], folder: Path
) -> tuple[list[Imported], list[LeftOut]]:
    """Copy the clips of these dialogues to `folder/audio`, in the dialogues' order.

    A clip is left out, with its reason, if its dialogue is not there, has another clip, has
    another number of speakers than the name has voices, or if it cannot be decoded.
    """
    known = {dialogue.dialogue_id: dialogue for dialogue in dialogues}
    taken: dict[str, Imported] = {}
    left_out = []
    for file in files:
        reason = _unfit(file, known, taken)
        if reason is None:
            try:
                seconds = read_clip(file.path).facts.seconds
            except AudioError as error:
                reason = str(error)
        if reason is not None:
            left_out.append(LeftOut(file.path.name, reason))
            continue
        _copy(file.path, folder / "audio" / file.path.name)
        taken[file.dialogue_id] = Imported(
            known[file.dialogue_id], f"audio/{file.path.name}", file.voices, round(seconds, 3)
        )
    return [taken[d.dialogue_id] for d in dialogues if d.dialogue_id in taken], left_out


def _unfit(file: ClipFile, known: dict[str, Dialogue], taken: dict[str, Imported]) -> str | None:
    dialogue = known.get(file.dialogue_id)
    if dialogue is None:
        return f"no dialogue {file.dialogue_id} among those asked for"
    if file.dialogue_id in taken:
        return f"dialogue {file.dialogue_id} has {taken[file.dialogue_id].audio} already"
    if len(file.voices) != len(dialogue.speakers):
        return f"{len(file.voices)} voices for {len(dialogue.speakers)} speakers"
    return None


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as original, replacing(target) as stream:
        shutil.copyfileobj(original, stream)
