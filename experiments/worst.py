"""The items a run got most wrong, to read and to listen to: one HTML file among its artifacts.

Ten clips are in the file itself, so it plays in MLflow and from a folder. It is a copy of
people's voices and words: the caller says whether it may hold them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.audio import AudioError, flac, read_clip
from core.manifest import is_nothing
from core.predictions import labels_of
from experiments.artifact_page import page, text

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 10
# Of sound in the file, before base64 makes a third more of it; what no longer fits is said.
MOST_BYTES = 6_000_000
LONGEST_WORDS = 20_000


def save_worst(
    predictions: pd.DataFrame,
    items: pd.DataFrame,
    title: str,
    path: Path,
    *,
    folder: Path,
    licence: str,
) -> None:
    """Write the page.

    Args:
        predictions, items: see `validation.schemas`.
        folder: of the dataset, where the items' audio starts.
        licence: of the dataset, shown on the page.
    """
    rows = {str(row["item_id"]): row for row in items.astype(object).to_dict("records")}
    room = MOST_BYTES
    parts = [
        f'<p class="quiet">The {SHOWN} items with the largest error over all conditions; one '
        "without an answer counts as wrong as it can be. Sound and words are under the dataset's "
        f"licence ({text(licence)}) and are in this file: keep it where the dataset may be.</p>"
    ]
    for item_id in worst_items(predictions, SHOWN):
        sound, size = _sound(folder, rows.get(item_id, {}), room)
        room -= size
        said = predictions[predictions["item_id"] == item_id]
        parts.append(_article(item_id, rows.get(item_id, {}), said, sound))
    path.write_text(page(f"{title}: the worst answers", "\n".join(parts)), encoding="utf-8")


def worst_items(predictions: pd.DataFrame, count: int) -> list[str]:
    """Item ids, largest mean error first; among equals the label that was thought least likely.

    The error is the distance of labels that are numbers, and otherwise 1 for a wrong one.
    """
    labels = labels_of(predictions.columns)
    numbered = all(label.isdecimal() for label in labels)
    place = {label: number for number, label in enumerate(labels)}
    gold = predictions["gold"].astype(str).map(place).to_numpy(dtype=float)
    said = [np.nan if is_nothing(p) else place[str(p)] for p in predictions["prediction"]]
    farthest = np.maximum(gold, len(labels) - 1 - gold) if numbered else 1.0
    off = np.abs(np.array(said, dtype=float) - gold)
    error = np.where(np.isnan(off), farthest, off if numbered else np.minimum(off, 1))
    shares = predictions[[f"p_{label}" for label in labels]].to_numpy(dtype=float)
    likely = np.nan_to_num(shares[np.arange(len(gold)), gold.astype(int)])
    table = predictions[["item_id"]].assign(error=error, likely=likely)
    means = table.groupby("item_id", sort=False).mean()
    ordered = means.sort_values(["error", "likely"], ascending=[False, True], kind="stable")
    return [str(item_id) for item_id in ordered.index[:count]]


def _sound(folder: Path, row: Mapping[Any, Any], room: int) -> tuple[str, int]:
    """A player of what a model is given, or why there is none; and the bytes it takes."""
    if not isinstance(row.get("audio"), str):
        return '<p class="quiet">No clip.</p>', 0
    span = [None if is_nothing(row.get(name)) else row[name] for name in ("start_s", "end_s")]
    try:
        samples = read_clip(folder / row["audio"], start_s=span[0], end_s=span[1]).samples
    except AudioError as error:
        return f'<p class="quiet">The clip cannot be played: {text(error)}</p>', 0
    content = flac(samples)
    if len(content) > room:
        return (
            f'<p class="quiet">The clip ({len(content) / 1e6:.1f} MB) is left out to keep this '
            "file small; <code>mlflow run . -e browse</code> plays it.</p>",
            0,
        )
    encoded = base64.b64encode(content).decode()
    player = f'<audio controls preload="metadata" src="data:audio/flac;base64,{encoded}"></audio>'
    return player, len(content)


def _article(item_id: str, row: Mapping[Any, Any], said: pd.DataFrame, sound: str) -> str:
    gold = said["gold"].iloc[0]
    words = [
        f'<p class="quiet">{name}</p><p class="words" dir="auto">{_words(row[name])}</p>'
        for name in ("context", "transcript")
        if isinstance(row.get(name), str) and row[name].strip()
    ]
    labels = labels_of(said.columns)
    records = said.astype(object).to_dict("records")
    cells = "".join(_cell(record, labels, str(gold)) for record in records)
    header = "".join(f'<th scope="col">{text(record["condition"])}</th>' for record in records)
    return (
        f'<article>\n<h2 dir="auto">{text(item_id)}</h2>\n<p class="quiet">label {text(gold)}</p>\n'
        f"{sound}\n{''.join(words)}\n<table><tr>{header}</tr><tr>{cells}</tr></table>\n</article>"
    )


def _words(said: str) -> str:
    if len(said) <= LONGEST_WORDS:
        return text(said)
    return f"{text(said[:LONGEST_WORDS])} ... <em>({len(said):,} characters, cut here)</em>"


def _cell(record: Mapping[Any, Any], labels: Sequence[str], gold: str) -> str:
    answer = None if is_nothing(record["prediction"]) else str(record["prediction"])
    judged = "right" if answer == gold else "wrong"
    shown = f'<p class="{judged}">{text(answer or "no answer")}</p>'
    if record["status"] != "ok":
        shown += f'<p class="quiet">{text(record["status"])}: {_words(str(record["reason"]))}</p>'
    shares = [record[f"p_{label}"] for label in labels]
    if not any(map(is_nothing, shares)):
        shown += _bars(shares, labels, gold)
    wrote = record.get("text")
    if isinstance(wrote, str) and wrote and wrote != answer:
        shown += f'<p class="quiet">wrote</p><p class="words" dir="auto">{_words(wrote)}</p>'
    return f"<td>{shown}</td>"


def _bars(shares: Sequence[float], labels: Sequence[str], gold: str) -> str:
    told = ", ".join(f"{label}: {share:.2f}" for label, share in zip(labels, shares, strict=True))
    bars = []
    for at, (label, share) in enumerate(zip(labels, shares, strict=True)):
        tall = round(38 * share, 1)
        edge = ' stroke="var(--ink)"' if label == gold else ""
        bars.append(
            f'<rect x="{24 * at + 2}" y="{40 - tall:.1f}" width="20" height="{tall}" '
            f'fill="var(--bar)"{edge}/>'
            f'<text x="{24 * at + 12}" y="54" text-anchor="middle">{text(label)}</text>'
        )
    width = 24 * len(labels)
    return (
        f'<svg role="img" aria-label="probabilities {text(told)}" viewBox="0 0 {width} 58" '
        f'width="{width}" height="58"><title>{text(told)}</title>{"".join(bars)}</svg>'
    )
