"""The requests of a run and whom they are about, on the disk, some items at a time.

What a task plans for an item may be twenty times its transcript. It is needed again when
answers call for more and when they are read; in between it waits here.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from core.tasks import PlannedRequest


class PlannedFile:
    """Planned requests by the number of their chunk of items.

    Args:
        stream: of a file nobody else can write into: what is read back is trusted.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._places: dict[int, list[int]] = {}

    def add(self, chunk: int, planned: Sequence[PlannedRequest]) -> None:
        """Keep what one round asks about a chunk of items."""
        self._places.setdefault(chunk, []).append(self._stream.seek(0, os.SEEK_END))
        pickle.dump([entry.request.id for entry in planned], self._stream)
        pickle.dump(list(planned), self._stream)

    def of(self, chunk: int) -> list[PlannedRequest]:
        """All that was planned for a chunk, in order."""
        planned: list[PlannedRequest] = []
        for place in self._places.get(chunk, []):
            self._stream.seek(place)
            pickle.load(self._stream)
            planned += pickle.load(self._stream)
        return planned

    def newest_ids(self, chunk: int) -> list[str]:
        """Ids of the requests that were added to a chunk last."""
        self._stream.seek(self._places[chunk][-1])
        found: list[str] = pickle.load(self._stream)
        return found
