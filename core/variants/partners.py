"""Which other item's clip stands in for an item's own, so that voice and words do not match.

The nearest likeness is tried first: another turn of the same recording (the same voice and
microphone), then the same gender, then any item. Within a likeness the order is drawn for
each item by itself, so neither a limit nor the order of work changes a partner. Labels play
no part: a partner may well have the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from core.manifest import is_nothing
from core.seeds import generator, seed_of
from core.speech.voices import every_voice

DRAWS = 20
"""Candidates of a large likeness that are tried before the next one."""

_WORDS = {
    **dict.fromkeys(("f", "w", "woman", "girl"), "female"),
    **dict.fromkeys(("m", "man", "boy"), "male"),
}

Likeness = Callable[[Mapping[Hashable, Any]], Hashable | None]


@dataclass(frozen=True)
class Partner:
    """Whose clip is heard instead, and what the two have in common ("anything": nothing)."""

    item_id: str
    likeness: str


def recording_of(row: Mapping[Hashable, Any]) -> Hashable | None:
    """The session an item is from."""
    return _told(row.get("session_id"))


def gender_of(row: Mapping[Hashable, Any]) -> Hashable | None:
    """The speaker's gender: the manifest's, or that of a TTS voice we know by name.

    "f", "woman" and the like are "female", and so for "male"; other words stay what they are.
    """
    if told := _told(row.get("gender")):
        return _WORDS.get(told.lower(), told.lower())
    return _genders().get(str(row.get("voice")))


def voices_of(row: Mapping[Hashable, Any]) -> Hashable | None:
    """The voices of a spoken dialogue."""
    return _told(row.get("voices"))


LIKENESSES: Mapping[str, Likeness] = {
    "recording": recording_of,
    "gender": gender_of,
    "voices": voices_of,
}
"""Nearest first. An item that does not tell its group has no partner by that likeness."""


def partners(
    items: pd.DataFrame,
    own: Mapping[str, str],
    playable: Callable[[Sequence[str]], Mapping[str, str]],
    *,
    seed: int,
) -> dict[str, Partner]:
    """A partner for each item, where there is one.

    Args:
        items: all that may be partners.
        own: the clip names of those that need one, by item id.
        playable: gives the clip names of those of some ids that can be heard: decoded, and not
            silent throughout. It is asked about few ids at a time.
        seed: the run's.

    Returns:
        By item id; an item that every candidate sounds the same as is not among them. A
        partner's clip is never the item's own, also where two items have equal sound.
    """
    rows = {str(row["item_id"]): row for row in items.to_dict("records")}
    groups = _groups(rows)
    queues = {item_id: _candidates(item_id, rows, groups, seed) for item_id in own}
    found: dict[str, Partner] = {}
    while queues:
        tried = {item_id: next(queue, None) for item_id, queue in queues.items()}
        asked = {partner.item_id for partner in tried.values() if partner}
        heard = playable(sorted(asked))
        for item_id, partner in tried.items():
            if partner is None:
                del queues[item_id]
            elif heard.get(partner.item_id, own[item_id]) != own[item_id]:
                found[item_id] = partner
                del queues[item_id]
    return {item_id: found[item_id] for item_id in own if item_id in found}


def _candidates(
    item_id: str,
    rows: Mapping[str, Mapping[Hashable, Any]],
    groups: Mapping[tuple[str, Hashable], Sequence[str]],
    seed: int,
) -> Iterator[Partner]:
    seen = {item_id}
    for name, likeness in (*LIKENESSES.items(), ("anything", lambda row: "all")):
        key = likeness(rows[item_id])
        alike = groups.get((name, key), ()) if key is not None else ()
        for other in _order(item_id, alike, seed, name):
            if other not in seen:
                seen.add(other)
                yield Partner(other, name)


def _order(item_id: str, alike: Sequence[str], seed: int, likeness: str) -> Sequence[str]:
    if len(alike) <= DRAWS:
        return sorted(alike, key=lambda other: seed_of(seed, item_id, other, "mismatched"))
    # A large group is not put in order for each of its items, which would be quadratic.
    drawing = generator(seed, item_id, "mismatched", likeness)
    return [alike[place] for place in drawing.integers(len(alike), size=DRAWS)]


def _groups(
    rows: Mapping[str, Mapping[Hashable, Any]],
) -> dict[tuple[str, Hashable], list[str]]:
    found: dict[tuple[str, Hashable], list[str]] = {}
    for item_id, row in rows.items():
        for name, likeness in LIKENESSES.items():
            key = likeness(row)
            if key is not None:
                found.setdefault((name, key), []).append(item_id)
        found.setdefault(("anything", "all"), []).append(item_id)
    return found


def _told(value: Any) -> str | None:
    return None if is_nothing(value) or not str(value).strip() else str(value).strip()


@cache
def _genders() -> Mapping[str, str]:
    return {voice.name: voice.gender for voice in every_voice()}
