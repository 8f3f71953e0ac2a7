"""What a single value must be: small rules, each with the words its error uses.

A rule takes any value, of any type, and says whether it fits; nothing is
converted. `validation.schemas` puts rules on columns.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from core.manifest import is_whole


@dataclass(frozen=True)
class Rule:
    """`expected` in words; `holds` for a value that is there; `dtype` of a column of them."""

    expected: str
    holds: Callable[[Any], bool]
    dtype: str = "object"


TEXT = Rule("text", lambda value: isinstance(value, str))
NAME = Rule("text that is not blank", lambda value: isinstance(value, str) and bool(value.strip()))
WHOLE = Rule(
    "text that is not blank, of whole characters, without a zero byte",
    lambda value: NAME.holds(value) and is_whole(value),
)
DIGEST = Rule("64 hex digits", lambda value: _matches(r"[0-9a-f]{64}", value))
CLIP = Rule(
    "a clip named by content, 32 hex digits and .wav",
    lambda value: _matches(r"[0-9a-f]{32}\.wav", value),
)
PATH = Rule(
    "a path inside the folder",
    lambda value: (
        isinstance(value, str)
        and bool(value)
        and "\0" not in value
        and "\\" not in value
        and not PurePosixPath(value).is_absolute()
        and ".." not in PurePosixPath(value).parts
    ),
)


def integer(low: int, high: int | None = None) -> Rule:
    """A whole number from low to high. 3.0 is one: a data frame writes 3 so beside a gap."""
    words = f"an integer {low}-{high}" if high is not None else f"an integer, {low} or more"
    top = math.inf if high is None else high
    return Rule(words, lambda value: _is_whole(value) and low <= value <= top, "int64")


def number(low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> Rule:
    """A finite number from low to high; `above` leaves low itself out."""
    words = "a finite number"
    if low > -math.inf:
        words += f" above {low:g}" if above else f", {low:g} or more"
    if high < math.inf:
        words = f"a number above {low:g}, up to {high:g}" if above else f"a number {low:g}-{high:g}"

    def holds(value: Any) -> bool:
        if not _is_finite(value):
            return False
        # A sum of probabilities may miss 1 by rounding.
        return bool(low < value if above else low <= value) and bool(value <= high + 1e-6)

    return Rule(words, holds, "float64")


def one_of(labels: Sequence[str]) -> Rule:
    """One of these labels; a whole number counts as its digits."""
    known = set(labels)

    def holds(value: Any) -> bool:
        if _is_whole(value):
            value = str(int(value))
        return isinstance(value, str) and value in known

    return Rule("one of " + ", ".join(labels), holds)


def _is_parts(value: Any) -> bool:
    """See `core.protocol.Part`; audio must be named by content."""
    if not isinstance(value, list | tuple):
        return False
    for part in value:
        if not isinstance(part, dict) or not set(part) <= {"text", "audio", "slot"}:
            return False
        if ("text" in part) == ("audio" in part):
            return False
        if not (CLIP.holds(part["audio"]) if "audio" in part else TEXT.holds(part["text"])):
            return False
    return True


PARTS = Rule("a list of {text} and {audio} parts, audio named by content", _is_parts)
FORMS = Rule(
    "labels, each with at least one surface form",
    lambda value: (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(forms, list | tuple) and forms and all(isinstance(f, str) for f in forms)
            for forms in value.values()
        )
    ),
)
LOG_PROBABILITIES = Rule(
    "labels, each with a finite log probability of at most 0",
    lambda value: (
        isinstance(value, dict) and all(_is_finite(p) and p <= 1e-6 for p in value.values())
    ),
)
NAMES = Rule(
    "a list of names",
    lambda value: isinstance(value, list | tuple) and all(NAME.holds(name) for name in value),
)
PROBABILITY = number(0, 1)


def _matches(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _is_whole(value: Any) -> bool:
    return _is_finite(value) and float(value).is_integer()


def _is_finite(value: Any) -> bool:
    # JSON's whole numbers have no largest; ours are to fit a float.
    return _is_number(value) and bool(abs(value) <= sys.float_info.max)


def _is_number(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, float | np.floating)
