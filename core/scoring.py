"""From tables of counts to estimates: the part of scoring that every task shares.

Each figure carries the items it rests on and the items asked. What became of the others
(refused, unparsed, truncated, failed) is in the predictions table and shown from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.manifest import is_nothing
from core.metrics.estimate import Estimate
from core.stats.bootstrap import Interval, Metric, bootstrap

Counts = NDArray[Any]

PAIRS = (("AT", "TO"), ("AO", "TO"), ("AT", "AO"))
"""Conditions compared, first minus second: what hearing adds to the words comes first."""


def of_condition(
    condition: str,
    table: Counts,
    metrics: Mapping[str, Metric],
    why: Callable[[str, Counts], str | None],
    *,
    resamples: int,
    seed: int,
) -> list[Estimate]:
    """Every metric of one condition with its percentile interval over items.

    Args:
        table: (R, R + 1) gold by predicted, the last column no answer.
        metrics: by name; one whose name ends in "_all" is over all items.
        why: why a metric of the table is undefined.
    """
    total, answered = int(table.sum()), int(table[:, :-1].sum())
    found = bootstrap(table, metrics, resamples=resamples, seed=seed)
    return [
        estimate(
            name,
            condition,
            interval,
            n=total if name.endswith("_all") else answered,
            n_total=total,
            reason=why(name, table),
        )
        for name, interval in found.items()
    ]


def of_pair(
    metric: str,
    pair: tuple[str, str],
    joint: Counts,
    difference: Metric,
    *,
    resamples: int,
    seed: int,
) -> Estimate:
    """A metric of one condition minus that of another, over the items both answered.

    Args:
        joint: (R, R + 1, R + 1) gold, first, second, the last of each no answer.
        difference: of the metric, over joint tables.
    """
    both = joint[:, :-1, :-1]
    interval = bootstrap(both, {metric: difference}, resamples=resamples, seed=seed)[metric]
    return estimate(
        metric,
        "-".join(pair),
        interval,
        n=int(both.sum()),
        n_total=int(joint.sum()),
        reason=None if both.sum() else "no item was answered by both",
    )


def estimate(
    metric: str, condition: str, interval: Interval, *, n: int, n_total: int, reason: str | None
) -> Estimate:
    """An interval as an estimate; resamples without a value are told in its reason.

    One item has no interval: its resamples are all that item, and their equal values would
    read as certainty.
    """
    undefined = int(interval.undefined)
    low, high = float(interval.low), float(interval.high)
    if n == 1:
        low = high = math.nan
        reason = reason or "one item has no interval"
    if reason is None and undefined:
        reason = f"undefined in {undefined} of {interval.resamples} resamples, which are left out"
    return Estimate(
        metric=metric,
        condition=condition,
        value=float(interval.value),
        low=low,
        high=high,
        n=n,
        n_total=n_total,
        reason=reason,
    )


def by_item(cell: pd.DataFrame) -> pd.DataFrame:
    """The rows of one condition under their item's id, as text."""
    return cell.assign(item_id=cell["item_id"].astype(str)).set_index("item_id")


def p_values(name: str, compared: pd.DataFrame, n_total: int) -> list[Estimate]:
    """The p of each pair of a comparison table, without interval.

    Args:
        compared: as `core.stats.paired` gives it: first, second, n, p, reason.
    """
    return [
        Estimate(
            metric=name,
            condition=f"{row['first']}-{row['second']}",
            value=float(row["p"]),
            low=math.nan,
            high=math.nan,
            n=int(row["n"]),
            n_total=n_total,
            # In a frame where another pair has a reason, none is NaN.
            reason=None if is_nothing(row["reason"]) else str(row["reason"]),
        )
        for row in compared.to_dict("records")
    ]


def by_condition(predictions: pd.DataFrame, order: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The rows of each condition that was asked, in the order of the task's conditions."""
    found = {str(name): rows for name, rows in predictions.groupby("condition", sort=False)}
    return {condition: found[condition] for condition in order if condition in found}


def pairs_of(conditions: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of `PAIRS` whose both conditions were asked."""
    return [pair for pair in PAIRS if set(pair) <= set(conditions)]


def over_clips(
    measure: Callable[[NDArray[np.float64] | None], NDArray[np.float64]],
    clips: int,
    *,
    resamples: int,
    seed: int,
) -> Interval:
    """Percentile interval of a metric that needs the clips themselves, such as AUROC.

    Args:
        measure: from weights (..., clips), or None for once each, to (...).
    """
    # A table of one cell a clip: a resample of it is how often each clip was drawn.
    ones = np.ones((1, clips), dtype=np.int64)
    metric: dict[str, Metric] = {"measure": lambda counts: measure(counts[..., 0, :])}
    return bootstrap(ones, metric, resamples=resamples, seed=seed)["measure"]
