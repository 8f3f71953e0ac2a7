"""Entry point `annotate_import`: filled workbooks or Label Studio exports as ratings.

Holds every answer against private/design.json and lists what is wrong by file,
sheet and cell; where nothing is, or with skip_invalid=true, writes a ratings CSV a
modality, which `-e agreement` reads, and the consensus. An adjudication file
decides ties. Without a design it takes compiled CSVs, a column a rater.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.annotate_export import KEY_FILE, STUDIO
from experiments.options import OptionError, existing_file, one_of, read_options, truth
from experiments.output_lock import FolderInUseError, disk_sentence, only_one

if TYPE_CHECKING:
    from validation.annotation_answers import Problem, Rated
    from validation.annotation_design import Modality
    from validation.annotation_key import Key, Shown
    from validation.consensus import ItemLabel

OPTIONS = {
    "answers": (
        "",
        "the round's folder that annotate_export wrote, with the workbooks in it filled in; or a "
        "folder of workbooks and Label Studio exports, or files with commas",
    ),
    "design": (
        "",
        "private/design.json of the export, if answers is not its folder; none for compiled CSVs",
    ),
    "modality": ("auto", "of a compiled CSV whose name does not say: text or audio"),
    "adjudication": ("", "CSV with columns item, rater, rating (and modality): decides ties"),
    "skip_invalid": ("false", "true writes the valid ratings and lists the others as left out"),
    "output": ("outputs/annotation/ratings", "folder to write"),
}
LABELS = ("NO", "YES")


@dataclass(frozen=True)
class Collected:
    """Everything that came back.

    Attributes:
        ratings: that stand.
        problems: everything else.
        notes: what was read in another way than it was written, or not at all.
        items: by modality, every item there is, rated or not.
        codes: code -> item, where there is a design.
        reference: item -> label to compare with.
        asked: modality -> number of ratings that were asked for; None where not known.
    """

    ratings: tuple[Rated, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    items: Mapping[Modality, tuple[str, ...]]
    codes: Mapping[str, Shown]
    reference: Mapping[str, str]
    asked: Mapping[Modality, int | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Import; 2 for a value that is wrong, 1 where answers are faulty."""
    try:
        said = read_options(OPTIONS, arguments, "annotate_import", __doc__)
        skip = truth("skip_invalid", said["skip_invalid"])
        modality = one_of("modality", said["modality"], ("auto", "text", "audio"))
        output = Path(said["output"]).expanduser()
        if not said["output"] or (output.exists() and not output.is_dir()):
            raise OptionError(f"output: expected a folder, found {said['output']!r}.")
        files = answer_files(said["answers"])
        adjudication = (
            existing_file("adjudication", said["adjudication"]) if said["adjudication"] else None
        )
        collected = _collected(
            said["design"] or _own_design(said["answers"]), files, modality, output
        )
        before = consensus_of(collected)
        after, wrong, notes = _adjudicated(collected, before, adjudication)
    except OptionError as error:
        print(f"annotate_import: {error}", file=sys.stderr)
        return 2
    try:
        with only_one(output, "annotate_import"):
            return _told(collected, before, after, wrong, notes, output, skip)
    except FolderInUseError as error:
        print(f"annotate_import: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"annotate_import: {disk_sentence(error, output)}", file=sys.stderr)
        return 1


def answer_files(said: str) -> list[Path]:
    """The files behind the option: those of a folder, its folders too, or those named.

    Raises:
        OptionError: none, or one that is not there.
    """
    folder = Path(said).expanduser()
    if said and folder.is_dir():
        # Hidden ones are ours or the system's: locks, .DS_Store.
        files = sorted(p for p in folder.rglob("[!.]*") if p.is_file())
        if not files:
            raise OptionError(f"answers: {said!r} holds no files.")
        return files
    return [existing_file("answers", name.strip()) for name in said.split(",")]


def _own_design(answers: str) -> str:
    """The design of a round whose whole folder is given; "" where there is none."""
    path = Path(answers).expanduser() / KEY_FILE
    return str(path) if answers and path.is_file() else ""


def _collected(design: str, files: Sequence[Path], modality: str, output: Path) -> Collected:
    from validation.annotation_key import KeyFileError, read_key

    if not design:
        return compiled(files, modality)
    try:
        key = read_key(existing_file("design", design))
    except KeyFileError as error:
        raise OptionError(f"design: {error}") from error
    # A folder of answers may be the whole folder of the round.
    own = Path(design).expanduser().resolve()
    ours = (own.parent.parent / STUDIO, output.resolve())
    return returned([path for path in files if path.resolve() != own], key, ours)


def returned(files: Sequence[Path], key: Key, ours: Sequence[Path] = ()) -> Collected:
    """Workbooks and Label Studio exports held against the key.

    Args:
        ours: folders that we write; what lies there and is no answer is no news.
    """
    from experiments.annotation_tasks import read_export
    from experiments.annotation_workbook import read_workbook
    from validation.annotation_answers import Answer, Problem, checked
    from validation.annotation_design import MODALITIES

    annotators = key.design.annotators
    readers = {".xlsx": read_workbook, ".json": read_export}
    answers: list[Answer] = []
    problems: list[Problem] = []
    notes: list[str] = []
    owners: dict[tuple[str, Modality], str] = {}
    clips = {each.content for each in key.shown}
    for path in files:
        if path.name in clips:
            continue
        # "~$": what Excel leaves beside an open workbook.
        reader = readers.get(path.suffix.lower())
        written_here = any(path.resolve().is_relative_to(folder) for folder in ours)
        if reader is None or path.name.startswith("~$"):
            if not written_here:
                notes.append(
                    f"{path.name}: not read; neither a workbook nor a Label Studio export."
                )
            continue
        read = reader(path, annotators)
        problems += read.problems
        # A file of tasks as it was handed out has nothing in it but that note.
        notes += read.notes if read.modalities or not written_here else ()
        for mode in read.modalities:
            first = owners.setdefault((read.annotator, mode), path.name)
            if first != path.name:
                expected = f"one file with {read.annotator}'s {mode}"
                problems.append(Problem(path.name, "", expected, f"it in {first} too; keep one"))
            else:
                answers += [answer for answer in read.answers if answer.modality == mode]
    found = checked(answers, key, files=owners)
    asked = {mode: sum(len(key.asked(name, mode)) for name in annotators) for mode in MODALITIES}
    return Collected(
        ratings=found.ratings,
        problems=(*problems, *found.problems),
        notes=(*notes, *found.notes),
        items=dict.fromkeys(MODALITIES, key.design.items),
        codes=key.by_code(),
        reference=key.reference,
        asked=asked,
    )


def compiled(files: Sequence[Path], modality: str) -> Collected:
    """Tables with a column a rater, as study 2 published its annotations.

    Raises:
        OptionError: a file that is none, a rating off the scale, or two of one modality.
    """
    from validation.annotation_answers import Rated
    from validation.ratings import RatingsError, read_ratings
    from validation.scale import scale_named

    ratings: list[Rated] = []
    notes = ["Without a design, who was asked for what is not known: completeness is not checked."]
    items: dict[Modality, tuple[str, ...]] = {}
    reference: dict[str, str] = {}
    for path in files:
        if path.suffix.lower() != ".csv":
            raise OptionError(
                f"answers: {path.name} is no CSV; workbooks and Label Studio exports need the "
                f"design.json they were made with: design={_likely_design(path)}, or give the "
                "round's whole folder as answers."
            )
        mode = _modality(path, modality)
        if mode in items:
            raise OptionError(f"answers: {path.name} is a second file of {mode}; give one each.")
        try:
            table = read_ratings(path, scale_named("nominal"))
        except RatingsError as error:
            raise OptionError(str(error)) from error
        items[mode] = table.items
        notes += [f"{path.name}: {note}" for note in table.notes]
        for row, item in enumerate(table.items):
            if table.reference is not None and table.reference[row] == table.reference[row]:
                reference[item] = LABELS[int(table.reference[row])]
            ratings += [
                Rated(item, rater, int(value), mode)
                for rater, value in zip(table.raters, table.values[row], strict=True)
                if value == value
            ]
    asked: dict[Modality, int | None] = dict.fromkeys(items)
    return Collected(tuple(ratings), (), tuple(notes), items, {}, reference, asked)


def _likely_design(path: Path) -> str:
    """Where the design of an answer's round lies: beside the annotators' folder, if it is there."""
    found = [folder / KEY_FILE for folder in path.parents if (folder / KEY_FILE).is_file()]
    return str(found[0]) if found else f"ROUND/{KEY_FILE}, beside the annotators' folder"


def _modality(path: Path, said: str) -> Modality:
    named = [word for word in ("text", "audio") if word in path.stem.casefold()]
    word = said if said != "auto" else named[0] if len(named) == 1 else ""
    if not word:
        raise OptionError(
            f"modality: the name of {path.name} does not say which it holds; expected text or "
            "audio, found 'auto'."
        )
    return "text" if word == "text" else "audio"


def consensus_of(collected: Collected) -> dict[Modality, list[ItemLabel]]:
    """Majority labels of every item, ties UNRESOLVED (study 2, section 6.1)."""
    import numpy as np

    from validation.consensus import majority_labels

    found = {}
    for mode, items in collected.items.items():
        mine = [each for each in collected.ratings if each.modality == mode]
        raters = sorted({each.rater for each in mine})
        values = np.full((len(items), len(raters)), np.nan)
        row, column = ({n: at for at, n in enumerate(names)} for names in (items, raters))
        for each in mine:
            values[row[each.item_id], column[each.rater]] = each.rating
        found[mode] = majority_labels(items, raters, values, LABELS, (0.0, 1.0))
    return found


def _adjudicated(
    collected: Collected, before: Mapping[Modality, Sequence[ItemLabel]], path: Path | None
) -> tuple[Mapping[Modality, Sequence[ItemLabel]], list[Problem], tuple[str, ...]]:
    from validation.adjudication import completed, read_judgements
    from validation.table import UnreadableTableError

    if path is None:
        return before, [], ()
    try:
        judgements = read_judgements(path, collected.codes, list(collected.items))
    except UnreadableTableError as error:
        raise OptionError(f"adjudication: {error}") from error
    after, wrong = completed(before, judgements, path.name)
    return after, [*judgements.problems, *wrong], judgements.notes


def _told(
    collected: Collected,
    before: Mapping[Modality, Sequence[ItemLabel]],
    after: Mapping[Modality, Sequence[ItemLabel]],
    wrong: Sequence[Problem],
    notes: Sequence[str],
    output: Path,
    skip: bool,
) -> int:
    from core.faults import SHOWN
    from experiments import annotation_tables

    problems = [*collected.problems, *wrong]
    output.mkdir(parents=True, exist_ok=True)
    annotation_tables.write_problems(problems, output / "problems.csv")
    for problem in problems[:SHOWN]:
        print(problem.said(), file=sys.stderr)
    if len(problems) > SHOWN:
        print(f"And {len(problems) - SHOWN} more, in problems.csv.", file=sys.stderr)
    for note in (*collected.notes, *notes):
        print(note)
    for mode, asked in collected.asked.items():
        came = sum(each.modality == mode for each in collected.ratings)
        print(f"{mode}: {came} ratings" + ("" if asked is None else f" of {asked} asked for") + ".")
    if problems and not skip:
        print(
            f"annotate_import: {len(problems)} faults, nothing written but {output}/problems.csv; "
            "mend the files, or leave what is faulty out with skip_invalid=true.",
            file=sys.stderr,
        )
        return 1
    if problems:
        print(f"{len(problems)} faults: what they concern is left out; see problems.csv.")
    files, unheard = annotation_tables.write_tables(
        collected.ratings, after, collected.reference, collected.codes, output
    )
    annotation_tables.print_before_after(before, after, sys.stdout)
    for line in unheard:
        print(line)
    for path in files:
        print(f"Written: {path}")
    for mode in Counter(each.modality for each in collected.ratings):
        print(f"Next: mlflow run . -e agreement -P ratings={output / f'ratings_{mode}.csv'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
