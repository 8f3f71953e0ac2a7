"""How far speech has come, said now and then while it is made."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.speech.rendering import Phase1


class Progress:
    """A line on stderr every few seconds."""

    def __init__(self, every_s: float = 5.0) -> None:
        self._every_s = every_s
        self._began = self._said = time.monotonic()

    def __call__(self, result: Phase1, todo: int) -> None:
        now = time.monotonic()
        if now - self._said < self._every_s and result.spoken < todo:
            return
        self._said = now
        rate = result.characters / (now - self._began)
        print(
            f"spoken {result.spoken:,} of {todo:,} turns, {rate:.0f} characters/s, "
            f"{len(result.failures)} failed",
            file=sys.stderr,
        )
