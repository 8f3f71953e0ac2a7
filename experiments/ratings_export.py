"""Entry point `ratings_export`: turns of a dataset as blinded rating sheets for experts.

Draws whole sessions, then writes a folder for each expert (a workbook and the clips) and
Label Studio projects of the same: audio under a name made of the sound, context, transcript
and the five anchors, and no label. private/key.json tells which code is which turn; it
stays with whoever runs the study. `-e validate_labels -P ratings=FOLDER` reads the filled
sheets.

Source: CBT-Audio, section 3.2.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from experiments.options import OptionError, dataset_folder, read_options, whole

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from validation.rating_sheets import RatingKey

OPTIONS = {
    "data": ("", "dataset folder of turns with audio; demo is the set that comes along"),
    "experts": ("5", "how many rate; every one rates every turn"),
    "sessions": ("8", "whole sessions drawn at random, as in the study; 0 for all"),
    "seed": ("0", "of the draw and of every expert's order"),
    "audio_url": ("/data/local-files/?d=audio/", "Label Studio: address of the folder of clips"),
    "output": ("outputs/ratings", "folder to write"),
}
KEY_FILE = Path("private", "key.json")


@dataclass(frozen=True)
class Round:
    """A round as it is shown: item id -> (transcript, context), and clip name -> its bytes."""

    key: RatingKey
    shown: Mapping[str, tuple[str, str]]
    clips: Mapping[str, bytes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the round; 2 for a value or dataset that is wrong."""
    try:
        said = read_options(OPTIONS, arguments, "ratings_export", __doc__)
        folder = dataset_folder("data", said["data"], "distress")
        output = Path(said["output"]).expanduser()
        if not said["output"] or (output.exists() and not output.is_dir()):
            raise OptionError(f"output: expected a folder, found {said['output']!r}.")
        made = _round(said, folder)
        _keep_handed_out(output, made.key)
    except OptionError as error:
        return _sorry(2, error)
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one

    try:
        with only_one(output, "ratings_export"):
            write_round(made, output, said["audio_url"])
    except FolderInUseError as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, output))
    print(_told(made, output, said["data"]))
    return 0


def _round(said: Mapping[str, str], folder: Path) -> Round:
    from core.dataset import DatasetError
    from validation import schemas
    from validation.datasets import checked_dataset
    from validation.rating_sheets import SheetError

    experts, seed = whole("experts", said["experts"]), whole("seed", said["seed"])
    sessions = whole("sessions", said["sessions"])
    try:
        dataset = checked_dataset(folder, "distress", schemas.turns())
        return round_of(dataset, drawn(dataset.items, sessions, seed), experts, seed)
    except (DatasetError, SheetError) as error:
        raise OptionError(str(error)) from error


def drawn(items: pd.DataFrame, sessions: int, seed: int) -> pd.DataFrame:
    """The turns of so many sessions drawn at random; of all where there are no more."""
    from core.seeds import generator

    names = sorted(set(items["session_id"]))
    if not sessions or sessions >= len(names):
        return items
    chosen = generator(seed, "sessions", "ratings").choice(names, sessions, replace=False)
    return items[items["session_id"].isin(chosen)]


def round_of(dataset: Dataset, items: pd.DataFrame, experts: int, seed: int) -> Round:
    """The turns as they are shown; raises OptionError for a recording that cannot be read."""
    from experiments.annotation_workbook import writable
    from validation.rating_sheets import key_of, words_of

    shown: dict[str, tuple[str, str]] = {}
    clips: dict[str, bytes] = {}
    turns = []
    for row in items.to_dict("records"):
        item = str(row["item_id"])
        transcript, context = (writable(str(row[name] or ""))[0] for name in _WORDS)
        name, content = _clip(dataset.folder, row)
        shown[item], clips[name] = (transcript, context), content
        turns.append((item, name, words_of(transcript, context)))
    key = key_of(dataset.name, dataset.hash, turns, experts=experts, seed=seed)
    return Round(key, shown, clips)


_WORDS = ("transcript", "context")


def _clip(folder: Path, row: Mapping[object, object]) -> tuple[str, bytes]:
    """A turn's sound written anew: what a file may say of itself beside it stays behind."""
    from hashlib import sha256

    from core.audio import AudioError, flac, read_clip

    ends = {name: value for name in ("start_s", "end_s") if _is_time(value := row.get(name))}
    try:
        sound = read_clip(folder / str(row["audio"]), **ends)  # type: ignore[arg-type]
    except AudioError as error:
        raise OptionError(str(error)) from error
    content = flac(sound.samples)
    return sha256(content).hexdigest()[:32] + ".flac", content


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and value == value


def _keep_handed_out(output: Path, key: RatingKey) -> None:
    from experiments.handed_out import keep_handed_out
    from experiments.rating_workbook import SHEET
    from validation.rating_sheets import read_key

    workbooks = (output / "experts").glob("*/*.xlsx")
    keep_handed_out(output / KEY_FILE, key, read_key, workbooks, sheets=[SHEET], column="E")


def write_round(made: Round, output: Path, audio_url: str) -> None:
    """The key, then a folder for each expert, then the Label Studio projects."""
    import json

    from core.replacing import replace_text
    from experiments.annotation_workbook import AUDIO_FOLDER
    from experiments.rating_workbook import interface, tasks, write_workbook
    from validation.rating_sheets import write_key

    write_key(made.key, output / KEY_FILE)
    studio, turns = output / "label_studio", made.key.by_code()
    _write_clips(made, studio / AUDIO_FOLDER)
    replace_text(studio / "interface.xml", interface())
    for expert, order in made.key.orders.items():
        asked = [turns[code] for code in order]
        folder = output / "experts" / expert
        _write_clips(made, folder / AUDIO_FOLDER)
        write_workbook(folder / f"{expert}.xlsx", expert, asked, made.shown)
        text = json.dumps(tasks(expert, asked, made.shown, audio_url), indent=1, ensure_ascii=False)
        replace_text(studio / f"{expert}.json", text + "\n")


def _write_clips(made: Round, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.clips.items():
        (folder / name).write_bytes(content)


def _told(made: Round, output: Path, data: str) -> str:
    key = made.key
    return "\n".join(
        [
            f"{key.dataset}: {len(key.turns):,} turns, each for {len(key.orders)} experts in an "
            "order of their own; no label and no title in what they get.",
            f"For the experts, a folder each: {output / 'experts'}",
            f"For Label Studio, a project for each file of tasks: {output / 'label_studio'}",
            f"For you alone: {output / KEY_FILE}",
            f"Filled in: mlflow run . -e validate_labels -P ratings={quote(str(output))} "
            f"-P data={quote(data)}",
        ]
    )


def _sorry(code: int, why: object) -> int:
    print(f"ratings_export: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
