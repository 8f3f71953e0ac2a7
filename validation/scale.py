"""What a rating may be: the levels of a scale, how they are written, and what their order means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["nominal", "ordinal", "interval"]
KINDS: tuple[str, ...] = get_args(Kind)


class ScaleError(ValueError):
    """A scale that is none; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Scale:
    """What a rating may be.

    Attributes:
        kind: nominal (labels only), ordinal (their order counts), interval (their distances).
        labels: as shown, lowest first; for interval the two ends.
        numbers: the value of each label; for interval the two ends of the range.
    """

    kind: Kind
    labels: tuple[str, ...]
    numbers: tuple[float, ...]

    def parse(self, text: str) -> float | None:
        """The value of a written rating; None where it is not on the scale."""
        for label, number in zip(self.labels, self.numbers, strict=True):
            if text.casefold() == label.casefold():
                return number
        try:
            value = float(text)
        except ValueError:
            return None
        if self.kind == "interval":
            return value if self.numbers[0] <= value <= self.numbers[1] else None
        return value if value in self.numbers else None

    def expected(self) -> str:
        """The scale in words, for messages."""
        if self.kind == "interval":
            return f"a number from {self.labels[0]} to {self.labels[1]}"
        if [str(int(number)) for number in self.numbers] == list(self.labels):
            low, high = self.numbers[0], self.numbers[-1]
            if list(self.numbers) == list(range(int(low), int(high) + 1)):
                return f"an integer {low:g}-{high:g}"
        forms = [
            label if label == f"{number:g}" else f"{number:g} ({label})"
            for label, number in zip(self.labels, self.numbers, strict=True)
        ]
        return "one of " + ", ".join(forms)


def scale_named(kind: str, levels: str = "") -> Scale:
    """The scale of a study, or the one spelled out.

    Args:
        kind: nominal, ordinal or interval.
        levels: "1-5", or labels with commas, lowest first. Empty: NO/YES (0/1) for
            nominal as in study 2, 1-5 for the others as in study 1.

    Raises:
        ScaleError: an unknown kind, or levels that are no scale of it.
    """
    if kind not in KINDS:
        raise ScaleError(f"scale: expected one of {', '.join(KINDS)}, found {kind!r}.")
    known: Kind = "nominal" if kind == "nominal" else "ordinal" if kind == "ordinal" else "interval"
    if not levels:
        if known == "nominal":
            return Scale(known, ("NO", "YES"), (0.0, 1.0))
        levels = "1-5"
    labels = _labels(levels)
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise ScaleError(f"levels: expected two or more different levels, found {levels!r}.")
    try:
        numbers = tuple(float(label) for label in labels)
    except ValueError:
        if known == "interval":
            raise ScaleError(
                f"levels: an interval scale needs numbers, found {levels!r}."
            ) from None
        numbers = tuple(float(place) for place in range(len(labels)))
    if known != "nominal" and list(numbers) != sorted(numbers):
        raise ScaleError(f"levels: expected the lowest first, found {levels!r}.")
    if known == "interval":
        return Scale(known, (labels[0], labels[-1]), (numbers[0], numbers[-1]))
    return Scale(known, labels, numbers)


def _labels(levels: str) -> tuple[str, ...]:
    ends = re.fullmatch(r"\s*(\d+)\s*[-–]\s*(\d+)\s*", levels)
    if ends:
        return tuple(str(level) for level in range(int(ends[1]), int(ends[2]) + 1))
    return tuple(label.strip() for label in levels.split(",") if label.strip())
