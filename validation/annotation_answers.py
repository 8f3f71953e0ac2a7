"""What annotators answered, held against what they were asked.

Takes answers with the place each stands in (file, sheet and cell), whatever they
were written with, and gives ratings and every fault: a rating off the scale, an
item that is missing, foreign, there twice or beside another item's content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.faults import shown as said_value
from validation.annotation_design import MODALITIES, Modality
from validation.annotation_key import Key, Shown

EXPECTED = "0 or 1"
_CLASSES = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "no": 0, "yes": 1}


@dataclass(frozen=True)
class Answer:
    """One row or task as it was found.

    Attributes:
        file: its name.
        annotator: whose it is.
        modality: of the tab or task.
        code: as found, without surrounding blanks.
        given: the rating's cell as typed: text, number, truth or nothing.
        place: of the rating, such as "Audio Only!C17".
        row_place: of the item itself, such as "Audio Only!A17".
        content: fingerprint or file name found beside it; None where it is not there to see.
        instead: what is wrong with the cell itself, such as "a merged cell".
    """

    file: str
    annotator: str
    modality: Modality
    code: str
    given: object
    place: str
    row_place: str
    content: str | None = None
    instead: str | None = None


@dataclass(frozen=True)
class Problem:
    """A fault and where it is; `place` is "" where the whole file is meant."""

    file: str
    place: str
    expected: str
    found: str

    def said(self) -> str:
        """As one sentence."""
        where = f"{self.file}, {self.place}" if self.place else self.file
        return f"{where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Read:
    """What one file holds.

    Attributes:
        annotator: whose it is; "" where that cannot be known, and nothing is read then.
        modalities: those it holds answers in.
        answers: faulty ones too.
        problems: of the file itself.
        notes: what is there and was not read.
    """

    annotator: str
    modalities: tuple[Modality, ...]
    answers: tuple[Answer, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Rated:
    """One rating that stands."""

    item_id: str
    rater: str
    rating: int
    modality: Modality


@dataclass(frozen=True)
class Checked:
    """All that came of the answers; a faulty answer is a problem and no rating."""

    ratings: tuple[Rated, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def binary(given: object) -> int | None:
    """0 or 1 for 0, 1, NO and YES, as number or text with blanks around; None for anything else.

    TRUE and FALSE are refused: a spreadsheet makes them of comparisons and of check boxes,
    and whether they answer the question asked is a guess.
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return int(given) if given in (0, 1) else None
    return _CLASSES.get(given.strip().casefold()) if isinstance(given, str) else None


def checked(
    answers: Sequence[Answer], key: Key, *, files: Mapping[tuple[str, Modality], str]
) -> Checked:
    """Hold answers against the key.

    Args:
        answers: of every annotator.
        files: (annotator, modality) -> the file that should hold their answers, for those
            who handed one in; the others are reported whole.

    Returns:
        Ratings in the order of the design, and every problem.
    """
    problems: list[Problem] = []
    ratings: list[Rated] = []
    as_text = 0
    known = key.by_code()
    for annotator in key.design.annotators:
        for mode in MODALITIES:
            if (annotator, mode) not in files:
                continue
            mine = [a for a in answers if (a.annotator, a.modality) == (annotator, mode)]
            asked = key.asked(annotator, mode)
            faulty, wrong = _misplaced(mine, asked, known, files[annotator, mode])
            problems += wrong
            for answer in mine:
                value = binary(answer.given)
                if answer.instead or value is None:
                    found = answer.instead or said_value(answer.given)
                    problems.append(Problem(answer.file, answer.place, EXPECTED, found))
                elif answer.code not in faulty:
                    as_text += isinstance(answer.given, str) and answer.given not in ("YES", "NO")
                    item = known[answer.code].item_id
                    ratings.append(Rated(item, annotator, value, mode))
    problems += _absent(key, files)
    notes = (f"{as_text} ratings were written as text and read as 0 or 1.",) if as_text else ()
    return Checked(tuple(ratings), tuple(problems), notes)


def _misplaced(
    answers: Sequence[Answer], asked: Sequence[Shown], known: Mapping[str, Shown], file: str
) -> tuple[set[str], list[Problem]]:
    """Codes that cannot be trusted, and why: the integrity of one batch."""
    expected = {each.code: each for each in asked}
    problems = []
    faulty = set()
    times = Counter(answer.code for answer in answers)
    first: dict[str, str] = {}
    for answer in answers:
        wrong: tuple[str, str] | None = None
        if answer.code not in expected:
            other = "an item of somebody else's batch" if answer.code in known else "no such item"
            wrong = ("an item of this batch", f"{said_value(answer.code)}, {other}")
        elif times[answer.code] > 1 and answer.code in first:
            wrong = ("each item once", f"{answer.code} as in {first[answer.code]}")
        elif answer.content is not None and answer.content != expected[answer.code].content:
            what = "conversation" if answer.modality == "text" else "file"
            wrong = (f"the {what} of {answer.code}", "another one: were cells moved or edited?")
        if wrong:
            problems.append(Problem(answer.file, answer.row_place, *wrong))
        if wrong or times[answer.code] > 1:
            faulty.add(answer.code)
        first.setdefault(answer.code, answer.row_place)
    tab = _tab(answers)
    problems += [
        Problem(file, tab, f"item {each.code}", "no row with it")
        for each in asked
        if each.code not in times
    ]
    return faulty, problems


def _tab(answers: Sequence[Answer]) -> str:
    tab, mark, _ = answers[0].row_place.partition("!") if answers else ("", "", "")
    return tab if mark else ""


def _absent(key: Key, files: Iterable[tuple[str, Modality]]) -> Iterator[Problem]:
    there = set(files)
    for annotator in key.design.annotators:
        lost = [mode for mode in MODALITIES if (annotator, mode) not in there]
        if lost:
            number = sum(len(key.asked(annotator, mode)) for mode in lost)
            what = " and ".join(lost)
            yield Problem(annotator, "", f"{number} ratings ({what})", "no file with them")


def completeness(key: Key, ratings: Sequence[Rated]) -> dict[Modality, tuple[int, int]]:
    """For each modality the ratings that came and those that were asked for."""
    came = Counter(each.modality for each in ratings)
    return {
        mode: (came[mode], sum(len(key.asked(name, mode)) for name in key.design.annotators))
        for mode in MODALITIES
    }
