"""The response file of a run: one writer, appended and fsynced batch by batch.

Says which requests are still to be asked, and holds the lock that keeps a
second process, left over from a killed run, from writing into the same file.
"""

from __future__ import annotations

import fcntl
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from containers.runtime.answered import Answered
from containers.runtime.response_log import ResponseLog
from core.protocol import Request, Response

R = TypeVar("R")


class BusyError(RuntimeError):
    """Another process is writing this response file."""


class AnswerFile:
    """An open, locked response file.

    Args:
        path: created where missing; an unfinished last line is cut off (see `repair`).
        run_start: byte at which this run's answers begin, or None for the end of
            the file: failures before it are asked again, later ones are not.
        patience_s: how long to wait for another writer to leave; a runtime whose
            parent was killed needs a moment to notice.

    Raises:
        BusyError: the other writer did not leave.
        core.protocol.ProtocolError: the file holds a line that is no response.
    """

    def __init__(self, path: Path, run_start: int | None = None, patience_s: float = 15.0) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.writing = threading.RLock()
        self._lock = path.open("ab")
        _wait_for_lock(self._lock.fileno(), path, patience_s)
        self._log = ResponseLog(path)
        self.run_start = path.stat().st_size if run_start is None else run_start

    @property
    def repair(self) -> str:
        """What was done about a last line that a kill or a full disk cut short; "" for nothing."""
        if not self._log.repaired:
            return ""
        return (
            f"{self.path}: its last line was cut short when its writer ended "
            f"({self._log.repaired} bytes); it was taken out, and its request is asked again."
        )

    def pending(self, requests: Iterable[tuple[Request, R]]) -> Iterator[tuple[Request, R]]:
        """Requests without a final answer and not yet tried in this run, in order.

        Args:
            requests: each with whatever it is to be found by again.
        """
        answered, tried = Answered(self.path), self._tried_in_this_run()
        for request, found_by in requests:
            if not answered.is_final(request.id) and request.id not in tried:
                yield request, found_by

    def counts(self, requests: Iterable[Request]) -> dict[str, int]:
        """How many of these requests have each status; `missing` where there is none yet."""
        answered = Answered(self.path)
        return dict(Counter(answered.status(request.id) or "missing" for request in requests))

    def append(self, responses: Sequence[Response]) -> None:
        """On the disk when it returns; whoever ends the process takes `writing` first."""
        with self.writing:
            self._log.append(responses)

    def close(self) -> None:
        self._log.close()
        self._lock.close()

    def _tried_in_this_run(self) -> set[str]:
        with self.path.open("rb") as stream:
            stream.seek(self.run_start)
            return {json.loads(line)["id"] for line in stream}


def _wait_for_lock(descriptor: int, path: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise BusyError(
                    f"{path}: another process is writing it. Wait for it or end it, "
                    "then start again."
                ) from error
        time.sleep(0.1)
