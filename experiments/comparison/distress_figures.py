"""Every figure of study 1 for every model and condition: metrics with both intervals, paired tests.

All cells go through one bootstrap, with the draws an `evaluate` run makes for itself, so that
figures and intervals are those in MLflow to the last digit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from core.metrics import distribution, ordinal
from core.metrics.tables import counts_by_session
from core.rating_tables import COUNTED, NO_DISTRIBUTION, SPREAD, answered_shares
from core.scoring import PAIRS
from core.stats import paired
from core.stats.bootstrap import (
    ONE_SESSION,
    Interval,
    bootstrap,
    cluster_bootstrap,
    difference,
    over_several,
    weight_bootstrap,
)
from core.stats.holm import holm
from core.stats.item_means import mean_ends
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells, name


def metric_frame(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Every metric of every cell.

    Returns:
        Columns model, condition, metric, value, low, high (over turns), session_low,
        session_high, n, n_total, reason.
    """
    by_session = np.stack(
        [
            counts_by_session(rows["gold"], rows["prediction"], rows["group_id"])
            for rows in cells.frames.values()
        ]
    )
    tables = by_session.sum(1)
    over_turns = bootstrap(tables, COUNTED, **asked.drawn)
    filled = by_session.sum(-2) > 0
    answering, every = filled[..., :-1].any(-1).sum(1), filled.any(-1).sum(1)
    over_sessions = {
        metric: over_several(found, every if metric.endswith("_all") else answering)
        for metric, found in cluster_bootstrap(by_session, COUNTED, **asked.drawn).items()
    }
    rows: list[dict[str, Any]] = []
    for at, (model, condition) in enumerate(cells.keys):
        answered, total = int(tables[at, :, :-1].sum()), int(tables[at].sum())
        for metric in COUNTED:
            sessions = every if metric.endswith("_all") else answering
            rows.append(
                {
                    "model": model,
                    "condition": condition,
                    "metric": metric,
                    **_interval(over_turns[metric], at),
                    **_interval(over_sessions[metric], at, "session_"),
                    "n": total if metric.endswith("_all") else answered,
                    "n_total": total,
                    "reason": ordinal.why_undefined(metric, tables[at])
                    or (ONE_SESSION if sessions[at] == 1 else None),
                }
            )
    return pd.DataFrame([*rows, *_spread(cells, asked)])


def _interval(found: Interval, at: int, prefix: str = "") -> dict[str, float]:
    said = {f"{prefix}low": float(found.low[at]), f"{prefix}high": float(found.high[at])}
    return said if prefix else {"value": float(found.value[at]), **said}


def _spread(cells: Cells, asked: Asked) -> list[dict[str, Any]]:
    """Metrics of the distribution over levels, of the cells that have one."""
    gold = cells.aligned.gold
    shares = {key: answered_shares(rows) for key, rows in cells.frames.items()}
    given = {key: distribution.given(table) for key, table in shares.items()}
    measures = {
        (*key, metric): partial(measure, gold, table)
        for key, table in shares.items()
        if given[key]
        for metric, measure in SPREAD.items()
    }
    total = len(gold)
    found = weight_bootstrap(
        total, {str(key): measure for key, measure in measures.items()}, **asked.drawn
    )
    rows = []
    for key in cells.keys:
        for metric in SPREAD:
            known = found.get(str((*key, metric)))
            rows.append(
                {
                    "model": key[0],
                    "condition": key[1],
                    "metric": metric,
                    "value": float(known.value) if known else np.nan,
                    "low": float(known.low) if known else np.nan,
                    "high": float(known.high) if known else np.nan,
                    "session_low": np.nan,
                    "session_high": np.nan,
                    "n": given[key],
                    "n_total": total,
                    "reason": None if known else NO_DISTRIBUTION,
                }
            )
    return rows


def pair_frame(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Two conditions of one model against each other, every model in each pair a family.

    Returns:
        Columns model, pair, n, n_total, difference (MAE of the first minus the second), low, high,
        session_low, session_high, p_paper (zeros dropped and exact where scipy's default is, so
        probably the study's), method_paper (of it), p (Pratt's zeros), p_holm,
        r, r_low, r_high, reason.
    """
    tables = []
    for first, second in PAIRS:
        if models := cells.in_both(first, second):
            tables.append(_of_pair(cells, first, second, models, asked))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=PAIR_COLUMNS)


PAIR_COLUMNS = [
    *("model", "pair", "n", "n_total", "difference", "low", "high", "session_low"),
    *("session_high", "p_paper", "method_paper", "p", "p_holm", "r", "r_low", "r_high", "reason"),
]


def _of_pair(
    cells: Cells, first: str, second: str, models: list[str], asked: Asked
) -> pd.DataFrame:
    named = [(name((model, first)), name((model, second))) for model in models]
    joint = np.stack([paired.joint_table(cells.aligned, *pair) for pair in named])
    apart = {"mae": difference(ordinal.mean_absolute_error)}
    over_turns = bootstrap(joint[..., :-1, :-1], apart, **asked.drawn)["mae"]
    one, two = (
        np.array([cells.keys.index((model, condition)) for model in models])
        for condition in (first, second)
    )
    low, high = np.full(len(models), np.nan), np.full(len(models), np.nan)
    units = np.zeros(len(models), dtype=np.int64)
    if cells.sessions is not None:
        each = cells.errors[one] - cells.errors[two]
        low, high, units = mean_ends(each, sessions=cells.sessions, **asked.drawn)
    ours = paired.compare_errors(cells.aligned, named, **asked.drawn)
    papers = paired.compare_errors(
        cells.aligned, named, zeros="wilcox", method="scipy", resamples=0
    )
    alone = ours["n"].to_numpy() <= 1
    return pd.DataFrame(
        {
            "model": models,
            "pair": f"{first}-{second}",
            "n": ours["n"],
            "n_total": len(cells.aligned.item_ids),
            "difference": over_turns.value,
            "low": np.where(alone, np.nan, over_turns.low),
            "high": np.where(alone, np.nan, over_turns.high),
            "session_low": low,
            "session_high": high,
            "p_paper": papers["p"],
            "method_paper": papers["method"],
            "p": ours["p"],
            "p_holm": holm(ours["p"]),
            "r": ours["r"],
            "r_low": ours["r_low"],
            "r_high": ours["r_high"],
            "reason": [
                said or (ONE_SESSION if unit == 1 else None)
                for said, unit in zip(ours["reason"], units, strict=True)
            ],
        }
    )
