"""Distress over each session, as labelled and as predicted: one panel a session."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.figures import DOTS_PER_INCH, new_figure

MOST_SESSIONS = 12
# Told apart by dash and mark as well as by grey, and to colour-blind eyes.
STYLES = {
    "AO": {"color": "#d55e00", "ls": "--", "marker": "s"},
    "AT": {"color": "#0072b2", "ls": "-", "marker": "o"},
    "TO": {"color": "#009e73", "ls": ":", "marker": "^"},
}


def save_trajectories(
    turns: pd.DataFrame, conditions: Collection[str], title: str, path: Path
) -> None:
    """The gold level as black steps, what each condition stated as marked lines.

    Args:
        turns: as `core.trajectories.trajectory` gives them. Of more than twelve sessions those
            with the most turns are shown, and the title says of how many. A turn without an
            answer leaves a gap.
    """
    sizes = turns["session_id"].value_counts(sort=False)
    longest = sizes.sort_values(ascending=False, kind="stable").index[:MOST_SESSIONS]
    shown = [session for session in sizes.index if session in set(longest)]
    columns = min(3, max(1, len(shown)))
    rows = math.ceil(len(shown) / columns) or 1
    figure = new_figure(3.6 * columns, 0.9 + 1.9 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, session in zip(panels, shown, strict=False):
        _draw(axes, turns[turns["session_id"] == session], conditions)
        axes.set_title(str(session), fontsize=9)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    of_all = f", {len(shown)} of {len(sizes)} sessions" if len(shown) < len(sizes) else ""
    figure.suptitle(f"{title}{of_all}: distress from turn to turn", fontsize=10)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def _draw(axes: Any, turns: pd.DataFrame, conditions: Collection[str]) -> None:
    # Evenly, since what lies between two turns of a patient is of any length.
    places = list(range(1, len(turns) + 1))
    axes.step(places, turns["gold"], where="mid", color="black", lw=2, label="reference")
    for condition in conditions:
        style: dict[str, Any] = STYLES.get(condition, {})
        axes.plot(places, turns[condition], ms=4, lw=1.2, alpha=0.85, label=condition, **style)
    axes.set_ylim(0.7, 5.3)
    axes.set_yticks(range(1, 6))
    axes.set_xticks(places if len(places) <= 12 else places[:: math.ceil(len(places) / 12)])
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
