"""Where each answer of a response file stands: found by id, read when it is needed.

A run of any length holds neither its requests nor its answers, which a file does better;
it holds where they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from containers.runtime.response_log import assert_agrees
from core.protocol import FINAL, STATUSES, ProtocolError, Response, response_of

# How `ResponseLog` begins a line. Any other is read whole; each is checked when it is used.
_BEGINNING = re.compile(rb'\{"id":"([ !#-\[\]-~]+)","status":"([a-z_]+)",')
# Bytes of a line.
_LONGEST = 2**32


class Answered:
    """The answers of a file, which may grow; a missing file holds none.

    The last line of an id wins, so an item tried again replaces its failure. A last line
    without its newline was cut by a crash, or is being written, and is left out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Where a line begins, times `_LONGEST`, plus its length: one number takes a third of two.
        self._places: dict[str, int] = {}
        # Of those whose status is not ok.
        self._statuses: dict[str, str] = {}
        self._seen = 0
        self.look()

    def look(self) -> None:
        """Take in what was appended since the last look.

        Raises:
            ProtocolError: naming file and line, for one that is no response.
        """
        try:
            stream = self.path.open("rb")
        except FileNotFoundError:
            return
        with stream:
            stream.seek(self._seen)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self._take(line)
                self._seen += len(line)

    def __contains__(self, request_id: str) -> bool:
        """Whether there is an answer or the reason of a failure."""
        return request_id in self._places

    def status(self, request_id: str) -> str | None:
        """None where there is neither."""
        if request_id not in self._places:
            return None
        return self._statuses.get(request_id, "ok")

    def is_final(self, request_id: str) -> bool:
        """Whether there is an answer that asking again would not change."""
        return self.status(request_id) in FINAL

    def of(self, request_ids: Iterable[str]) -> dict[str, Response]:
        """The answers to these requests by id; one without an answer is left out.

        Raises:
            ProtocolError: naming file and line, for one that is no response.
        """
        # In the order of the file, so that the disk is read in one direction.
        places = sorted(self._places[name] for name in set(request_ids) if name in self._places)
        if not places:
            return {}
        found: dict[str, Response] = {}
        with self.path.open("rb", buffering=0) as stream:
            for packed in places:
                place, length = divmod(packed, _LONGEST)
                response = self._response(os.pread(stream.fileno(), length, place), place)
                found[response.id] = response
        return found

    def _take(self, line: bytes) -> None:
        begins = _BEGINNING.match(line)
        if begins and (status := begins[2].decode()) in STATUSES:
            name = begins[1].decode()
        else:
            response = self._response(line, self._seen)
            name, status = response.id, response.status
        if status in FINAL and self.is_final(name):
            self._assert_agrees(name, line)
        self._places[name] = self._seen * _LONGEST + len(line)
        if status == "ok":
            self._statuses.pop(name, None)
        else:
            self._statuses[name] = status

    def _assert_agrees(self, name: str, line: bytes) -> None:
        before, now = self.of([name])[name], self._response(line, self._seen)
        assert_agrees(before, now, self._where(self._seen))

    def _response(self, line: bytes, place: int) -> Response:
        try:
            return response_of(line, "")
        except ProtocolError:
            # Which line it is, is counted only where somebody has to be told.
            return response_of(line, self._where(place))

    def _where(self, place: int) -> str:
        with self.path.open("rb") as stream:
            number = stream.read(place).count(b"\n") + 1
        return f"{self.path}, line {number}"
