"""What ends a run from outside its own code: a signal, a hang, a parent that died.

A signal unwinds the main thread unless a write is in hand. A batch that hangs in
native code cannot be unwound: a second thread says so while it still hangs, and
the process is started anew. A runtime whose parent was killed ends itself, or two would write
one file.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

# For a hang that holds Python's own lock, where no thread of ours can run: the
# C watcher of faulthandler then ends the process, a while after we should have.
LAST_RESORT_S = 60.0
ORPHAN_GRACE_S = 5.0


class Stopped(BaseException):
    """SIGTERM or SIGINT arrived; `number` is which. No `except Exception` swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Turns SIGTERM and SIGINT into `Stopped`, at once or after the write in hand."""

    def __init__(self) -> None:
        self._holding = False
        self._arrived: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No `Stopped` inside; one that came meanwhile is raised at the end."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._arrived is not None:
            raise Stopped(self._arrived)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._arrived = number
        if not self._holding:
            raise Stopped(number)


class HangWatch:
    """Calls `on_hang(ids)` from its own thread when a batch takes longer than `limit_s`.

    `on_hang` is expected not to return: it ends or replaces the process. The
    batch cannot finish while it runs.
    """

    def __init__(self, limit_s: float, on_hang: Callable[[Sequence[str]], None]) -> None:
        self._limit_s, self._on_hang = limit_s, on_hang
        self._changed = threading.Condition()
        self._ids: Sequence[str] = ()
        self._deadline: float | None = None
        threading.Thread(target=self._watch, name="hang watch", daemon=True).start()

    @contextmanager
    def watching(self, ids: Sequence[str]) -> Iterator[None]:
        with self._changed:
            self._ids, self._deadline = ids, time.monotonic() + self._limit_s
            self._changed.notify()
        faulthandler.dump_traceback_later(self._limit_s + LAST_RESORT_S, exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            with self._changed:
                self._deadline = None

    def _watch(self) -> None:
        with self._changed:
            while True:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and left <= 0:
                    self._deadline = None
                    self._on_hang(self._ids)
                # Between batches the old deadline may pass unnoticed, at no cost: waking for
                # each batch's end would double the switches of a fast model.
                self._changed.wait(left)


def end_with_parent(writing: AbstractContextManager[object]) -> None:
    """Send this process SIGTERM once its parent is gone, and end it if that is not enough.

    Args:
        writing: held by whoever writes answers; no write is cut short.

    Polling, not PR_SET_PDEATHSIG: that one fires when the *thread* that started
    us ends, which for a runner with a pool of threads is no reason to stop.
    """
    parent = os.getppid()

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        sys.stderr.write("The process that started this run is gone; stopping.\n")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        with writing:
            os._exit(128 + signal.SIGTERM)

    threading.Thread(target=poll, name="parent watch", daemon=True).start()
