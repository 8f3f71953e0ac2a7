"""From gathered runs to the sections of a report, checked against what the runs logged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.rating_tables import answered_shares
from core.stats import paired
from experiments.comparison import (
    answers,
    breakdown,
    cost,
    distress,
    manipulation,
    overview,
    ranking,
    raters,
    unanswered,
)
from experiments.comparison.asked import Asked
from experiments.comparison.cells import SEPARATOR, Cells, name
from experiments.comparison.document import Section, counted, listed
from experiments.comparison.gathering import Gathered, GatheringError

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Report:
    """What is written: its sections, and every metric's frame for MLflow."""

    title: str
    lines: tuple[str, ...]
    sections: tuple[Section, ...]
    cells: Cells
    metrics: pd.DataFrame
    headline: str


def report_of(gathered: Gathered, asked: Asked, ratings: Sequence[Path] = ()) -> Report:
    """Everything, in reading order.

    Raises:
        core.stats.paired.UnequalItemsError: runs over other items.
        GatheringError: no run in one of the studies' conditions, or predictions that do not give
            what their run logged.
    """
    if not gathered.predictions:
        raise GatheringError("The runs hold none of the conditions AO, AT and TO.")
    if gathered.task == "distress":
        cells, headline = _side_by_side(gathered, distress.cells_of), "mae"
        own, metrics = distress.sections(cells, asked)
        labels, sure, sure_of = (
            distress_labels(),
            _sure_of_level,
            "probability of the likeliest level",
        )
        pairwise = _compared(cells, asked, errors=True)
    else:
        cells, headline = _side_by_side(gathered, manipulation.cells_of), "accuracy"
        own, metrics = manipulation.sections(cells, asked)
        labels, sure, sure_of = ("YES", "NO"), _sure_of_yes, "p(YES)"
        pairwise = _compared(cells, asked, errors=False)
    assert_as_logged(gathered, metrics)
    results, audio, *rest = own
    sections = [
        results,
        unanswered.section(cells),
        audio,
        ranking.section(cells, pairwise, asked),
        *[section for section in rest if section.name != "appendix_f"],
        answers.section(cells, labels, sure, sure_of),
        breakdown.section(cells, labels, asked),
        cost.section(cells, gathered),
        raters.section(ratings, asked),
        *[section for section in rest if section.name == "appendix_f"],
        overview.variants_section(gathered, cells.loss),
        overview.runs_section(gathered),
    ]
    kept = tuple(section for section in sections if section is not None)
    return Report(
        f"{gathered.task.capitalize()} on {gathered.dataset}",
        tuple(_lines(gathered, cells, asked)),
        kept,
        cells,
        metrics,
        headline,
    )


def _side_by_side(gathered: Gathered, cells_of: Callable[[Gathered], Cells]) -> Cells:
    try:
        return cells_of(gathered)
    except paired.UnequalItemsError as error:
        # Cells are named by model and condition; what -P runs takes are the ids.
        ids = ", ".join(
            f"{name(key)} is {run.id[:8]}"
            for key, run in gathered.behind.items()
            if name(key) in str(error)
        )
        raise paired.UnequalItemsError(
            f"{error} Of the runs, {ids}; name those that belong together with -P runs=ID,ID."
        ) from error


def distress_labels() -> tuple[str, ...]:
    from core.tasks.distress import LABELS

    return LABELS


def _sure_of_level(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    shares = answered_shares(rows)
    known = np.asarray(~np.isnan(shares).any(axis=1))
    sure = np.where(known, np.where(known[:, None], shares, 0).max(1), np.nan)
    likeliest = np.where(known[:, None], shares, 0).argmax(1) + 1
    return sure, likeliest == rows["gold"].to_numpy(np.int64)


def _sure_of_yes(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    p_yes = rows["expected"].to_numpy(np.float64, na_value=np.nan)
    answered = (rows["status"] == "ok").to_numpy(bool)
    return np.where(answered, p_yes, np.nan), (rows["gold"] == "YES").to_numpy(bool)


def _compared(cells: Cells, asked: Asked, *, errors: bool) -> pd.DataFrame:
    """Every two models of each condition, Holm's adjustment within it."""
    tables = []
    for condition in cells.conditions:
        pairs = ranking.pairs_within(cells, condition)
        if not pairs:
            continue
        tested = (
            paired.compare_errors(cells.aligned, pairs, resamples=0)
            if errors
            else paired.compare_answers(cells.aligned, pairs, sign_flips=False)
        )
        for side in ("first", "second"):
            tested[side] = [said.rpartition(SEPARATOR)[0] for said in tested[side]]
        tables.append(tested.assign(condition=condition))
    columns = ["condition", "first", "second", "difference", "p", "p_holm", "n", "reason"]
    return pd.concat(tables)[columns] if tables else pd.DataFrame(columns=columns)


def assert_as_logged(gathered: Gathered, metrics: pd.DataFrame) -> None:
    """Every figure that a run logged too must be the one its predictions give.

    Raises:
        GatheringError: naming run, metric and both figures.
    """
    for row in metrics.to_dict("records"):
        run = gathered.behind[row["model"], row["condition"]]
        logged = run.metrics.get(f"{row['metric']}/{row['condition']}")
        ours = float(row["value"])
        if logged is None or (math.isnan(logged) and math.isnan(ours)):
            continue
        if not math.isclose(logged, ours, rel_tol=0, abs_tol=TOLERANCE):
            raise GatheringError(
                f"Run {run.id} ({run.name}) logged {row['metric']}/{row['condition']} = "
                f"{logged:.6g}, and its predictions give {ours:.6g}: one of them was changed "
                "since. Evaluate it again (its answers are kept), or leave it out with -P runs=."
            )


def _lines(gathered: Gathered, cells: Cells, asked: Asked) -> list[str]:
    n = len(cells.aligned.item_ids)
    sessions = cells.sessions
    of_sessions = f" of {len(np.unique(sessions))} sessions" if sessions is not None else ""
    models = f"{len(cells.models)} models" if len(cells.models) > 1 else "One model"
    lines = [
        f"{models}: {listed(cells.models, 12)}.",
        f"{n:,} items{of_sessions}, {listed(cells.conditions)}; "
        f"{counted(len(cells.keys), 'cell')} from "
        f"{counted(sum(map(len, gathered.runs.values())), 'run')}. "
        f"Intervals: 95 % percentile bootstrap, {asked.resamples:,} resamples, seed {asked.seed}.",
    ]
    if asked.published:
        lines.append(
            f"Published figures: {asked.published.title}; {asked.published.items:,} items. They "
            "are marked as published wherever they stand."
        )
    if gathered.synthetic:
        lines.append(
            "Synthetic data, as its dataset.json says: its sound or its words were made, not "
            "recorded from life. The figures hold for such data; they say nothing about people."
        )
    else:
        lines.append("Nothing here is a clinical instrument: labels are perceived, not diagnosed.")
    return lines
