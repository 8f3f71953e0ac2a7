"""The clips that variants play: made once, kept among all clips under their content.

Each function takes the items' own clips by name and gives other ones by name, with a reason
for each item that has none. Sound is changed in memory; a clip that was made before is
found again by what it was made from, and not made a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import scipy
import soxr

from core.audio import RATE_HZ, Samples, cores, holds_clip, read_samples, write_clip
from core.replacing import replacing
from core.seeds import generator, seed_of
from core.variants.degradation import Degradation, UnchangedError, degraded

# Counts up whenever the same change of the same clip would give other samples.
CHANGES = 1


@dataclass
class Made:
    """Clips of a variant.

    Attributes:
        clips: item id -> clip name.
        reasons: item id -> why there is no clip.
        scaled_db: item id -> what full scale took from the level (< 0), where it did.
        notes: what a reader has to know of them, a sentence each.
    """

    clips: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    scaled_db: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Kept:
    name: str
    samples: int
    scaled_db: float


def silent(own: Mapping[str, str], folder: Path) -> Made:
    """Digital silence exactly as long as each clip."""

    def make(item_id: str, name: str) -> _Kept:
        sound = read_samples(folder / name)
        if not sound.any():
            raise UnchangedError("its own clip is digital silence already")
        nothing = np.zeros_like(sound)
        return _Kept(write_clip(folder, nothing).name, len(nothing), 0.0)

    return _each(own, make)


def worse(
    own: Mapping[str, str], change: Degradation, folder: Path, *, seed: int, index: Path
) -> Made:
    """Each clip with the change made; noise is drawn for the item by the run's seed."""

    def make(item_id: str, name: str) -> _Kept:
        drawn = str(seed_of(seed, item_id, "noise")) if change.kind == "noise" else ""
        entry = index / f"{_key(name, change.slug, drawn)}.json"
        if (known := _remembered(entry)) and holds_clip(folder / known.name, known.samples):
            return known
        found = degraded(
            read_samples(folder / name), change, lambda: generator(seed, item_id, "noise")
        )
        path = write_clip(folder, found.samples)
        made = _Kept(path.name, len(found.samples), found.scaled_db)
        _remember(entry, made)
        return made

    found = _each(own, make)
    if found.scaled_db:
        lost = np.array(list(found.scaled_db.values()))
        got = (
            f"; they got {change.amount + float(np.median(lost)):+.1f} dB at the median"
            if change.kind == "level"
            else f", by {float(np.median(lost)):.1f} dB at the median"
        )
        found.notes.append(
            f"{change.meaning}: {len(lost)} of {len(own)} clips would have gone beyond full scale "
            f"and were scaled to it as a whole, not clipped{got}."
        )
    return found


def spoken(
    own: Mapping[str, str], sounds: Iterable[tuple[str, Samples | str]], folder: Path
) -> Made:
    """Clips of samples that come one by one, each with its item's id; words are a reason."""
    found = Made()
    for item_id, sound in sounds:
        if isinstance(sound, str):
            found.reasons[item_id] = sound
        else:
            found.clips[item_id] = write_clip(folder, sound).name
    return other_than(own, found)


def other_than(own: Mapping[str, str], made: Made) -> Made:
    """What was made, without clips that are the item's own after all; these have a reason."""
    same = [item_id for item_id, name in made.clips.items() if name == own.get(item_id)]
    for item_id in same:
        del made.clips[item_id]
        made.reasons[item_id] = "the changed clip is the item's own: there was nothing to change"
    return made


def _each(own: Mapping[str, str], make: Callable[[str, str], _Kept]) -> Made:
    found = Made()

    def one(item_id: str) -> _Kept | str:
        try:
            return make(item_id, own[item_id])
        except UnchangedError as error:
            return str(error)

    with ThreadPoolExecutor(cores()) as pool:
        for item_id, made in zip(own, pool.map(one, own), strict=True):
            if isinstance(made, str):
                found.reasons[item_id] = made
                continue
            found.clips[item_id] = made.name
            if made.scaled_db < 0:
                found.scaled_db[item_id] = made.scaled_db
    return other_than(own, found)


def _key(name: str, change: str, drawn: str) -> str:
    """What decides the samples: the clip's content (its name), the change, the draw, versions."""
    versions = (CHANGES, RATE_HZ, soxr.__version__, scipy.__version__, np.__version__)
    return sha256(repr((name, change, drawn, versions)).encode()).hexdigest()[:32]


def _remembered(entry: Path) -> _Kept | None:
    try:
        return _Kept(**json.loads(entry.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _remember(entry: Path, made: _Kept) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    # A lost entry costs one making, so it is not synced.
    with replacing(entry, durable=False) as stream:
        stream.write(json.dumps(vars(made)).encode())
