"""The card of a dataset of turns: how much there is, how it is spread, what was lost and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.datasets.cutting import Finding

LEVELS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Loss:
    """Turns left out for one reason; `recordings` is how many they are of."""

    kind: str
    meaning: str
    turns: int
    recordings: int


@dataclass(frozen=True)
class TurnsCard:
    """What a dataset of turns holds.

    Attributes:
        name: of the dataset.
        released: turns there would be if nothing was lost; of so many recordings.
        hours, mean_s, median_s: of the clips; NaN where there is none.
        per_session: least, median and most turns of a recording.
        labels: turns of each level.
        losses: most turns first; their turns and `turns` come to `released`.
        kept_findings: kind -> turns that are in the dataset and odd.
        notes: what a reader should know beside the figures, e.g. what was published.
    """

    name: str
    turns: int
    released: int
    recordings: int
    released_recordings: int
    hours: float
    mean_s: float
    median_s: float
    per_session: tuple[int, float, int]
    labels: dict[int, int]
    losses: tuple[Loss, ...]
    kept_findings: dict[str, int]
    notes: tuple[str, ...] = ()


def turns_card(
    name: str,
    items: pd.DataFrame,
    released: int,
    released_recordings: int,
    findings: Sequence[Finding],
    *,
    meanings: dict[str, str] | None = None,
    notes: Sequence[str] = (),
) -> TurnsCard:
    """The card of these items.

    Args:
        items: manifest rows; `seconds` of each clip, `label`, `session_id`.
        findings: those not kept explain what is missing of `released`.
        meanings: kind of finding -> words for it.
    """
    seconds = items["seconds"].to_numpy(float)
    sizes = items.groupby("session_id").size().to_numpy()
    lost: dict[str, list[Finding]] = {}
    kept: dict[str, int] = {}
    for finding in findings:
        if finding.kept:
            kept[finding.kind] = kept.get(finding.kind, 0) + finding.turns
        else:
            lost.setdefault(finding.kind, []).append(finding)
    losses = [
        Loss(
            kind,
            (meanings or {}).get(kind, kind.replace("_", " ")),
            sum(finding.turns for finding in of_kind),
            len({finding.session_id for finding in of_kind}),
        )
        for kind, of_kind in lost.items()
    ]
    counts = items["label"].value_counts()
    return TurnsCard(
        name=name,
        turns=len(items),
        released=released,
        recordings=len(sizes),
        released_recordings=released_recordings,
        hours=float(seconds.sum() / 3600),
        mean_s=float(seconds.mean()) if len(seconds) else float("nan"),
        median_s=float(np.median(seconds)) if len(seconds) else float("nan"),
        per_session=(int(sizes.min()), float(np.median(sizes)), int(sizes.max()))
        if len(sizes)
        else (0, float("nan"), 0),
        labels={level: int(counts.get(level, 0)) for level in LEVELS},
        losses=tuple(sorted(losses, key=lambda loss: -loss.turns)),
        kept_findings=kept,
        notes=tuple(notes),
    )


def said(card: TurnsCard) -> str:
    """The card as text for a terminal; also fine as markdown."""
    least, median, most = card.per_session
    labels = ", ".join(
        f"{level}: {n:,} ({n / card.turns:.1%})" if card.turns else f"{level}: 0"
        for level, n in card.labels.items()
    )
    lines = [
        f"{card.name}: {card.turns:,} of {card.released:,} turns, "
        f"{card.recordings:,} of {card.released_recordings:,} recordings",
        f"- speech: {card.hours:.2f} h, clips of {card.mean_s:.1f} s on average, "
        f"{card.median_s:.1f} s in the median",
        f"- turns of a recording: {least} to {most}, {median:g} in the median",
        f"- labels: {labels}",
    ]
    lines += [f"- {note}" for note in card.notes]
    if card.losses:
        lines.append(f"- lost: {_counted(card.released - card.turns, 'turn')}")
        lines += [
            f"  - {_counted(loss.turns, 'turn')} of {_counted(loss.recordings, 'recording')}, "
            f"{loss.kind}: {loss.meaning}"
            for loss in card.losses
        ]
    if card.kept_findings:
        odd = ", ".join(f"{kind} {n:,}" for kind, n in sorted(card.kept_findings.items()))
        lines.append(f"- kept, and worth a look: {odd}")
    return "\n".join(lines)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
