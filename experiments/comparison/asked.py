"""How a comparison draws its intervals, and what it lays beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from core.published import Published


class Drawn(TypedDict):
    """Keywords of every function that draws."""

    resamples: int
    seed: int


@dataclass(frozen=True)
class Asked:
    """What every exhibit is worked out with.

    Attributes:
        published: the paper's figures, where they are to be overlaid.
    """

    resamples: int = 1000
    seed: int = 0
    published: Published | None = None

    @property
    def drawn(self) -> Drawn:
        return {"resamples": self.resamples, "seed": self.seed}

    def figures(self, metric: str, condition: str) -> dict[str, tuple[float, str]]:
        """Model -> published value and where it is printed."""
        every = self.published.figures if self.published else ()
        return {
            entry.model: (entry.value, entry.where)
            for entry in every
            if (entry.metric, entry.condition) == (metric, condition)
        }
