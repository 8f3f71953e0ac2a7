"""Who is best, and how sure that is: ranks with intervals, and the critical-difference diagram."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from core.metrics.ordinal import share
from core.rating_tables import FEW_SESSIONS
from core.stats.critical_difference import CriticalDifference, critical_difference
from core.stats.ranks import rank_intervals
from experiments.comparison import plots
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells
from experiments.comparison.document import Exhibit, Section, table
from experiments.comparison.drawing import dots

LEVEL = 0.05
MOST_PAIRS = 100
"""Pairs of models that are laid out; the CSV has all."""


def section(cells: Cells, pairwise: pd.DataFrame, asked: Asked) -> Section:
    """Ranks and critical differences of each condition two models or more were run in.

    Args:
        pairwise: Holm-adjusted tests between models: condition, first, second, p_holm.
    """
    drawn_over = "sessions" if cells.units is not None else "items"
    found = Section(
        "ranking",
        "Ranking",
        (
            "Over all items, no answer charged the worst error, so that a model gains nothing by "
            "leaving out what is hard.",
        ),
    )
    conditions = [c for c in cells.conditions if len(cells.of_condition(c)) > 1]
    if not conditions:
        found.notes.append("One model has no rank; it takes two or more in a condition.")
        return found
    found.exhibits.append(_ranks(cells, conditions, drawn_over, asked))
    for condition in conditions:
        found.exhibits.append(_critical(cells, condition, pairwise, found.notes))
    found.exhibits.append(_pairwise(pairwise))
    return found


def _ranks(cells: Cells, conditions: list[str], drawn_over: str, asked: Asked) -> Exhibit:
    rows = []
    for condition in conditions:
        places = cells.of_condition(condition)
        ranks = rank_intervals(cells.charged[places], sessions=cells.units, **asked.drawn)
        for number, place in enumerate(places):
            rows.append(
                {
                    "row": cells.keys[place][0],
                    "panel": condition,
                    "series": "rank",
                    "value": ranks.rank[number],
                    "low": ranks.low[number],
                    "high": ranks.high[number],
                    "first": ranks.best[number],
                }
            )
    frame = pd.DataFrame(rows)
    most = float(len(cells.models))
    return Exhibit(
        "ranks",
        "Ranks with bootstrap intervals",
        f"Rank by mean {cells.loss}, 1 the best, with its 95 % interval over resampled "
        f"{drawn_over}. “first” in the CSV: share of resamples in which the model came first.",
        frame,
        svg=dots(frame, "rank", limits=(0.5, most + 0.5), whole=True, same_x=True),
    )


def _critical(cells: Cells, condition: str, pairwise: pd.DataFrame, notes: list[str]) -> Exhibit:
    places = cells.of_condition(condition)
    names = [cells.keys[place][0] for place in places]
    blocks, unit = _blocks(cells, places)
    found = critical_difference(blocks, level=LEVEL)
    if found.reason:
        notes.append(f"Critical difference, {condition}: {found.reason}.")
    few = f"{len(blocks)} {unit} are few blocks for Friedman's test; read the diagrams as sketches."
    if len(blocks) < FEW_SESSIONS and few not in notes:
        notes.append(few)
    frame = pd.DataFrame({"model": names, "mean_rank": found.mean_ranks}).sort_values("mean_rank")
    frame = frame.assign(
        condition=condition,
        blocks=found.blocks,
        friedman=found.statistic,
        p=found.p,
        critical_difference=found.difference,
    )
    return Exhibit(
        f"critical_difference_{condition}",
        f"Critical difference, {condition}",
        _about(found, unit, condition, pairwise),
        frame,
        svg=plots.critical_difference_diagram(found, names, unit),
    )


def _blocks(cells: Cells, places: list[int]) -> tuple[np.ndarray, str]:
    """(blocks, models) mean losses: a session a block, since its turns are not independent."""
    charged = cells.charged[places]
    if cells.sessions is None:
        return charged.T, "items"
    names, place = np.unique(cells.sessions, return_inverse=True)
    sums = np.stack([np.bincount(place, weights=row, minlength=len(names)) for row in charged], 1)
    return share(sums, np.bincount(place)[:, None]), "sessions"


def _about(found: CriticalDifference, unit: str, condition: str, pairwise: pd.DataFrame) -> str:
    of_condition = pairwise[pairwise["condition"] == condition]
    apart = int((of_condition["p_holm"] < LEVEL).sum())
    test = (
        f"Friedman's test over {found.blocks} {unit}: χ² = {found.statistic:.1f}, "
        f"p {'< 0.001' if found.p < 0.001 else f'= {found.p:.3f}'}. "
        if not np.isnan(found.p)
        else ""
    )
    return (
        f"Mean rank within a block, 1 the best. {test}Bars join models whose mean ranks are no "
        f"further apart than Nemenyi's critical difference at {LEVEL:g}. That distance depends on "
        f"which models are in the pool; by pairwise tests with Holm's adjustment {apart} of "
        f"{len(of_condition)} pairs differ."
    )


def _pairwise(pairwise: pd.DataFrame) -> Exhibit:
    every = pairwise.sort_values("p_holm", kind="stable")[
        ["condition", "first", "second", "difference", "p", "p_holm", "n"]
    ].rename(
        columns={
            "condition": "Cond.",
            "first": "First",
            "second": "Second",
            "difference": "Difference",
            "p_holm": "p, Holm",
        }
    )
    shown = every.head(MOST_PAIRS)
    return table(
        "pairwise_models",
        "Pairs of models",
        "Paired tests over the items both answered, Holm's adjustment within a condition; the "
        f"first {len(shown)} of {len(every)} by p. All are in the CSV.",
        shown,
        words=3,
        folded=True,
        numbers=every,
    )


def pairs_within(cells: Cells, condition: str) -> list[tuple[str, str]]:
    """Names of every two cells of a condition, the better model first."""
    from experiments.comparison.cells import name

    named = [name(cells.keys[place]) for place in cells.of_condition(condition)]
    return list(combinations(named, 2))
