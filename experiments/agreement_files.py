"""The files that go with an agreement report: one row an item, the tables, the pairwise heatmap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.agreement_report import (
    Study,
    agreement_grid,
    pairs_grid,
    reference_grid,
    weighting,
)
from experiments.table import Grid
from validation import agreement, consensus
from validation.ratings import Ratings


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """Artifact name -> table, for the UI's table view."""
    found = {
        "agreement.json": _frame(agreement_grid(study)),
        "pairs.json": _frame(pairs_grid(study)),
        "items.json": item_table(study),
    }
    if study.comparisons:
        found["reference.json"] = _frame(reference_grid(study))
    return found


def _frame(grid: Grid) -> pd.DataFrame:
    return pd.DataFrame(list(grid.rows), columns=list(grid.header))


def item_table(study: Study) -> pd.DataFrame:
    """One row an item: what is kept of it by study 2, section 6.1, and every rating."""
    everyone, scale = study.everyone, study.everyone.scale
    medians = consensus.median_labels(everyone.values)
    frame = pd.DataFrame({"item_id": everyone.items})
    if scale.kind == "nominal":
        frame["label"] = [record.label for record in study.records]
        frame["status"] = [record.status for record in study.records]
        for label in scale.labels:
            frame[f"votes_{label}"] = [record.histogram[label] for record in study.records]
    else:
        frame["median"] = medians
    if scale.kind == "ordinal":
        for number, votes in _histogram(everyone):
            frame[f"votes_{number}"] = votes
    frame["raters"] = (~np.isnan(everyone.values)).sum(1)
    frame["raters_in_group"] = (~np.isnan(study.group.values)).sum(1)
    if everyone.reference is not None:
        frame["reference"] = [_shown(everyone, value) for value in everyone.reference]
    for column, name in enumerate(everyone.raters):
        frame[f"rating_{name}"] = [_shown(everyone, value) for value in everyone.values[:, column]]
    asked = {each.item_id: each for each in study.assignments}
    if asked:
        for role in ("first", "second", "tie_breaker"):
            frame[f"adjudicator_{role}"] = [
                getattr(asked[item], role) if item in asked else None for item in everyone.items
            ]
    return frame


def _histogram(ratings: Ratings) -> list[tuple[str, Sequence[int]]]:
    levels = np.array(ratings.scale.numbers)
    votes = agreement.vote_counts(ratings.values, levels)
    return [(f"{level:g}", votes[:, place].tolist()) for place, level in enumerate(levels)]


def _shown(ratings: Ratings, value: float) -> str | None:
    if math.isnan(value):
        return None
    if ratings.scale.kind == "interval":
        return f"{value:g}"
    return ratings.scale.labels[ratings.scale.numbers.index(value)]


def save_files(study: Study, folder: Path) -> None:
    """items.csv and pairwise_kappa.png."""
    item_table(study).to_csv(folder / "items.csv", index=False)
    if study.pairs:
        save_heatmap(study, folder / "pairwise_kappa.png")


def save_heatmap(study: Study, path: Path) -> None:
    """Kappa of every two raters with the items they share; grey where undefined."""
    # Not pyplot: it keeps every figure alive and asks for a display.
    from matplotlib.figure import Figure

    raters = study.group.raters
    place = {name: index for index, name in enumerate(raters)}
    grid = np.full((len(raters), len(raters)), np.nan)
    side = 1.8 + 0.75 * len(raters)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    for pair in study.pairs:
        kappa = pair.kappas.get(weighting(study))
        value = math.nan if kappa is None else kappa.value
        shown = "–" if math.isnan(value) else f"{value:.2f}"
        colour = "white" if abs(value) > 0.6 else "black"
        for row, column in ((pair.first, pair.second), (pair.second, pair.first)):
            grid[place[row], place[column]] = value
            axes.text(
                place[column],
                place[row],
                f"{shown}\nn={pair.shared}",
                ha="center",
                va="center",
                fontsize=8,
                color=colour,
            )
    axes.set_facecolor("#e6e6e6")
    image = axes.imshow(grid, cmap="RdBu", vmin=-1, vmax=1)
    axes.set_xticks(range(len(raters)), raters)
    axes.set_yticks(range(len(raters)), raters)
    axes.set_title(f"Cohen's kappa, {weighting(study)}: {study.group.source}", fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=110)
