"""Who rates what in a human re-annotation: batches that overlap, one text and one audio batch each.

The items lie in random order on a ring. A batch is a stretch of it, and the next
batch begins before it ends: so many items have two batches, the others one, and
none more. Study 2 (SpeechMentalManip, section 6.1) says ten batches a modality,
eight annotators with one batch each and 20-50 % overlap. Its data show what that
came to: eight batches with one rater each and two that five or six raters share.
80 of 100 items have a single rating, and whoever rated a shared item in text
rated it in audio too. Here every item is rated, as evenly as the overlap allows,
and by different people in text and audio.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import ceil
from typing import Literal, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment

from core.seeds import generator

Modality = Literal["text", "audio"]
MODALITIES: tuple[Modality, ...] = get_args(Modality)
LEAST_OVERLAP, MOST_OVERLAP = 0.2, 0.5
# A batch is a whole number of items, so a wished share is met only so closely.
TOLERANCE = 0.05
# A modality, in section 6.1 of study 2.
STUDY_BATCHES = 10


class DesignError(ValueError):
    """A design that cannot be; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Share:
    """What one annotator rates in one modality.

    Attributes:
        batch: whose items these are; a batch that nobody took is dealt out to others.
        items: ids in the order in which they are shown.
    """

    annotator: str
    modality: Modality
    batch: int
    items: tuple[str, ...]


@dataclass(frozen=True)
class Design:
    """Who rates what.

    Attributes:
        items: ids, in the order of the dataset.
        annotators: their names.
        batches: the items of each; the same in both modalities.
        shares: two for each annotator, in the order in which to work on them.
        overlap: share of a batch that the next one was to hold too.
        seed: of every random order.
        both_modalities: an annotator rates the same batch as text and as audio.
    """

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    batches: tuple[tuple[str, ...], ...]
    shares: tuple[Share, ...]
    overlap: float
    seed: int
    both_modalities: bool


@dataclass(frozen=True)
class Balance:
    """What a modality can be expected to hold once everyone has answered.

    Attributes:
        expected: mean number of ratings an item.
        items_by_ratings: number of ratings -> items that get so many.
        overlap: mean share of a batch that the next one holds too.
        shared_by_pair: for every two annotators the items that both rate.
    """

    expected: float
    items_by_ratings: dict[int, int]
    overlap: float
    shared_by_pair: dict[tuple[str, str], int]


def designed(
    items: Sequence[str],
    *,
    annotators: int,
    batches: int,
    overlap: float,
    seed: int = 0,
    both_modalities: bool = False,
) -> Design:
    """A checked design; equal arguments give an equal one.

    Args:
        items: ids, each once.
        annotators: how many; with more than batches some share a batch, with fewer
            (at least half as many) the items of batches that nobody took are dealt out.
        batches: a modality.
        overlap: share of a batch that the next one holds too, 0.2-0.5; 0 where every
            batch has two annotators or more.
        both_modalities: give an annotator the same batch as text and as audio, which
            compares the modalities within a person, and lets the one colour the other.

    Raises:
        DesignError: for the first wish that cannot be met.
    """
    _refuse(items, annotators, batches, overlap)
    windows = _windows(len(items), batches, overlap)
    _refuse_rounding(len(items), batches, overlap)
    rng = generator(seed, "annotation", "batches")
    ring = [items[place] for place in rng.permutation(len(items))]
    slots = np.array([place * batches // annotators for place in range(annotators)])
    text = rng.permutation(slots)
    audio = text if both_modalities else _apart(text, slots, windows, overlap, rng)
    names = _names(annotators)
    taken = {"text": text, "audio": audio}
    held = {mode: [set(windows[batch]) for batch in taken[mode]] for mode in MODALITIES}
    for mode in MODALITIES:
        other = held["audio" if mode == "text" else "text"]
        closed = [set() for _ in names] if both_modalities else other
        _deal(held[mode], closed, len(items), rng)
    text_first = rng.permutation([place % 2 == 0 for place in range(annotators)])
    shares = tuple(
        Share(
            name,
            mode,
            int(taken[mode][place]),
            _shuffled([ring[at] for at in sorted(held[mode][place])], seed, name, mode),
        )
        for place, name in enumerate(names)
        for mode in (MODALITIES if text_first[place] else MODALITIES[::-1])
    )
    made = Design(
        tuple(items),
        names,
        tuple(tuple(ring[at] for at in window) for window in windows),
        shares,
        overlap,
        seed,
        both_modalities,
    )
    if faults := design_faults(made):
        raise DesignError(faults[0])
    return made


def fitting(
    items: Sequence[str],
    *,
    annotators: int,
    overlap: float,
    seed: int = 0,
    both_modalities: bool = False,
) -> Design:
    """`designed` with the study's ten batches, or the most below that can be had.

    Raises:
        DesignError: no number of batches will do; says why the fewest will not.
    """
    with_batches = partial(
        designed,
        items,
        annotators=annotators,
        overlap=overlap,
        seed=seed,
        both_modalities=both_modalities,
    )
    for batches in range(STUDY_BATCHES, 2, -1):
        with suppress(DesignError):
            return with_batches(batches=batches)
    return with_batches(batches=2)


def _refuse(items: Sequence[str], annotators: int, batches: int, overlap: float) -> None:
    if len(set(items)) != len(items):
        twice = next(item for item, count in Counter(items).items() if count > 1)
        raise DesignError(f"items: {twice} is there twice; an item is rated under one id.")
    if annotators < 2:
        raise DesignError(
            f"annotators: expected 2 or more, found {annotators}; one alone agrees with nobody."
        )
    if batches < 2:
        raise DesignError(f"batches: expected 2 or more, found {batches}.")
    if not LEAST_OVERLAP <= overlap <= MOST_OVERLAP and overlap != 0:
        raise DesignError(
            f"overlap: expected {LEAST_OVERLAP}-{MOST_OVERLAP} (a share, not per cent), or 0 with "
            f"two annotators or more for each batch, found {overlap:g}."
        )
    if overlap == 0 and annotators < 2 * batches:
        raise DesignError(
            f"overlap: 0 needs two annotators for each batch, {2 * batches} in all, or no item is "
            f"rated twice; found {annotators}."
        )
    if 2 * annotators < batches:
        raise DesignError(
            f"batches: {annotators} annotators with one batch each cannot cover {batches}; use at "
            f"most {2 * annotators} batches, better {annotators}."
        )


def _refuse_rounding(items: int, batches: int, overlap: float) -> None:
    if _close(items, batches, overlap):
        return
    fewer = range(min(batches - 1, items), 1, -1)
    better = next((number for number in fewer if _close(items, number, overlap)), 0)
    advice = f"use {better} batches" if better else "use more items"
    raise DesignError(
        f"batches: {items} items make {batches} batches too small for an overlap of "
        f"{overlap:g}; {advice}."
    )


def _close(items: int, batches: int, overlap: float) -> bool:
    if items < batches:
        return False
    shares = _overlaps([set(window) for window in _windows(items, batches, overlap)])
    off = abs(float(np.mean(shares)) - overlap)
    return off <= TOLERANCE + 1e-9 and (overlap == 0 or min(shares) > 0)


def _windows(items: int, batches: int, overlap: float) -> list[list[int]]:
    """Places on the ring of each batch: equally long, starting at equal distances.

    Starts at floor(b * items / batches) leave any two stretches of one length with as
    many starts, give or take one: that is what balances the ratings.
    """
    starts = [batch * items // batches for batch in range(batches + 2)]
    # With half of it shared, a batch just reaches the next but one; rounded up it would enter it.
    room = min((items if batches < 3 else items * 2 // batches), items)
    size = min(int(items / batches / (1 - overlap) + 0.5), room)
    if not overlap:
        ends = [(batch + 1) * items // batches for batch in range(batches)]
        return [list(range(start, end)) for start, end in zip(starts, ends, strict=False)]
    return [[(start + at) % items for at in range(size)] for start in starts[:batches]]


def _overlaps(batches: Sequence[Set[object]]) -> list[float]:
    """For each batch the share of it that the next one on the ring holds."""
    following = [*batches[1:], batches[0]]
    return [len(one & other) / len(one) for one, other in zip(batches, following, strict=True)]


def _apart(
    text: np.ndarray[tuple[int], np.dtype[np.int64]],
    slots: np.ndarray[tuple[int], np.dtype[np.int64]],
    windows: Sequence[Sequence[int]],
    overlap: float,
    rng: np.random.Generator,
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """An audio batch for each annotator that shares no item with the text batch, at random."""
    sets = [set(window) for window in windows]
    cost = rng.random((len(text), len(slots)))
    for row, mine in enumerate(text):
        for column, theirs in enumerate(slots):
            if sets[mine] & sets[theirs]:
                cost[row, column] = np.inf
    try:
        _, chosen = linear_sum_assignment(cost)
    except ValueError:
        raise DesignError(
            f"batches: with {len(windows)} batches and an overlap of {overlap:g} somebody would "
            "rate an item both as text and as audio; use more batches, or allow it with "
            "both_modalities=true."
        ) from None
    return np.asarray(slots[chosen])


def _deal(
    held: list[set[int]], closed: Sequence[set[int]], items: int, rng: np.random.Generator
) -> None:
    """Give each place of the ring that nobody holds to whoever holds least and may have it."""
    order = rng.permutation(len(held))
    missing = sorted(set(range(items)) - set().union(*held))
    for place in rng.permutation(missing):
        free = [who for who in order if int(place) not in closed[who]]
        if not free:
            raise DesignError(
                "annotators: too few to rate every item without meeting one as text and as audio; "
                "use as many annotators as batches."
            )
        held[min(free, key=lambda who: len(held[who]))].add(int(place))


def _names(annotators: int) -> tuple[str, ...]:
    width = len(str(annotators))
    return tuple(f"annotator_{number:0{width}d}" for number in range(1, annotators + 1))


def _shuffled(items: Sequence[str], seed: int, *names: str) -> tuple[str, ...]:
    order = generator(seed, "annotation", "order", *names).permutation(len(items))
    return tuple(items[place] for place in order)


def shares_of(design: Design, modality: Modality) -> Iterator[Share]:
    """The shares of a modality, an annotator after the other."""
    return (share for share in design.shares if share.modality == modality)


def balance(design: Design, modality: Modality) -> Balance:
    """How many ratings the items of a modality get, and what every two annotators share."""
    shares = list(shares_of(design, modality))
    ratings = Counter(item for share in shares for item in share.items)
    counts = Counter(ratings[item] for item in design.items)
    held = {share.annotator: set(share.items) for share in shares}
    pairs = {
        (one, other): len(held[one] & held[other]) for one, other in combinations(sorted(held), 2)
    }
    return Balance(
        expected=sum(ratings.values()) / len(design.items),
        items_by_ratings=dict(sorted(counts.items())),
        overlap=float(np.mean(_overlaps([set(batch) for batch in design.batches]))),
        shared_by_pair=pairs,
    )


def design_faults(design: Design) -> list[str]:
    """What a design gets wrong, in sentences; empty for every design that `designed` gives.

    Also of use for a design that was written to a file and may have been edited since.
    """
    faults: list[str] = []
    known = set(design.items)
    by_annotator: dict[str, dict[Modality, list[Share]]] = {
        name: {mode: [] for mode in MODALITIES} for name in design.annotators
    }
    for share in design.shares:
        where = f"{share.annotator}, {share.modality}"
        if share.annotator not in by_annotator:
            faults.append(f"{where}: this annotator is not in the list of annotators.")
            continue
        by_annotator[share.annotator][share.modality].append(share)
        if foreign := set(share.items) - known:
            faults.append(f"{where}: {min(foreign)} is no item of this design.")
        if len(set(share.items)) < len(share.items):
            faults.append(f"{where}: an item is there twice.")
    for name, modes in by_annotator.items():
        for mode, shares in modes.items():
            if len(shares) != 1:
                faults.append(f"{name}, {mode}: expected one batch, found {len(shares)}.")
        in_text, in_audio = ({i for s in modes[m] for i in s.items} for m in MODALITIES)
        if not design.both_modalities and in_text & in_audio:
            faults.append(f"{name}: {min(in_text & in_audio)} is there both as text and as audio.")
    return faults or [fault for mode in MODALITIES for fault in _unbalanced(design, mode)]


def _unbalanced(design: Design, modality: Modality) -> Iterator[str]:
    found = balance(design, modality)
    # An item is in one batch or two, and a batch is rated by so many, give or take one.
    a_batch = len(design.annotators) / len(design.batches)
    least, most = max(int(a_batch), 1), ceil(a_batch) * (2 if design.overlap else 1)
    fewest, highest = min(found.items_by_ratings), max(found.items_by_ratings)
    if fewest < least or highest > most:
        yield (
            f"{modality}: expected {least} to {most} ratings an item, found {fewest} to {highest}."
        )
    if highest < 2:
        yield (
            f"{modality}: no item is rated twice, so no agreement can be measured; use more "
            "annotators or fewer batches."
        )
    if abs(found.overlap - design.overlap) > TOLERANCE + 1e-9:
        yield f"batches: expected an overlap of {design.overlap:g}, found {found.overlap:.2f}."
