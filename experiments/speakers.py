"""The speaker check of a dataset folder: does each speaker of a dialogue keep one voice?

Turns are compared within their dialogue, by the cosine of their voices' vectors: a turn that
is nearer to another speaker's turns than to its own speaker's has drifted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from core.audio import RATE_HZ, read_clip
from core.speech.engine import Samples
from core.speech.speaker import SHORTEST_S, Vector


@dataclass(frozen=True)
class Likeness:
    """One turn beside the other turns of its dialogue.

    Attributes:
        turn: its number, from 1.
        own: mean cosine with the other turns of its voice; NaN where there is none.
        other: the same with the voice that is nearest of the others; NaN where there is none.
    """

    item_id: str
    turn: int
    voice: str
    own: float
    other: float

    @property
    def drifts(self) -> bool:
        """Whether it is nearer to another voice; never where either is not known."""
        return self.own < self.other


def likenesses(
    folder: Path, items: pd.DataFrame, embed: Callable[[Samples], Vector]
) -> list[Likeness]:
    """Every turn of a second or more, in clips whose sidecar says when each turn is.

    Args:
        items: manifest rows; `audio` relative to the folder.
        embed: (n,) samples at 16 kHz -> a vector of length 1.
    """
    found: list[Likeness] = []
    for item_id, audio in zip(items["item_id"], items["audio"], strict=True):
        sidecar = (folder / str(audio)).with_suffix(".turns.json")
        if sidecar.exists():
            samples = read_clip(folder / str(audio)).samples
            turns = json.loads(sidecar.read_text(encoding="utf-8"))["turns"]
            long_enough = [
                (number, turn["voice"], embed(_stretch(samples, turn)))
                for number, turn in enumerate(turns, start=1)
                if turn["voice"] and turn["end_s"] - turn["start_s"] >= SHORTEST_S
            ]
            found += _compared(str(item_id), long_enough)
    return found


def report(name: str, turns: Sequence[Likeness], clips: int) -> str:
    """A paragraph: the whole, and the clips in which a voice drifts."""
    if not turns:
        return f"{name}: no clip says when its turns are, so voices were not compared."
    own = [turn.own for turn in turns if turn.own == turn.own]
    other = [turn.other for turn in turns if turn.other == turn.other]
    drifted = [turn for turn in turns if turn.drifts]
    lines = [
        f"{name}: voices compared in {len({turn.item_id for turn in turns})} of {clips} clips, "
        f"{len(turns)} turns: mean cosine {_mean(own)} with turns of the same voice, "
        f"{_mean(other)} with those of the nearest other; {len(drifted)} turns drift"
    ]
    lines += [
        f"  {turn.item_id}, turn {turn.turn}: {turn.voice} is nearer to another speaker "
        f"({turn.other:.2f}) than to itself ({turn.own:.2f})"
        for turn in drifted
    ]
    return "\n".join(lines)


def _stretch(samples: Samples, turn: dict[str, float]) -> Samples:
    return samples[round(turn["start_s"] * RATE_HZ) : round(turn["end_s"] * RATE_HZ)]


def _compared(item_id: str, turns: Sequence[tuple[int, str, Vector]]) -> list[Likeness]:
    found = []
    for number, voice, vector in turns:
        cosines: dict[str, list[float]] = {}
        for another, of_voice, beside in turns:
            if another != number:
                cosines.setdefault(of_voice, []).append(float(vector @ beside))
        means = {name: float(np.mean(each)) for name, each in cosines.items()}
        own = means.pop(voice, float("nan"))
        found.append(
            Likeness(item_id, number, voice, own, max(means.values(), default=float("nan")))
        )
    return found


def _mean(cosines: Sequence[float]) -> str:
    return f"{np.mean(cosines):.2f}" if cosines else "unknown"
