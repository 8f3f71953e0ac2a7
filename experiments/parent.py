"""Ending with the process that started us.

`mlflow run` that is ended leaves its program running on its own; a program that
goes on for hours after its user has gone is the wrong kind of loyal.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

POLL_S = 1.0


class Stopped(BaseException):
    """SIGTERM arrived, from outside or because the parent is gone."""


def end_on_signal() -> None:
    """Make SIGTERM unwind the main thread, as ctrl-C does, so that everything is closed."""

    def unwind(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, unwind)


def end_with_parent(is_orphan: Callable[[], bool] | None = None) -> None:
    """Send this process SIGTERM once the process that started it has gone.

    Under `mlflow run` there may be a shell in between, which outlives mlflow: the
    shell's parent is watched as well.
    """
    orphaned = is_orphan or _orphan_check()

    def watch() -> None:
        while not orphaned():
            time.sleep(POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def _orphan_check() -> Callable[[], bool]:
    parent = os.getppid()
    grandparent = _parent_of(parent) if _name_of(parent) in ("sh", "bash", "dash", "zsh") else None

    def orphaned() -> bool:
        if os.getppid() != parent:
            return True
        return grandparent is not None and _parent_of(parent) != grandparent

    return orphaned


def _name_of(pid: int) -> str:
    return _stat(pid)[0]


def _parent_of(pid: int) -> int | None:
    parent = _stat(pid)[1]
    return int(parent) if parent else None


def _stat(pid: int) -> tuple[str, str]:
    """Name and parent of a process; empty words where there is no /proc."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    # The name stands in brackets and may hold brackets and blanks itself.
    before, _, after = line.rpartition(")")
    return before.partition("(")[2], after.split()[1]
