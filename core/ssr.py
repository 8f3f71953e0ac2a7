"""Semantic similarity rating: descriptions of a patient's state to labels 1-5.

A model says in words how the patient feels; the words' nearest anchor is the label of
that run, and the runs of a turn are voted on. The model never sees the scale.

Source: CBT-Audio, section 3.1 and appendix B (after Maier et al. 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tomllib
from numpy.typing import NDArray

from core.embedding import Embedder

Floats = NDArray[np.float64]

LEVELS = (1, 2, 3, 4, 5)
ANCHORS = (
    "Calm, at ease, with no emotional distress",
    "Slightly uneasy, with mild emotional activation",
    "Moderately distressed, with clear emotional activation",
    "Significantly distressed, struggling to maintain composure",
    "Overwhelmed with intense emotional distress",
)
"""Table 1 of the study: level 1 to level 5."""
RUNS = 3

_EXAMPLES = Path(__file__).with_name("ssr_examples.toml")


@dataclass(frozen=True)
class Example:
    """A description whose level is known, since it was written for it."""

    level: int
    text: str


def similarities(embedder: Embedder, descriptions: list[str]) -> Floats:
    """(n,) descriptions -> (n, 5) cosines to the anchors."""
    if not descriptions:
        return np.empty((0, len(ANCHORS)))
    return embedder.embed(descriptions) @ embedder.embed(list(ANCHORS)).T


def nearest(similarities: Floats) -> NDArray[np.int64]:
    """(..., 5) cosines -> (...) labels; the lower one of two equally near anchors."""
    labels: NDArray[np.int64] = np.argmax(similarities, axis=-1) + LEVELS[0]
    return labels


def soft_label(similarities: Floats, temperature: float) -> Floats:
    """(..., 5) cosines -> (..., 5) probabilities: softmax of cosine / temperature."""
    scaled = similarities / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def vote(labels: Floats) -> Floats:
    """(n, runs) labels, NaN for a run without one -> (n,): majority, else median.

    A majority is the one label more runs gave than gave any other. Where there is none the
    median decides, as the scale is ordinal; half a level, which only an even number of runs
    gives, goes down. NaN where no run has a label.
    """
    return np.array([_vote(row[~np.isnan(row)]) for row in np.asarray(labels, dtype=float)])


def within_one(labels: Floats) -> float:
    """Share of turns whose runs all lie within one level of each other; NaN without turns.

    Turns with a missing run do not count. The study reports 94.3 % for three runs; it does
    not say whether pairs or whole turns are counted, and this is the stricter reading.
    """
    whole = labels[~np.isnan(labels).any(axis=1)]
    if not len(whole):
        return float("nan")
    return float(np.mean(np.ptp(whole, axis=1) <= 1))


def distribution(labels: Floats) -> dict[int, int]:
    """How many have each label; those without one are not counted."""
    return {level: int(np.sum(labels == level)) for level in LEVELS}


def examples() -> list[Example]:
    """Ten descriptions, two of each level, in the manner the prompt asks for."""
    table = tomllib.loads(_EXAMPLES.read_text(encoding="utf-8"))
    return [Example(int(one["level"]), str(one["text"])) for one in table["example"]]


def bias(embedder: Embedder) -> list[tuple[Example, int]]:
    """Each example with the label it gets: which levels this embedding model confuses."""
    shown = examples()
    found = nearest(similarities(embedder, [one.text for one in shown]))
    return [(one, int(label)) for one, label in zip(shown, found, strict=True)]


def _vote(labels: Floats) -> float:
    if not len(labels):
        return float("nan")
    levels, counts = np.unique(labels, return_counts=True)
    most = levels[counts == counts.max()]
    return float(most[0]) if len(most) == 1 else float(np.floor(np.median(labels)))
