"""How far a run is: a bar on a terminal, one line every so often in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

BAR_CELLS = 24


class Progress:
    """Counts what was answered and shows it.

    Args:
        total: requests to be answered.
        audio_s: seconds of audio in all of them, 0 for none.
        stream: where to write; a terminal gets a bar, anything else lines.
        every_s: seconds between two lines of a log.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        total: int,
        audio_s: float,
        stream: TextIO = sys.stderr,
        every_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.total_audio_s = total, audio_s
        self.answered, self.audio_s, self.failures = 0, 0.0, 0
        self._stream, self._clock = stream, clock
        self._bar = stream.isatty()
        self._every_s = 0.1 if self._bar else every_s
        self._started = self._shown = clock()

    def add(self, answered: int, audio_s: float, failures: int) -> None:
        """Count a batch, and show it if it is time."""
        self.answered += answered
        self.audio_s += audio_s
        self.failures += failures
        now = self._clock()
        if now - self._shown >= self._every_s:
            self._shown = now
            self._show()

    def finish(self) -> None:
        """Show the last state and leave the terminal on a new line."""
        self._show()
        if self._bar:
            self._stream.write("\n")
            self._stream.flush()

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._started

    def line(self) -> str:
        """`120/360 items, 4.1 items/s, 35.2 audio-s/s, 0:58 left, 2 failed`."""
        elapsed = max(self.elapsed_s, 1e-9)
        said = [f"{self.answered}/{self.total} items", f"{self.answered / elapsed:.1f} items/s"]
        if self.total_audio_s:
            said.append(f"{self.audio_s / elapsed:.1f} audio-s/s")
        said.append(f"{_clock_face(self._left_s(elapsed))} left")
        said.append(f"{self.failures} failed")
        return ", ".join(said)

    def _left_s(self, elapsed: float) -> float | None:
        # Long clips come first, so seconds of audio foretell better than items.
        by_audio = self.total_audio_s > 0
        done, total = (
            (self.audio_s, self.total_audio_s) if by_audio else (self.answered, self.total)
        )
        if self.answered >= self.total:
            return 0.0
        return elapsed * max(total - done, 0) / done if done else None

    def _show(self) -> None:
        if not self._bar:
            self._stream.write(self.line() + "\n")
        else:
            full = BAR_CELLS * self.answered // max(self.total, 1)
            self._stream.write(f"\r[{'#' * full:<{BAR_CELLS}}] {self.line()}\x1b[K")
        self._stream.flush()


def _clock_face(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
