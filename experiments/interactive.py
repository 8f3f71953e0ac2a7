"""The figures of a run as pages: the same numbers as the PNGs, to point at and to open.

Each is one self-contained file of inline SVG: a plotting library in JavaScript would be
four megabytes in every run for two figures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.manifest import is_nothing
from core.metrics.estimate import Estimate
from core.predictions import labels_of
from experiments.artifact_page import data, page, text
from experiments.table import shown_metric

if TYPE_CHECKING:
    import pandas as pd

MOST_IDS = 500
SIDE, LEFT, TOP = 44, 46, 22
WIDTH, LABELS, ROW = 230, 92, 26


def save_confusion_page(predictions: pd.DataFrame, title: str, path: Path) -> None:
    """Gold against predicted, a panel a condition; a cell that is chosen lists its items.

    Args:
        predictions: as `experiments.figures.save_confusion` takes them.
    """
    labels = labels_of(predictions.columns)
    cells: list[dict[str, Any]] = []
    panels = []
    for condition, rows in predictions.groupby("condition", sort=False):
        held = _held(rows, labels)
        counts = {key: len(ids) for key, ids in held.items()}
        answered = sum(counts.values())
        drawn = _confusion(str(condition), labels, held, cells)
        panels.append(
            f"<figure><figcaption>{text(condition)}: {answered} answered, "
            f"{len(rows) - answered} not</figcaption>{drawn}</figure>"
        )
    body = (
        '<p class="quiet">Label down, answer across. Choose a cell to see which items are in '
        f'it.</p><div class="panels">{"".join(panels)}</div>'
        f'<p id="readout" role="status"></p><ul id="ids"></ul>{data("cells", cells)}'
    )
    path.write_text(page(title, body, "confusion.js"), encoding="utf-8")


def _held(rows: pd.DataFrame, labels: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    held: dict[tuple[str, str], list[str]] = {(g, p): [] for g in labels for p in labels}
    for item_id, gold, said in zip(rows["item_id"], rows["gold"], rows["prediction"], strict=True):
        if not is_nothing(said):
            held[str(gold), str(said)].append(str(item_id))
    return held


def _confusion(
    condition: str,
    labels: Sequence[str],
    held: dict[tuple[str, str], list[str]],
    cells: list[dict[str, Any]],
) -> str:
    most = max((len(ids) for ids in held.values()), default=0) or 1
    shapes = []
    for at, label in enumerate(labels):
        middle = SIDE * at + SIDE / 2
        across = f'x="{LEFT + middle}" y="{TOP - 7}" text-anchor="middle"'
        down = f'x="{LEFT - 8}" y="{TOP + middle + 4}" text-anchor="end"'
        shapes += [f"<text {place}>{text(label)}</text>" for place in (across, down)]
    for (gold, said), ids in held.items():
        x, y = LEFT + SIDE * labels.index(said), TOP + SIDE * labels.index(gold)
        cells.append(
            {
                "condition": condition,
                "gold": gold,
                "said": said,
                "count": len(ids),
                "ids": ids[:MOST_IDS],
            }
        )
        named = f"{condition}: label {gold}, said {said}: {len(ids)}"
        shapes.append(
            f'<g class="cell" tabindex="0" role="button" data-cell="{len(cells) - 1}" '
            f'aria-label="{text(named)}"><rect x="{x}" y="{y}" width="{SIDE - 2}" '
            f'height="{SIDE - 2}" rx="3" fill-opacity="{len(ids) / most:.3f}"/>'
            f'<text x="{x + SIDE / 2 - 1}" y="{y + SIDE / 2 + 4}" text-anchor="middle">'
            f"{len(ids)}</text></g>"
        )
    wide, high = LEFT + SIDE * len(labels), TOP + SIDE * len(labels)
    return f'<svg viewBox="0 0 {wide} {high}" width="{wide}">{"".join(shapes)}</svg>'


def save_forest_page(
    estimates: Sequence[Estimate], conditions: Collection[str], title: str, path: Path
) -> None:
    """Every metric with its interval; pointing at one says it in words, boxes fade conditions."""
    panels: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        if not estimate.metric.endswith("_p"):
            panels.setdefault(shown_metric(estimate, conditions), []).append(estimate)
    shown = dict.fromkeys(e.condition for rows in panels.values() for e in rows)
    boxes = " ".join(
        f'<label><input type="checkbox" checked value="{text(c)}"> {text(c)}</label>' for c in shown
    )
    drawn = "".join(
        f"<figure><figcaption>{text(name.replace('_', ' '))}</figcaption>"
        f"{_forest(name, rows)}</figure>"
        for name, rows in panels.items()
    )
    body = (
        f'<p>{boxes}</p><p id="readout" role="status">Point at a figure to read it.</p>'
        f'<div class="panels">{drawn}</div>'
    )
    path.write_text(page(f"{title}, 95 % intervals", body, "forest.js"), encoding="utf-8")


def _forest(name: str, rows: Sequence[Estimate]) -> str:
    ends = [v for e in rows for v in (e.low, e.value, e.high) if math.isfinite(v)]
    is_difference = name.endswith("_difference")
    low, high = min([*ends, *([0.0] if is_difference else [])], default=0.0), max(ends, default=1.0)
    if is_difference:
        high = max(high, 0.0)
    spare = (high - low) * 0.06 or 0.5
    low, high = low - spare, high + spare

    def across(value: float) -> float:
        return round(LABELS + WIDTH * (value - low) / (high - low), 1)

    height = ROW * len(rows)
    shapes = [
        f'<line class="axis" x1="{LABELS}" x2="{LABELS + WIDTH}" y1="{height}" y2="{height}"/>'
    ]
    for value in (low + spare, (low + high) / 2, high - spare):
        shapes.append(
            f'<text class="quiet" x="{across(value)}" y="{height + 15}" text-anchor="middle">'
            f"{value:.2f}</text>"
        )
    if is_difference:
        shapes.append(
            f'<line class="zero" x1="{across(0)}" x2="{across(0)}" y1="0" y2="{height}"/>'
        )
    shapes += [_mark(name, e, ROW * at + ROW / 2, across) for at, e in enumerate(rows)]
    total = LABELS + WIDTH + 24
    return f'<svg viewBox="0 0 {total} {height + 20}" width="{total}">{"".join(shapes)}</svg>'


def _mark(name: str, estimate: Estimate, y: float, across: Any) -> str:
    said = f"{name.replace('_', ' ')}, {estimate.condition}: {_in_words(estimate)}"
    shapes = (
        f'<text x="0" y="{y + 4}">{text(estimate.condition)} {estimate.n}/{estimate.n_total}</text>'
    )
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        ends = f'x1="{across(estimate.low)}" x2="{across(estimate.high)}"'
        shapes += f'<line {ends} y1="{y}" y2="{y}"/>'
    if math.isfinite(estimate.value):
        shapes += f'<circle cx="{across(estimate.value)}" cy="{y}" r="4.5"/>'
    return (
        f'<g class="mark" tabindex="0" role="img" data-condition="{text(estimate.condition)}" '
        f'aria-label="{text(said)}"><rect x="0" y="{y - ROW / 2}" width="{LABELS + WIDTH}" '
        f'height="{ROW}" fill="transparent"/>{shapes}</g>'
    )


def _in_words(estimate: Estimate) -> str:
    of = f"{estimate.n} of {estimate.n_total} items"
    if math.isnan(estimate.value):
        return f"undefined ({estimate.reason or 'no reason given'}), {of}"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.3f}, {of}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}], {of}"
