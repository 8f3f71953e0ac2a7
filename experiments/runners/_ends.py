"""How a model's process ended, as a sentence: one wording for every runner that starts one.

The exit codes are those of `python -m containers.runtime`.
"""

from __future__ import annotations

import signal
from pathlib import Path

GOES_ON = "What it had answered is kept: the same command goes on where it stopped."

_CAUSES = {
    2: "was given a card or requests it cannot read; this is a fault of ours or of the files",
    3: "does not load",
    4: "does not hear",
    5: "found another process writing its answers; wait for that one or end it",
    74: "could not read or write a file; is a disk full?",
    75: "hung again and again with no answer in between",
}


def sentence(model: str, code: int, log: Path | None = None, *, out_of_memory: bool = False) -> str:
    """Why a model's process ended, for an exit code that is not 0.

    Args:
        code: as the shell or `subprocess` counts it: -9, 128 + 9 and 137 are one thing.
        log: where its last words are; None where they were shown.
        out_of_memory: the kernel ended it for that, as far as is known.
    """
    where = f"its last words are in {log}" if log else "its last words are above"
    number = -code if code < 0 else code - 128 if code > 128 else 0
    if number:
        name = _name(number)
        hint = " The kernel does that when memory runs out." if name == "SIGKILL" else ""
        hint = " Its memory had run out." if out_of_memory else hint
        return f"{model} was ended by {name}.{hint} {GOES_ON}"
    cause = _CAUSES.get(code, f"stopped with exit code {code}")
    return f"{model} {cause}: {where}. {GOES_ON}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
