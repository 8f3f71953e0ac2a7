"""What a task can be told with `-P name=value`: default, meaning, and which words fit.

Values stay the words a user typed; a task gives them their type where it uses them.
Standard library only, so that a command line can be checked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One option of a task.

    Attributes:
        default: the value where none is given.
        meaning: for `--help`.
        expected: what a value has to be, as the error says it.
        fits: whether a value is that.
    """

    default: str
    meaning: str
    expected: str
    fits: Callable[[str], bool]

    def fault(self, name: str, said: str) -> str | None:
        """Why a value cannot be meant, in one sentence; None where it can."""
        return None if self.fits(said) else f"{name}: expected {self.expected}, found {said!r}."


def whole(default: str, meaning: str, *, least: int = 0) -> Setting:
    """A whole number."""

    def fits(said: str) -> bool:
        return said.isascii() and said.isdecimal() and int(said) >= least

    return Setting(default, meaning, f"a whole number, {least} or more", fits)


def number(default: str, meaning: str, *, low: float, high: float) -> Setting:
    """A number in [low, high]."""

    def fits(said: str) -> bool:
        try:
            return low <= float(said) <= high
        except ValueError:
            return False

    return Setting(default, meaning, f"a number from {low:g} to {high:g}", fits)


def word(meaning: str, known: Sequence[str]) -> Setting:
    """One of some words; the first is the default."""
    return Setting(known[0], meaning, f"one of {', '.join(known)}", lambda said: said in known)


def text(default: str, meaning: str) -> Setting:
    """Any text; the task itself says what is wrong with one."""
    return Setting(default, meaning, "text", lambda said: True)
