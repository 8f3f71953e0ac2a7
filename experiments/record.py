"""What one evaluation writes to MLflow: names, tags, figures, tables and files.

Metrics are `metric/condition`, so that the UI's charts, which group by what
stands before the last slash, put the conditions side by side. Interval ends
share one group whose name sorts last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd

from core.metrics.estimate import Estimate
from experiments.evaluation import Evaluation
from experiments.figures import save_confusion, save_forest
from experiments.interactive import save_confusion_page, save_forest_page
from experiments.run_description import parameters, tags
from experiments.store_place import WITH_SOUND
from experiments.table import (
    Coverage,
    comparisons_grid,
    coverage,
    frame_grid,
    markdown,
    metrics_grid,
    narrower_bases,
    shown_metric,
    undefined_reasons,
)
from experiments.tracking import MOST_METRICS, Record
from experiments.trajectory_figure import save_trajectories
from experiments.worst import save_worst

INTERVALS = "zz_interval"
# Of the 8,000 characters a description may have; a table cut in the middle helps nobody.
ROOM_FOR_TABLES = 7_500
# Rows of a table of items: a browser has to hold it. Both studies' sets fit in whole.
MOST_ROWS = 5_000


def record_of(evaluation: Evaluation, staging: Path, *, sound: bool = False) -> Record:
    """Everything to write for a run.

    Args:
        staging: empty folder the artifacts are gathered in; it must outlive the writing.
        sound: whether clips of the worst items are among them.
    """
    plan = evaluation.plan
    answered = coverage(evaluation.predictions)
    name = f"{plan.card.name} · {plan.task.NAME} · {len(evaluation.items)} items"
    _stage(evaluation, staging, name)
    if sound:
        _stage_worst(evaluation, staging / WITH_SOUND, name)
    return Record(
        name=name,
        parameters={f"undertone.{k}": said for k, said in parameters(evaluation).items()},
        tags=tags(evaluation),
        metrics=metrics(evaluation.estimates, answered, evaluation.variants),
        note=note(evaluation, answered),
        files=staging,
        tables=item_tables(evaluation.predictions),
        headline=tuple(dict.fromkeys(e.metric for e in evaluation.estimates)),
        dataset={
            "name": plan.dataset.name,
            # MLflow takes 36 characters; the whole hash is a parameter.
            "digest": plan.dataset.hash[:32],
            "source": json.dumps({"uri": str(plan.dataset.folder)}),
            "profile": json.dumps(
                {"items": len(plan.dataset.items), "synthetic": plan.dataset.synthetic}
            ),
        },
    )


def metrics(
    estimates: Sequence[Estimate],
    answered: Sequence[Coverage],
    variants: Sequence[Estimate] = (),
) -> dict[str, float]:
    """MLflow names and values: figures, what they rest on, variants and ends while there is room.

    Args:
        variants: one figure each; all of them are in `tables/`, whatever fits here.
    """
    conditions = {row.condition for row in answered}
    named = {name_of(e, conditions): e.value for e in estimates}
    for row in answered:
        named[f"coverage/{row.condition}"] = row.share
        named[f"n/{row.condition}"] = row.n
        for status, count in row.counts.items():
            named[f"{status}/{row.condition}"] = count
    room = MOST_METRICS - len(named)
    named |= {name_of(e, conditions): e.value for e in variants[:room]}
    ends = {
        f"{INTERVALS}/{name_of(e, conditions).replace('/', '.')}.{side}": end
        for e in estimates
        for side, end in (("low", e.low), ("high", e.high))
        if end == end
    }
    return named | _while_room(ends, MOST_METRICS - len(named))


def _while_room(ends: Mapping[str, float], room: int) -> dict[str, float]:
    """The ends of whole metrics, in order, until one no longer fits.

    A metric with its ends in one condition and not in another would mislead a chart.
    """
    by_metric: dict[str, dict[str, float]] = {}
    for name, end in ends.items():
        by_metric.setdefault(name.split(".")[0], {})[name] = end
    kept: dict[str, float] = {}
    for of_metric in by_metric.values():
        if len(kept) + len(of_metric) > room:
            break
        kept |= of_metric
    return kept


def name_of(estimate: Estimate, conditions: Collection[str]) -> str:
    """`mae/AO`, and `mae_difference/AT-TO`: a difference is not on the metric's own axis."""
    return f"{shown_metric(estimate, conditions)}/{estimate.condition}"


def item_tables(predictions: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table a condition; the UI groups by the first column and compares the second.

    Of more than `MOST_ROWS` items the first; predictions.parquet has all.
    """
    return {
        f"items/{condition}.json": _plain(rows.head(MOST_ROWS))
        for condition, rows in predictions.groupby("condition", sort=False)
    }


def note(evaluation: Evaluation, answered: Sequence[Coverage]) -> str:
    """The run's description: the table first, then what a reader must know to read it."""
    plan = evaluation.plan
    parts = [markdown(metrics_grid(evaluation.estimates, answered))]
    pairs = comparisons_grid(evaluation.estimates, answered)
    if pairs.rows:
        parts.append(markdown(pairs))
    parts.append(
        "95 % percentile bootstrap intervals in brackets. Metrics are over the answered items, and "
        "*answered* says how many of how many that is; those that end in `_all` are over all "
        "items, one without an answer counted as wrong as it can be."
    )
    if plan.dataset.synthetic:
        source = plan.dataset.source.strip().rstrip(".")
        parts.append(f"**Synthetic data**: made, not recorded from life. Source: {source}.")
    released = plan.dataset.about.get("released")
    if isinstance(released, int):
        parts.append(
            f"The dataset holds {len(plan.dataset.items):,} of {released:,} released turns."
        )
    if plan.card.verified != "weights":
        parts.append(f"Model verified: {plan.card.verified}; not yet run with its real weights.")
    parts += evaluation.notes
    if len(evaluation.items) > MOST_ROWS:
        parts.append(
            f"The tables in `items/` hold the first {MOST_ROWS:,} of {len(evaluation.items):,} "
            "items; `predictions.parquet` holds all."
        )
    parts += narrower_bases(evaluation.estimates, answered)
    parts += undefined_reasons(evaluation.estimates)
    for table in (table for table in evaluation.tables if table.shown):
        shown = f"{table.title}\n\n{markdown(frame_grid(table.frame))}"
        if sum(map(len, parts)) + len(shown) > ROOM_FOR_TABLES:
            parts.append("Further tables are among the run's files, in `tables/`.")
            break
        parts.append(shown)
    return "\n\n".join(parts)


def _stage(evaluation: Evaluation, staging: Path, title: str) -> None:
    folder = evaluation.plan.folder
    files = (folder.predictions, folder.metrics, folder.requests, folder.responses)
    for path in (*files, folder.variants, folder.work, folder.log):
        if path.exists():
            shutil.copy2(path, staging / path.name)
    if folder.tables.exists():
        shutil.copytree(folder.tables, staging / "tables")
    for template in evaluation.templates:
        path = staging / "prompts" / f"{template.id}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.text, encoding="utf-8")
    figures = staging / "figures"
    figures.mkdir()
    # Numbered, because the artifact list sorts by name and the first is looked at first.
    conditions = evaluation.plan.settings.conditions
    save_forest(evaluation.estimates, conditions, title, figures / "1_forest.png")
    save_forest_page(evaluation.estimates, conditions, title, figures / "1_forest.html")
    save_confusion(evaluation.predictions, title, figures / "2_confusion.png")
    save_confusion_page(evaluation.predictions, title, figures / "2_confusion.html")
    if evaluation.variants:
        save_forest(evaluation.variants, conditions, title, figures / "3_variants.png")
    for table in evaluation.tables:
        if table.name == "trajectories":
            save_trajectories(table.frame, conditions, title, figures / "4_trajectories.png")


def _stage_worst(evaluation: Evaluation, path: Path, title: str) -> None:
    dataset = evaluation.plan.dataset
    save_worst(
        evaluation.predictions,
        evaluation.items,
        title,
        path,
        folder=dataset.folder,
        licence=dataset.licence,
    )


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    # The UI's table shows JSON: extension types and NaN would come out as odd words.
    return rows.astype(object).where(rows.notna(), None)
