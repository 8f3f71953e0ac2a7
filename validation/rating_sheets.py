"""A blinded round of distress ratings: which code an expert is shown is which turn.

Every expert rates every turn, each in a random order of their own, as in study 1 (five
experts, 194 clips of 8 sessions). Codes and clip names say nothing of the turn, and no
label is in what an expert gets. The key stays with whoever runs the study.

Source: CBT-Audio, section 3.2.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.faults import shown as said_value
from core.replacing import replace_text
from core.seeds import generator
from validation.annotation_answers import Problem
from validation.annotation_key import fingerprint

SCHEMA = 1
LEVELS = (1, 2, 3, 4, 5)
EXPECTED = "a whole number 1-5, or nothing"


class SheetError(ValueError):
    """A round that cannot be made, or a key that cannot be read; one sentence."""


@dataclass(frozen=True)
class Turn:
    """One turn as it is shown.

    Attributes:
        clip: file name, made of the sound itself.
        words: fingerprint of transcript and context, to see that a row is whole.
    """

    code: str
    item_id: str
    clip: str
    words: str


@dataclass(frozen=True)
class RatingKey:
    """All that is needed to understand the ratings.

    Attributes:
        dataset_hash: of the version shown; empty where the key does not say.
        turns: in the order of the dataset.
        orders: expert -> codes in the order shown.
    """

    dataset: str
    dataset_hash: str
    seed: int
    turns: tuple[Turn, ...]
    orders: Mapping[str, tuple[str, ...]]

    def by_code(self) -> dict[str, Turn]:
        return {turn.code: turn for turn in self.turns}


@dataclass(frozen=True)
class Cell:
    """A rating as it was found.

    Attributes:
        expert: whose it is.
        given: the cell as typed: text, number, truth or nothing.
        place: file, sheet and cell, such as "expert_1.xlsx, Ratings!E7".
        clip, words: what stands beside it; None where it is not there to see.
    """

    expert: str
    code: str
    given: object
    file: str
    place: str
    clip: str | None = None
    words: str | None = None


@dataclass(frozen=True)
class Ratings:
    """What stands: (expert, item id, level) each; what does not; what was left empty."""

    given: tuple[tuple[str, str, int], ...]
    problems: tuple[Problem, ...]
    empty: int


def words_of(transcript: str, context: str) -> str:
    """Fingerprint of what a row shows in words."""
    return fingerprint(f"{context}\n{transcript}")


def key_of(
    dataset: str,
    dataset_hash: str,
    turns: Sequence[tuple[str, str, str]],
    *,
    experts: int,
    seed: int,
) -> RatingKey:
    """The key of a round.

    Args:
        turns: (item id, clip's file name, words' fingerprint).

    Raises:
        SheetError: fewer than two experts, or no turn.
    """
    if experts < 2:
        raise SheetError(f"experts: expected two or more, found {experts}: one has no agreement.")
    if not turns:
        raise SheetError("data: no turn to rate.")
    shown = tuple(
        Turn(_code(seed, dataset_hash, item), item, clip, words) for item, clip, words in turns
    )
    codes = [turn.code for turn in shown]
    if len(set(codes)) < len(codes):
        raise SheetError("seed: two turns would get the same code; use another seed.")
    orders = {}
    for number in range(1, experts + 1):
        name = f"expert_{number}"
        places = generator(seed, name, "ratings").permutation(len(codes))
        orders[name] = tuple(codes[place] for place in places)
    return RatingKey(dataset, dataset_hash, seed, shown, orders)


def checked(key: RatingKey, cells: Iterable[Cell]) -> Ratings:
    """Ratings that stand, and every fault with its place.

    A turn that is missing, foreign, there twice, or beside another turn's clip or words is a
    fault; an empty cell is none, since the consensus is of the available ratings.
    """
    turns, problems = key.by_code(), []
    given: dict[tuple[str, str], int] = {}
    empty, seen = 0, Counter[tuple[str, str]]()
    for cell in cells:
        turn = turns.get(cell.code)
        if turn is None:
            found = said_value(cell.code)
            problems.append(Problem(cell.file, cell.place, "a code of this round", found))
            continue
        seen[cell.expert, cell.code] += 1
        if seen[cell.expert, cell.code] > 1:
            given.pop((cell.expert, turn.item_id), None)
            found = f"{cell.code} once more"
            problems.append(Problem(cell.file, cell.place, "each turn once", found))
            continue
        if (cell.clip or turn.clip) != turn.clip or (cell.words or turn.words) != turn.words:
            expected = f"the clip and the words of {cell.code}"
            problems.append(Problem(cell.file, cell.place, expected, "those of another turn"))
            continue
        level = level_of(cell.given)
        if level is not None:
            given[cell.expert, turn.item_id] = level
        elif cell.given is None or not str(cell.given).strip():
            empty += 1
        else:
            problems.append(Problem(cell.file, cell.place, EXPECTED, said_value(cell.given)))
    experts = {expert for expert, _ in seen}
    for expert in sorted(experts):
        lost = [code for code in turns if not seen[expert, code]]
        if lost:
            expected = f"all {len(turns)} turns"
            found = f"{len(turns) - len(lost)}; {lost[0]} is missing"
            problems.append(Problem(expert, "", expected, found))
    return Ratings(
        tuple((expert, item, level) for (expert, item), level in given.items()),
        tuple(problems),
        empty,
    )


def level_of(given: object) -> int | None:
    """1-5, as a number or as text with blanks around; None for anything else.

    3.5 is no level, and TRUE is no 1.
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        return int(given) if given.strip() in map(str, LEVELS) else None
    if isinstance(given, int | float) and given in LEVELS:
        return int(given)
    return None


def write_key(key: RatingKey, path: Path) -> None:
    """As JSON that `read_key` reads back equal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "schema": SCHEMA,
        "private": "This file tells which code is which turn. Keep it from the experts.",
        **asdict(key),
        "sha256": _digest(key),
    }
    replace_text(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def read_key(path: Path) -> RatingKey:
    """A key as `write_key` left it.

    Raises:
        SheetError: not a key, or changed since it was written.
    """
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
        key = RatingKey(
            str(said["dataset"]),
            str(said.get("dataset_hash", "")),
            int(said["seed"]),
            tuple(Turn(**turn) for turn in said["turns"]),
            {str(name): tuple(codes) for name, codes in said["orders"].items()},
        )
        stated = said["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SheetError(f"{path}: not the key of ratings_export ({error!r:.80}).") from error
    if stated != _digest(key):
        raise SheetError(f"{path}: changed after it was written; use it as it was written.")
    return key


def _digest(key: RatingKey) -> str:
    told = asdict(key)
    if not key.dataset_hash:
        del told["dataset_hash"]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _code(seed: int, dataset_hash: str, item_id: str) -> str:
    # A letter first: a spreadsheet would make a number of 12345e6789.
    text = "\x1f".join((str(seed), dataset_hash, "rating", item_id))
    return "D" + sha256(text.encode()).hexdigest()[:10]
