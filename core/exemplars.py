"""The labelled dialogues a model is shown before the question, and what they bar from it.

An exemplar, and every dialogue that is the same but for case, punctuation or spaces,
is left out of the evaluated set: a model that was told the answer does not detect it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from core.seeds import seed_of

_WORD = re.compile(r"[^\W_]+")


class ExemplarError(ValueError):
    """Exemplars that cannot be had; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Selection:
    """A dataset divided into what is asked about and what is shown.

    Attributes:
        evaluated: rows asked about, in their order.
        exemplars: rows shown, in the order they are shown; the same columns.
        excluded: item id -> why it is not evaluated, the exemplars among them.
    """

    evaluated: pd.DataFrame
    exemplars: pd.DataFrame
    excluded: dict[str, str] = field(default_factory=dict)


def everything(items: pd.DataFrame) -> Selection:
    """All items evaluated, none shown."""
    return Selection(items, items.head(0))


def select(
    items: pd.DataFrame, *, shots: int, ids: Sequence[str], seed: int, include: bool
) -> Selection:
    """Choose exemplars and leave them, and dialogues equal to them, out of the rest.

    Args:
        items: all of the dataset, with item_id, transcript, label YES or NO, and perhaps
            audio and techniques.
        shots: how many to draw, half of each label; not looked at where ids are given.
        ids: the exemplars by id, in the order they are to be shown.
        seed: of the draw; a smaller or reordered dataset draws the same of those it has.
        include: True keeps them in the evaluated set.

    Raises:
        ExemplarError: an id that is not there, given twice, or without words; too few
            dialogues to draw from, or none left to evaluate.
    """
    if not ids and not shots:
        return everything(items)
    chosen = _named(items, ids) if ids else _drawn(items, shots, seed)
    exemplars = items.set_index("item_id", drop=False).loc[chosen].reset_index(drop=True)
    shown = dict(zip(exemplars["transcript"].map(same_words), chosen, strict=True))
    letters = {_letters(exemplar) for exemplar in exemplars["transcript"]}
    excluded: dict[str, str] = {}
    for item_id, transcript in zip(items["item_id"], items["transcript"], strict=True):
        if item_id in chosen:
            excluded[item_id] = "an exemplar"
        elif _letters(transcript) not in letters:
            continue
        elif (twin := shown.get(same_words(transcript))) is not None:
            excluded[item_id] = f"the same dialogue as exemplar {twin}"
    if include:
        return Selection(items, exemplars)
    evaluated = items[~items["item_id"].isin(list(excluded))].reset_index(drop=True)
    if evaluated.empty:
        raise ExemplarError(
            f"exemplars: showing {', '.join(chosen)} leaves no dialogue to evaluate; take fewer "
            "shots or a larger dataset."
        )
    return Selection(evaluated, exemplars, excluded)


def same_words(transcript: str) -> str:
    """A transcript without case, punctuation and spacing: equal texts are one dialogue."""
    return " ".join(_WORD.findall(transcript.replace("’", "'").replace("'", "").casefold()))


def _letters(transcript: str) -> tuple[int, ...]:
    """How many there are of some letters: equal words have equal letters, and they count fast."""
    folded = transcript.casefold()
    return tuple(map(folded.count, "etaoinshr"))


def _named(items: pd.DataFrame, ids: Sequence[str]) -> list[str]:
    if twice := sorted({item_id for item_id in ids if list(ids).count(item_id) > 1}):
        raise ExemplarError(f"exemplars: {', '.join(twice)} is named twice; name each once.")
    known = dict(zip(items["item_id"], items["transcript"], strict=True))
    if unknown := [item_id for item_id in ids if item_id not in known]:
        raise ExemplarError(
            f"exemplars: there is no dialogue {', '.join(unknown)} in this dataset; give ids of "
            "its manifest."
        )
    if wordless := [item_id for item_id in ids if not same_words(known[item_id])]:
        raise ExemplarError(f"exemplars: {', '.join(wordless)} has no words; choose another.")
    return list(ids)


def _drawn(items: pd.DataFrame, shots: int, seed: int) -> list[str]:
    if shots % 2:
        raise ExemplarError(
            f"shots: expected an even number, half manipulative and half not, found {shots}."
        )
    taken: set[str] = set()
    by_label = {label: _some(items, label, shots // 2, seed, taken) for label in ("NO", "YES")}
    # In turns, and a NO first: the study gives two of each and no order.
    return [item_id for pair in zip(*by_label.values(), strict=True) for item_id in pair]


def _some(items: pd.DataFrame, label: str, count: int, seed: int, taken: set[str]) -> list[str]:
    rows = items[items["label"] == label].to_dict("records")
    # What an exemplar is to show comes first: a clip to play, and for YES a tactic to name.
    # Within that, an order that depends on nothing but the seed and the dialogue's own id.
    rows.sort(
        key=lambda row: (
            pd.isna(row.get("audio")),
            label == "YES" and not _has_words(row.get("techniques")),
            seed_of(seed, row["item_id"], "exemplar"),
        )
    )
    chosen: list[str] = []
    for row in rows:
        words = same_words(row["transcript"])
        if len(chosen) < count and words and words not in taken:
            taken.add(words)
            chosen.append(row["item_id"])
    if len(chosen) < count:
        raise ExemplarError(
            f"shots: expected {count} dialogues labelled {label} to show, found {len(chosen)}; "
            "take fewer shots, or shots=0 for none."
        )
    return chosen


def _has_words(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())
