"""How many requests a server is asked at once, found out from how it answers.

More are sent as long as that brings more answers a second; one that says it is
too busy is asked half as many, and none before the time it names.
"""

from __future__ import annotations

import email.utils
import random
import threading
import time
from collections.abc import Mapping

MOST = 64
START = 4
# A round counts as quicker from here on: less is noise, since clips differ in length.
BETTER = 1.05
# The best rate fades, so that a server that was slow for a while is tried again.
FADES = 0.98
BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 60.0
LONGEST_RETRY_AFTER_S = 600.0


class Pace:
    """A gate for workers: `enter` before a request, `leave` after it.

    The limit grows by half each round until the server first pushes back, by one
    after that, and shrinks by one where a round with more in flight was no quicker.
    `highest` is the most there were in flight.
    """

    def __init__(self, start: int = START, most: int = MOST) -> None:
        self.limit = min(start, most)
        self.highest = 0
        self.most = most
        self._changed = threading.Condition()
        self._in_flight = 0
        self._not_before = 0.0
        self._last_cut = 0.0
        self._pushed_back = False
        self._round, self._round_began = 0, time.monotonic()
        self._best = 0.0

    def enter(self) -> float:
        """Wait for a place; gives the time it was had."""
        with self._changed:
            while True:
                wait = self._not_before - time.monotonic()
                if wait <= 0 and self._in_flight < self.limit:
                    self._in_flight += 1
                    self.highest = max(self.highest, self._in_flight)
                    return time.monotonic()
                self._changed.wait(wait if wait > 0 else None)

    def leave(self, entered: float, *, pushed_back: bool = False, wait_s: float = 0.0) -> None:
        """Give the place back.

        Args:
            entered: what `enter` gave.
            pushed_back: the server said it was asked too much.
            wait_s: seconds nobody is to ask for.
        """
        with self._changed:
            self._in_flight -= 1
            now = time.monotonic()
            self._not_before = max(self._not_before, now + wait_s if wait_s else 0.0)
            if pushed_back:
                self._cut(entered, now)
            else:
                self._count(now)
            self._changed.notify_all()

    def _cut(self, entered: float, now: float) -> None:
        # What was sent before the last cut says nothing about the new limit.
        if entered >= self._last_cut:
            self.limit = max(1, self.limit // 2)
            self._last_cut, self._pushed_back = now, True
            self._begin_round(now)

    def _count(self, now: float) -> None:
        self._round += 1
        if self._round < self.limit:
            return
        rate = self._round / max(now - self._round_began, 1e-6)
        if rate > self._best * BETTER:
            self._best = rate
            step = 1 if self._pushed_back else max(1, self.limit // 2)
            self.limit = min(self.most, self.limit + step)
        else:
            self._best *= FADES
            self.limit = max(1, self.limit - 1)
        self._begin_round(now)

    def _begin_round(self, now: float) -> None:
        self._round, self._round_began = 0, now


def backoff_s(tries: int) -> float:
    """Seconds before the next try: doubled each time, drawn from the upper half so that
    clients that failed together do not come back together."""
    longest: float = min(LONGEST_BACKOFF_S, BACKOFF_S * 2**tries)
    return longest * random.uniform(0.5, 1.0)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What a Retry-After header asks for, in seconds (it may be a date); None without one."""
    said = headers.get("Retry-After", "").strip()
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(said).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    # In this order "nan" is no wait: it would be one without end.
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER_S)
