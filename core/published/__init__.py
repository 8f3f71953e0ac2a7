"""What the two papers print, as data: facts to lay beside figures of one's own.

One TOML file a paper, each figure with the table or section it stands in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomllib

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class PublishedFigure:
    """One printed figure; `model` is a folder of containers/."""

    model: str
    condition: str
    metric: str
    value: float
    where: str


@dataclass(frozen=True)
class PublishedTactics:
    """How often each tactic was named among clips predicted YES, for one gold label."""

    model: str
    condition: str
    gold: str
    where: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Published:
    """A paper's figures.

    Attributes:
        datasets: names of our builds of the paper's own data.
        items: how many items its figures rest on.
    """

    study: str
    title: str
    datasets: tuple[str, ...]
    items: int
    note: str
    figures: tuple[PublishedFigure, ...] = ()
    tactics: tuple[PublishedTactics, ...] = ()


def published(task: str) -> Published | None:
    """The paper that asks this task's question; None where there is none."""
    for path in sorted(FOLDER.glob("*.toml")):
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        if said["task"] != task:
            continue
        return Published(
            study=said["study"],
            title=said["title"],
            datasets=tuple(said["datasets"]),
            items=said["items"],
            note=said["note"],
            figures=tuple(PublishedFigure(**entry) for entry in said.get("figures", ())),
            tactics=tuple(PublishedTactics(**entry) for entry in said.get("tactics", ())),
        )
    return None
