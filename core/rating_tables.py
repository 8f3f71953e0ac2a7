"""The long tables of a distress run: every metric with both intervals, every paired test.

The run's own figures are few (`core.tasks.distress.METRICS`); here is the rest, for an
appendix: intervals over turns and over whole sessions, the metrics of the distribution, and
the tests with their effect sizes and adjusted p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics import distribution, ordinal
from core.metrics.tables import counts_by_session
from core.stats import paired
from core.stats.bootstrap import (
    ONE_SESSION,
    Interval,
    bootstrap,
    cluster_bootstrap,
    over_several,
    weight_bootstrap,
)

COUNTED = {**ordinal.METRICS, **ordinal.METRICS_OVER_ALL}
SPREAD = {
    "expected_mae": distribution.expected_absolute_error,
    "ranked_probability_score": distribution.ranked_probability_score,
    "expected_calibration_error": distribution.expected_calibration_error,
}
LABELS = ("1", "2", "3", "4", "5")
NO_DISTRIBUTION = "no answered turn has a distribution"
FEW_SESSIONS = 20
"""Below this the percentile interval over sessions is clearly too short."""


def metrics_table(cells: Mapping[str, pd.DataFrame], *, resamples: int, seed: int) -> pd.DataFrame:
    """Every metric of every condition, with intervals over turns and over sessions.

    Args:
        cells: predictions by condition; their `group_id` is the session.

    Returns:
        Columns condition, metric, value, low, high, session_low, session_high, sessions, n,
        n_total, undefined (resamples without a value, of turns), reason, caution.

    Turns of one session are not independent, so the interval over sessions is the one to trust
    where there are some twenty sessions or more; the study gives the one over turns. `sessions`
    are those with an answer; in one alone there is no interval over sessions. The metrics of the
    distribution are over the answered turns that have one.
    """
    rows: list[dict[str, Any]] = []
    for condition, cell in cells.items():
        rows += _counted(condition, cell, resamples, seed)
        rows += _spread(condition, cell, resamples, seed)
    return pd.DataFrame(rows)


def comparisons_table(
    cells: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    *,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Signed-rank and sign-flip tests of each pair of conditions, one family for Holm.

    Args:
        cells: predictions by condition, the same items in each.

    Returns:
        As `core.stats.paired.compare_errors`, sign flips over turns and over sessions with it.
    """
    return paired.compare_errors(
        paired.align(cells), pairs, sign_flips=True, resamples=resamples, seed=seed
    )


def _counted(condition: str, cell: pd.DataFrame, resamples: int, seed: int) -> list[dict[str, Any]]:
    by_session = counts_by_session(cell["gold"], cell["prediction"], cell["group_id"])
    table = by_session.sum(0)
    over_turns = bootstrap(table, COUNTED, resamples=resamples, seed=seed)
    over_sessions = cluster_bootstrap(by_session, COUNTED, resamples=resamples, seed=seed)
    answered, total = int(table[:, :-1].sum()), int(table.sum())
    heard_from = int((by_session[..., :-1].sum((-1, -2)) > 0).sum())
    return [
        _row(
            condition,
            name,
            over_turns[name],
            over_sessions[name],
            sessions=len(by_session) if name.endswith("_all") else heard_from,
            n=total if name.endswith("_all") else answered,
            n_total=total,
            reason=ordinal.why_undefined(name, table),
        )
        for name in COUNTED
    ]


def _spread(condition: str, cell: pd.DataFrame, resamples: int, seed: int) -> list[dict[str, Any]]:
    shares = answered_shares(cell)
    gold, sessions = cell["gold"].to_numpy(), cell["group_id"].to_numpy(str)
    measures = {name: partial(metric, gold, shares) for name, metric in SPREAD.items()}
    drawn = partial(weight_bootstrap, len(cell), measures, resamples=resamples, seed=seed)
    over_turns, over_sessions = drawn(), drawn(sessions=sessions)
    n = distribution.given(shares)
    known = ~np.isnan(shares).any(1)
    return [
        _row(
            condition,
            name,
            over_turns[name],
            over_sessions[name],
            sessions=len(set(sessions[known])),
            n=n,
            n_total=len(cell),
            reason=None if n else NO_DISTRIBUTION,
        )
        for name in SPREAD
    ]


def answered_shares(cell: pd.DataFrame) -> NDArray[np.float64]:
    """The distributions over levels of the answered turns, (n, 5); NaN for the others.

    A refusal's probabilities are of an answer it did not give.
    """
    shares = cell[[f"p_{label}" for label in LABELS]].to_numpy(np.float64, na_value=np.nan)
    return np.where(cell["prediction"].notna().to_numpy(bool)[:, None], shares, np.nan)


def _row(
    condition: str,
    metric: str,
    over_turns: Interval,
    over_sessions: Interval,
    *,
    sessions: int,
    **facts: Any,
) -> dict[str, Any]:
    over_sessions = over_several(over_sessions, sessions)
    return {
        "condition": condition,
        "metric": metric,
        "value": float(over_turns.value),
        "low": float(over_turns.low),
        "high": float(over_turns.high),
        "session_low": float(over_sessions.low),
        "session_high": float(over_sessions.high),
        "sessions": sessions,
        **facts,
        "undefined": int(over_turns.undefined),
        "caution": _caution(sessions),
    }


def _caution(sessions: int) -> str | None:
    if sessions >= FEW_SESSIONS or not sessions:
        return None
    if sessions == 1:
        return ONE_SESSION
    return f"{sessions} sessions are too few: the interval over sessions is too short"
