"""Which tactic is named: the paper's distributions, and hits against the multi-label gold.

A clip has one predicted tactic, or none, and any number of gold tactics, written in
MentalManip as one comma-joined text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from core.metrics.ordinal import share

TACTICS = (
    "Accusation",
    "Brandishing Anger",
    "Denial",
    "Evasion",
    "Feigning Innocence",
    "Intimidation",
    "Persuasion or Seduction",
    "Playing Servant Role",
    "Playing Victim Role",
    "Rationalization",
    "Shaming or Belittlement",
)
"""SpeechMentalManip, section 4.1, without "none"."""


def gold_tactics(techniques: str | float | None) -> tuple[str, ...]:
    """The tactics of a comma-joined text, in its order; empty for an empty or missing one.

    Raises:
        ValueError: a name outside `TACTICS`.
    """
    if not isinstance(techniques, str):
        return ()
    names = tuple(name.strip() for name in techniques.split(",") if name.strip())
    for name in names:
        if name not in TACTICS:
            raise ValueError(f"techniques: expected names among {TACTICS}, found {name!r}.")
    return names


def tactic_distribution(named: Iterable[str]) -> pd.DataFrame:
    """How often each tactic is named, with percentages of all that were.

    Args:
        named: one entry for each naming, e.g. the tactic of every clip predicted YES in one
            gold set (the paper's Tables 4 and 5), or every gold tactic (Table 1). "none" is an
            entry like any other, so that percentages keep all those clips as their denominator.

    Returns:
        Columns Technique, Count, %; commonest first, equal counts by name; empty if none was.

    Source: SpeechMentalManip, section 4.2.
    """
    found = Counter(named)
    rows = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    whole = sum(found.values())
    return pd.DataFrame(
        [(name, count, 100 * count / whole) for name, count in rows],
        columns=["Technique", "Count", "%"],
    )


def _pairs(
    predicted: Sequence[str | None], gold: Sequence[Sequence[str]]
) -> list[tuple[str | None, Sequence[str]]]:
    if len(predicted) != len(gold):
        raise ValueError(
            f"predicted has {len(predicted)} clips and gold {len(gold)}: "
            "give both for the same clips, None where no tactic was named."
        )
    return [(named, tactics) for named, tactics in zip(predicted, gold, strict=True) if tactics]


def hit_rate(predicted: Sequence[str | None], gold: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Share of clips whose predicted tactic is among the gold ones (top-1).

    Args:
        predicted: (n,) a tactic, "none", or None where none was named; the last two miss.
        gold: (n,) gold tactics of each clip; clips without any are left out.

    Returns:
        The share and the number of clips it rests on; NaN and 0 if no clip has gold tactics.
    """
    pairs = _pairs(predicted, gold)
    hits = sum(named in tactics for named, tactics in pairs)
    return float(share(hits, len(pairs))), len(pairs)


def tactic_counts(
    predicted: Sequence[str | None], gold: Sequence[Sequence[str]]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Hits, false alarms and misses of each tactic.

    Args:
        predicted, gold: as in `hit_rate`.

    Returns:
        (11, 3) in the order of `TACTICS`.
    """
    table = np.zeros((len(TACTICS), 3), dtype=np.int64)
    for named, tactics in _pairs(predicted, gold):
        for place, tactic in enumerate(TACTICS):
            if named == tactic or tactic in tactics:
                outcome = 2 if named != tactic else 0 if tactic in tactics else 1
                table[place, outcome] += 1
    return table


def macro_f1(predicted: Sequence[str | None], gold: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Mean F1 over the tactics that occur in gold or were predicted.

    One prediction a clip cannot find two gold tactics, so 1 is out of reach where clips have
    several: compare models by it, do not read it as a share.

    Args:
        predicted, gold: as in `hit_rate`.

    Returns:
        The mean and the number of tactics it rests on; NaN and 0 if there is none.
    """
    table = tactic_counts(predicted, gold)
    scores = share(2 * table[:, 0], 2 * table[:, 0] + table[:, 1] + table[:, 2])
    occurs = ~np.isnan(scores)
    return float(share(scores[occurs].sum(), occurs.sum())), int(occurs.sum())
