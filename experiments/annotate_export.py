"""Entry point `annotate_export`: a dataset of dialogues as work for human annotators.

Draws and checks a design, then writes a folder for each annotator (a workbook and
their recordings) and Label Studio projects of the same. private/design.json tells
which code is which item: it stays with whoever runs the study.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from core.replacing import replace_text, replacing
from experiments.options import OptionError, amount, dataset_folder, read_options, truth, whole
from experiments.output_lock import FolderInUseError, disk_sentence, only_one

if TYPE_CHECKING:
    from core.dataset import Dataset
    from validation.annotation_design import Design
    from validation.annotation_key import Key

OPTIONS = {
    "data": ("", "dataset folder of dialogues with audio; demo is the set that comes along"),
    "annotators": ("8", "how many people rate"),
    "batches": ("auto", "batches a modality; auto: the study's ten, or fewer for a small set"),
    "overlap": ("0.3", "share of a batch that the next one holds too, 0.2-0.5"),
    "seed": ("0", "of every random order"),
    "both_modalities": ("false", "true gives an annotator the same batch as text and as audio"),
    "audio_url": ("/data/local-files/?d=audio/", "Label Studio: address of the folder of clips"),
    "output": ("outputs/annotation", "folder to write"),
}
# What every two of study 2's annotators with a shared item share at least.
FEW_SHARED = 10
KEY_FILE = Path("private", "design.json")
STUDIO = "label_studio"


@dataclass(frozen=True)
class Round:
    """What is asked of whom: the words and clips as they are shown, and the private key.

    Attributes:
        texts: item -> words.
        sources: file name of a clip as shown -> the file it is, or its bytes where it is a
            part of one.
        notes: what is shown differently than it was written.
    """

    key: Key
    texts: Mapping[str, str]
    sources: Mapping[str, Path | bytes]
    notes: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the round; 2 for a wrong value or a design that cannot be, 1 where it can't write."""
    try:
        said = read_options(OPTIONS, arguments, "annotate_export", __doc__)
        folder = dataset_folder("data", said["data"], "manipulation")
        output = _output(said["output"])
        made = _round(said, folder)
        _keep_handed_out(output, made.key)
    except OptionError as error:
        print(f"annotate_export: {error}", file=sys.stderr)
        return 2
    try:
        with only_one(output, "annotate_export"):
            write_round(made, output, said["audio_url"])
    except FolderInUseError as error:
        print(f"annotate_export: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"annotate_export: {disk_sentence(error, output)}", file=sys.stderr)
        return 1
    print("\n".join([*sentences(made), *_where(output)]))
    return 0


def _output(said: str) -> Path:
    output = Path(said).expanduser()
    if not said or (output.exists() and not output.is_dir()):
        raise OptionError(f"output: expected a folder, found {said!r}.")
    return output


def _round(said: Mapping[str, str], folder: Path) -> Round:
    from core.dataset import DatasetError
    from validation import schemas
    from validation.annotation_design import STUDY_BATCHES, DesignError, designed, fitting
    from validation.datasets import checked_dataset

    annotators = whole("annotators", said["annotators"])
    batches = None if said["batches"] == "auto" else _batches(said["batches"])
    overlap, seed = amount("overlap", said["overlap"]), whole("seed", said["seed"])
    both = truth("both_modalities", said["both_modalities"])
    try:
        dataset = checked_dataset(folder, "manipulation", schemas.dialogues())
        design = (fitting if batches is None else partial(designed, batches=batches))(
            list(dataset.items["item_id"]),
            annotators=annotators,
            overlap=overlap,
            seed=seed,
            both_modalities=both,
        )
        made = round_of(dataset, design)
    except (DatasetError, DesignError) as error:
        raise OptionError(str(error)) from error
    if batches is None and len(design.batches) < STUDY_BATCHES:
        fewer = (
            f"batches=auto: {len(design.batches)}, not the study's {STUDY_BATCHES}, for which "
            f"{len(design.items)} items and {annotators} annotators are too few at an overlap of "
            f"{overlap:g}."
        )
        return replace(made, notes=(fewer, *made.notes))
    return made


def _batches(said: str) -> int:
    if not said.isdigit():
        raise OptionError(f"batches: expected auto or a whole number of 2 or more, found {said!r}.")
    return whole("batches", said)


def round_of(dataset: Dataset, design: Design) -> Round:
    """The items of a dataset as they are shown.

    Raises:
        OptionError: a recording cannot be read.
    """
    from experiments.annotation_workbook import rows_of, writable
    from validation.annotation_key import key_of

    texts: dict[str, str] = {}
    clips: dict[str, str] = {}
    sources: dict[str, Path | bytes] = {}
    notes = []
    for row in dataset.items.to_dict("records"):
        item = str(row["item_id"])
        texts[item], replaced = writable(str(row["transcript"]))
        if replaced:
            notes.append(
                f"{item}: {replaced} control characters that no workbook can hold are shown as "
                "\N{REPLACEMENT CHARACTER}."
            )
        if not texts[item].strip():
            notes.append(f"{item}: its transcript is empty; there is nothing to read.")
        name, content = _clip(dataset, row)
        clips[item], sources[name] = name, content
    if continued := sum(len(rows_of(text)) > 1 for text in texts.values()):
        notes.append(f"{continued} conversations are longer than a row shows and go on below it.")
    reference = {str(i): str(v) for i, v in dataset.items[["item_id", "label"]].to_numpy()}
    key = key_of(
        design,
        dataset=dataset.name,
        dataset_hash=dataset.hash,
        texts=texts,
        clips=clips,
        reference=reference,
    )
    return Round(key, texts, sources, tuple(notes))


def _clip(dataset: Dataset, row: Mapping[Hashable, object]) -> tuple[str, Path | bytes]:
    """A recording, or the part of it that is the item, under a name made of its content."""
    from hashlib import sha256

    path = dataset.folder / str(row["audio"])
    start, end = row.get("start_s"), row.get("end_s")
    if isinstance(start, float) and isinstance(end, float) and start == start and end == end:
        content = _part(path, start, end)
        return sha256(content).hexdigest()[:32] + ".flac", content
    return str(row["audio_sha256"])[:32] + path.suffix.lower(), path


def _part(path: Path, start: float, end: float) -> bytes:
    from core.audio import AudioError, flac, read_clip

    try:
        recording = read_clip(path, start_s=start, end_s=end)
    except AudioError as error:
        raise OptionError(str(error)) from error
    return flac(recording.samples)


def _keep_handed_out(output: Path, key: Key) -> None:
    from experiments.annotation_workbook import TABS
    from experiments.handed_out import keep_handed_out
    from validation.annotation_key import read_key

    workbooks = (output / "annotators").glob("*/*.xlsx")
    place = output / KEY_FILE
    keep_handed_out(place, key, read_key, workbooks, sheets=list(TABS.values()), column="C")


def write_round(made: Round, output: Path, audio_url: str) -> None:
    """The key, then a folder for each annotator, then the Label Studio projects."""
    import json

    from experiments.annotation_tasks import interface, tasks
    from experiments.annotation_workbook import AUDIO_FOLDER, write_workbook
    from validation.annotation_design import MODALITIES
    from validation.annotation_key import write_key

    key = made.key
    write_key(key, output / KEY_FILE)
    studio = output / STUDIO
    _write_clips(made, list(made.sources), studio / AUDIO_FOLDER)
    for mode in MODALITIES:
        replace_text(studio / f"interface_{mode}.xml", interface(mode))
    for annotator in key.design.annotators:
        mine = [share for share in key.design.shares if share.annotator == annotator]
        order = [(share.modality, key.asked(annotator, share.modality)) for share in mine]
        folder = output / "annotators" / annotator
        write_workbook(folder / f"{annotator}.xlsx", annotator, order, made.texts)
        heard = [each.content for mode, asked in order if mode == "audio" for each in asked]
        _write_clips(made, heard, folder / AUDIO_FOLDER)
        for mode, asked in order:
            listed = tasks(annotator, mode, asked, made.texts, audio_url)
            text = json.dumps(listed, indent=1, ensure_ascii=False)
            replace_text(studio / f"{annotator}_{mode}.json", text + "\n")


def _write_clips(made: Round, names: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        source = made.sources[name]
        with replacing(folder / name) as stream:
            if isinstance(source, bytes):
                stream.write(source)
            else:
                with source.open("rb") as original:
                    shutil.copyfileobj(original, stream)


def sentences(made: Round) -> list[str]:
    """What the design promises, and what is shown differently than it was written."""
    from validation.annotation_design import MODALITIES, balance

    design = made.key.design
    lines = [
        f"{made.key.dataset}: {len(design.items)} items, {len(design.annotators)} annotators, "
        f"{len(design.batches)} batches a modality."
    ]
    for mode in MODALITIES:
        found = balance(design, mode)
        counts = ", ".join(f"{n} with {ratings}" for ratings, n in found.items_by_ratings.items())
        sharing = [number for number in found.shared_by_pair.values() if number]
        least, most = min(sharing), max(sharing)
        each = f"{least}" if least == most else f"{least} to {most}"
        lines.append(
            f"{mode}: {found.expected:.2f} ratings an item expected (items by ratings: {counts}); "
            f"{len(sharing)} of {len(found.shared_by_pair)} pairs of annotators share items, "
            f"{each} each."
        )
    if most < FEW_SHARED:
        lines.append(
            f"Few: the kappa of two annotators would rest on {most} items at most (on 10 or 20 in "
            "the study); fewer batches or more overlap give more."
        )
    lines.append(
        f"A batch shares {found.overlap:.0%} of its items with the next one "
        f"({design.overlap:.0%} asked for)."
    )
    taken = {share.batch for share in design.shares if share.modality == "text"}
    if spare := len(design.batches) - len(taken):
        lines.append(
            f"{spare} batches have no annotator of their own; the items that no other batch holds "
            "were dealt out."
        )
    apart = "the same batch" if design.both_modalities else "no item"
    lines.append(f"Each annotator has {apart} in both modalities.")
    return [*lines, *made.notes]


def _where(output: Path) -> list[str]:
    return [
        f"For the annotators, a folder each: {output / 'annotators'}",
        f"For Label Studio, a project for each file of tasks: {output / STUDIO}",
        f"For you alone: {output / KEY_FILE}",
        f"Filled in: mlflow run . -e annotate_import -P answers={quote(str(output))}",
    ]


if __name__ == "__main__":
    sys.exit(main())
