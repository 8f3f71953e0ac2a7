"""What `evaluate` shows in the end: the tables, what is to be said beside them, and where all is.

Kept as plain data, so that a finished run can show it again without working it out.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.table import (
    Grid,
    comparisons_grid,
    coverage,
    frame_grid,
    metrics_grid,
    narrower_bases,
    print_grid,
    undefined_reasons,
)

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation


@dataclass(frozen=True)
class Shown:
    """What was found, in words.

    Attributes:
        grids: title and table, in the order they are shown.
        remarks: lines below them.
        results: the run's folder of results.
    """

    grids: tuple[tuple[str, Grid], ...]
    remarks: tuple[str, ...]
    results: str


def shown_of(evaluation: Evaluation) -> Shown:
    """An evaluation in words."""
    answered = coverage(evaluation.predictions)
    grids = [(_title(evaluation), metrics_grid(evaluation.estimates, answered))]
    pairs = comparisons_grid(evaluation.estimates, answered)
    if pairs.rows:
        grids.append(("between conditions", pairs))
    grids += [(one.title, frame_grid(one.frame)) for one in evaluation.tables if one.shown]
    remarks = [
        *evaluation.notes,
        *narrower_bases(evaluation.estimates, answered),
        *undefined_reasons(evaluation.estimates),
    ]
    return Shown(tuple(grids), tuple(remarks), str(evaluation.plan.folder.results))


def show(found: Shown, effort: str, look: str) -> None:
    """Print it.

    Args:
        effort: what it took, and which MLflow run holds it.
        look: the command or address to look at it.
    """
    for title, grid in found.grids:
        print_grid(grid, title, sys.stdout)
    for line in found.remarks:
        print(line)
    print(effort)
    print(f"files: {found.results}")
    print(f"look:  {look}")


def _title(evaluation: Evaluation) -> str:
    plan = evaluation.plan
    synthetic = ", synthetic" if plan.dataset.synthetic else ""
    # A build that could not have every turn must not pass for the whole.
    released = plan.dataset.about.get("released")
    of_released = f" (of {released:,} released)" if isinstance(released, int) else ""
    return (
        f"{plan.card.name} on {plan.task.NAME}, {plan.dataset.name}{synthetic}: "
        f"{len(evaluation.items)} of {len(plan.dataset.items)} items{of_released}, 95 % intervals"
    )
