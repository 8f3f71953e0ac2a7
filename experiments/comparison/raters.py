"""Figures 3 and 4 of study 2: how well every two human raters agree, where ratings are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.comparison.asked import Asked
from experiments.comparison.document import Exhibit, Section, figure
from experiments.comparison.drawing import INK, WIDTH, canvas, svg


def section(files: Sequence[Path], asked: Asked) -> Section | None:
    """A heatmap a file of ratings; None where none was given.

    Raises:
        validation.ratings.RatingsError: a file that is no table of 0/1 or NO/YES ratings.
    """
    if not files:
        return None
    from experiments.agreement_report import agreement_grid, study_of
    from validation.ratings import read_ratings
    from validation.scale import scale_named

    found = Section(
        "raters",
        "Human raters",
        ("Pairwise Cohen's kappa, as in Figures 3 and 4 of SpeechMentalManip.",),
    )
    for number, path in enumerate(files, start=1):
        ratings = read_ratings(path, scale_named("nominal", ""), reference="")
        study = study_of(ratings, ratings, **asked.drawn)
        rows = [
            {
                "first": pair.first,
                "second": pair.second,
                "kappa": pair.kappas["plain"].value,
                "low": pair.kappas["plain"].low,
                "high": pair.kappas["plain"].high,
                "shared": pair.shared,
                "reason": pair.kappas["plain"].reason or "",
            }
            for pair in study.pairs
        ]
        if not rows:
            found.notes.append(f"{path.name}: one rater, so no pair.")
            continue
        frame = pd.DataFrame(rows)
        said = "; ".join(f"{row[0]} {row[1]}, {row[2]} items" for row in agreement_grid(study).rows)
        found.exhibits.append(
            Exhibit(
                f"pairwise_kappa_{number}",
                f"Pairwise kappa: {path.stem}",
                f"Under each kappa the items both rated; few items, little meaning. {said}.",
                frame,
                svg=_heatmap(frame, study.group.raters),
            )
        )
    return found


def _heatmap(frame: pd.DataFrame, raters: Sequence[str]) -> str:
    place = {name: at for at, name in enumerate(raters)}
    grid = np.full((len(raters), len(raters)), np.nan)
    side = min(WIDTH, 1.6 + 0.62 * len(raters))
    with canvas(side + 0.7, side) as (drawing, axes):
        at = axes[0, 0]
        for row in frame.to_dict("records"):
            # Below the diagonal alone: above it the same figures would stand again.
            down, across = sorted((place[row["first"]], place[row["second"]]), reverse=True)
            grid[down, across] = row["kappa"]
            dark = row["kappa"] > 0.45
            at.text(
                across,
                down,
                f"{figure(row['kappa'])}\nn={row['shared']}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else INK,
            )
        # One hue from white: grey tells more from less, and what is below chance is white.
        image = at.imshow(grid, cmap="Blues", vmin=0, vmax=1)
        at.set_xticks(range(len(raters)), raters)
        at.set_yticks(range(len(raters)), raters)
        at.spines[:].set_visible(False)
        drawing.colorbar(image, ax=at, shrink=0.7, label="Cohen's kappa")
        return svg(drawing)
