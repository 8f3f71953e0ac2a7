"""A file of requests that is read from the disk each time, one request at a time.

What a run holds of a request is its measures; its words are read when its turn comes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from core.protocol import ProtocolError, Request, request_of, requests_in


class RequestFile:
    """An open request file; another that takes its name meanwhile is not read.

    Raises:
        ProtocolError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._stream = path.open("rb")
        except OSError as error:
            raise ProtocolError(f"{path}: cannot be read ({error.strerror}).") from error

    def __iter__(self) -> Iterator[Request]:
        """All requests in order; see `core.protocol.read_requests` for what is refused."""
        return (request for request, _ in self.placed())

    def placed(self) -> Iterator[tuple[Request, Callable[[], Request]]]:
        """Each request, and how to have it again without keeping it."""
        self._stream.seek(0)
        place = 0
        for request, length in requests_in(self._stream, self.path):
            yield request, partial(self._at, place, length)
            place += length

    def close(self) -> None:
        self._stream.close()

    def _at(self, place: int, length: int) -> Request:
        # Leaves the stream where it is, so that threads may read side by side.
        line = os.pread(self._stream.fileno(), length, place)
        return request_of(line, f"{self.path}, byte {place}")
