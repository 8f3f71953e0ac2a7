"""The draws behind every bootstrap: items, as cells of a table, and sessions, as weights.

A draw depends on the seed and the resample's number alone, never on how the work is cut. What
is drawn may be all resamples at once or, for tables as long as a dataset, a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.seeds import generator

Counts = NDArray[Any]

BLOCK = 250
"""Resamples drawn from one generator. Part of the result: another value, other draws."""

CELLS = 2**21
"""Cells of resamples held at once: tables of a cell an item are as long as the dataset."""


def resampled(counts: Counts, *, seed: int, start: int = 0, stop: int = 1000) -> Counts:
    """Resamples `start` to `stop` of tables of items, drawn with replacement.

    Args:
        counts: (T, ...) T tables of non-negative integers, of any one shape.
        seed: the run's seed.

    Returns:
        (T, stop - start, ...) integers; each resample sums to its table's total.

    Equal tables get equal resamples. That leaves every interval as it would be alone; two
    tables of the same items are compared by resampling their joint table, not by this.
    """
    flat = np.asarray(counts).reshape(len(counts), -1)
    drawn = np.zeros((len(flat), stop - start, flat.shape[1]), dtype=np.int64)
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        first = max(start, block * BLOCK)
        last = min(stop, (block + 1) * BLOCK)
        seeded = generator(seed, "bootstrap over items", str(block)).bit_generator
        fresh = seeded.state
        for table, cells in enumerate(flat):
            seeded.state = fresh
            # without the empty cells: the last cell takes what rounding leaves, so it must be real
            filled = np.flatnonzero(cells)
            if not len(filled):
                continue
            share = cells[filled] / cells.sum()
            rows = np.random.Generator(seeded).multinomial(
                cells.sum(), share, size=last - block * BLOCK
            )
            drawn[table, first - start : last - start, filled] = rows[first - block * BLOCK :].T
    return drawn.reshape(len(flat), stop - start, *np.shape(counts)[1:])


def resamples_in_pieces(
    counts: Counts, *, seed: int, resamples: int
) -> Iterator[tuple[int, int, Counts]]:
    """What `resampled` draws, `CELLS` cells at a time.

    Yields:
        From which resample to which, and those: (T, to - from, ...).
    """
    flat = np.asarray(counts).reshape(len(counts), -1)
    filled = [np.flatnonzero(cells) for cells in flat]
    for block, first, last in _blocks(resamples):
        drawing = [generator(seed, "bootstrap over items", str(block)) for _ in flat]
        for start, stop in _cut(first, last, flat.size):
            if flat.shape[0] == 1 and len(filled[0]) == flat.shape[1]:
                # As long as a dataset: not to be held twice.
                even = flat[0] / flat.sum()
                rows = drawing[0].multinomial(flat.sum(), even, size=stop - start)
                yield start, stop, rows.reshape(1, stop - start, *np.shape(counts)[1:])
                continue
            drawn = np.zeros((len(flat), stop - start, flat.shape[1]), dtype=np.int64)
            for table, cells in enumerate(flat):
                at = filled[table]
                if len(at):
                    share = cells[at] / cells.sum()
                    rows = drawing[table].multinomial(cells.sum(), share, size=stop - start)
                    drawn[table][:, at] = rows
            yield start, stop, drawn.reshape(len(flat), stop - start, *np.shape(counts)[1:])


def sessions_in_pieces(
    sessions: int, items: int, *, seed: int, resamples: int
) -> Iterator[tuple[int, int, Counts]]:
    """What `session_weights` draws, as many resamples at a time as make `CELLS` of items.

    Yields:
        From which resample to which, and those: (to - from, sessions).
    """
    even = np.full(sessions, 1 / sessions)
    for block, first, last in _blocks(resamples):
        drawing = generator(seed, "bootstrap over sessions", str(block))
        for start, stop in _cut(first, last, items):
            yield start, stop, drawing.multinomial(sessions, even, size=stop - start)


def _blocks(resamples: int) -> Iterator[tuple[int, int, int]]:
    for first in range(0, resamples, BLOCK):
        yield first // BLOCK, first, min(first + BLOCK, resamples)


def _cut(first: int, last: int, cells: int) -> Iterator[tuple[int, int]]:
    most = max(1, CELLS // max(1, cells))
    for start in range(first, last, most):
        yield start, min(start + most, last)


def session_weights(sessions: int, *, seed: int, start: int = 0, stop: int = 1000) -> Counts:
    """How often each session is drawn in resamples `start` to `stop`.

    Returns:
        (stop - start, sessions) integers; each row sums to `sessions`.
    """
    rows = []
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        last = min(stop, (block + 1) * BLOCK) - block * BLOCK
        drawing = generator(seed, "bootstrap over sessions", str(block))
        drawn = drawing.multinomial(sessions, np.full(sessions, 1 / sessions), size=last)
        rows.append(drawn[max(start - block * BLOCK, 0) :])
    return np.concatenate(rows) if rows else np.zeros((0, sessions), dtype=np.int64)
