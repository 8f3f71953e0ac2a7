"""Which process did a thing, in words that can be stored, and whether it is surely gone.

A number alone is not enough: it is given out again, it counts anew after a restart and in
every container, and a store or a folder may be shared by many machines.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MACHINE = Path("/etc/machine-id")


@dataclass(frozen=True)
class Process:
    """A process among all there ever were.

    Attributes:
        host: the machine's name.
        machine: what tells it from another machine of that name; "" where it has nothing.
        boot: which start of the machine; "" where it does not say.
        namespace: which container's numbers `pid` is one of.
        pid: its number.
        started: when, in the kernel's ticks since the boot; "" where it does not say.
    """

    host: str
    machine: str
    boot: str
    namespace: str
    pid: int
    started: str

    def said(self) -> str:
        """Name and number, as a person looks for it."""
        return (
            f"pid {self.pid}"
            if self.host == socket.gethostname()
            else (f"pid {self.pid} on {self.host}")
        )


def this_process() -> Process:
    """The one that asks."""
    pid = os.getpid()
    return Process(
        socket.gethostname(), _read(_MACHINE), _read(_BOOT), _namespace(), pid, _started(pid)
    )


def as_words(process: Process) -> str:
    """A process as one line that can be stored."""
    return json.dumps(asdict(process))


def from_words(said: str) -> Process | None:
    """The process such a line names; None where it is none."""
    try:
        return Process(**json.loads(said))
    except (ValueError, TypeError, RecursionError):
        return None


def is_gone(process: Process) -> bool:
    """Whether it has ended for certain; False where that cannot be known from here."""
    here = this_process()
    if process.host != here.host or not process.boot or not here.boot:
        return False
    if process.boot != here.boot:
        # Started before this machine was; another machine of the same name would differ here.
        return bool(here.machine) and process.machine == here.machine
    if process.namespace != here.namespace:
        return False
    if not _is_there(process.pid):
        return True
    return bool(process.started) and _started(process.pid) != process.started


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Ended, and only not yet collected by whoever started it.
    return _state(pid) != "Z"


def _state(pid: int) -> str:
    fields = _fields(pid)
    return fields[0] if fields else ""


def _started(pid: int) -> str:
    fields = _fields(pid)
    return fields[19] if fields else ""


def _fields(pid: int) -> list[str]:
    """What /proc says of a process behind its name, which may hold brackets and blanks."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
