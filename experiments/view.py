"""A leaderboard ready in the MLflow UI: columns, order and charts of an experiment.

The UI's run list opens without a single metric, and with a chart for each of
them. It can be given a "shared view", an experiment tag it reads when its address
ends in `?viewStateShareKey=leaderboard`. MLflow does not document the format, so
nothing rests on it: a UI that does not know it shows its own default.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Sequence
from typing import Any

KEY = "leaderboard"
TAG = f"mlflow.sharedViewState.{KEY}"
# Or the menu beside is the one for traces of agents, which has no list of runs.
LIST_OF_RUNS = "workflowType=machine_learning"
ADDRESS = f"viewStateShareKey={KEY}&{LIST_OF_RUNS}"
# Compared across datasets, smaller is better for these; the best model comes first.
SMALLER_IS_BETTER = frozenset({"mae", "rmse", "brier", "ece"})
MOST_COLUMN_METRICS = 3
COLUMN_WIDTH = 105
# MLflow refuses longer experiment tags.
LONGEST_TAG = 5_000


def leaderboard(metrics: Sequence[str], headline: Sequence[str]) -> str:
    """The tag's value.

    Args:
        metrics: all MLflow metric names of a run, `metric/condition`, in the order of the charts.
        headline: metrics without condition, most important first: columns of the list and
            charts that are open; the others are a click away.
    """
    first = list(headline)[:MOST_COLUMN_METRICS]
    shown = [
        name for metric in (*first, "coverage") for name in metrics if _section(name) == metric
    ]
    sections = sorted({_section(name) for name in metrics}, key=lambda s: _rank(s, first))
    columns = [
        *(f"metrics.`{name}`" for name in shown),
        *(f"tags.`{tag}`" for tag in ("family", "verified")),
    ]
    state: dict[str, Any] = {
        "selectedColumns": columns,
        # Without an order of ours the columns come by name, `coverage` before `mae`.
        "columnOrder": columns,
        "columnWidths": dict.fromkeys(columns, COLUMN_WIDTH),
        "isAccordionReordered": True,
        "compareRunSections": [_section_state(name, name in first) for name in sections],
        "compareRunCharts": [_chart(name) for name in metrics],
    }
    if shown:
        state["orderByKey"] = f"metrics.`{shown[0]}`"
        state["orderByAsc"] = _section(shown[0]) in SMALLER_IS_BETTER
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()
    now = int(time.time() * 1000)
    view = {"name": "Leaderboard", "createdAt": now, "updatedAt": now, "state": f"deflate;{packed}"}
    return json.dumps(view)


def _section(metric: str) -> str:
    return metric.rpartition("/")[0]


def _rank(section: str, first: Sequence[str]) -> tuple[int, str]:
    return (first.index(section) if section in first else len(first), section)


def _section_state(name: str, is_open: bool) -> dict[str, Any]:
    return {
        "uuid": f"section-{name}",
        "name": name,
        "display": is_open,
        "isReordered": True,
        "deleted": False,
        "isGenerated": True,
    }


def _chart(metric: str) -> dict[str, Any]:
    section, _, condition = metric.rpartition("/")
    return {
        "uuid": f"chart-{metric}",
        "type": "BAR",
        "runsCountToCompare": 10,
        "metricSectionId": f"section-{section}",
        "deleted": False,
        "isGenerated": True,
        "metricKey": metric,
        "displayName": condition,
    }
