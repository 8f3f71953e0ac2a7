"""Every figure of study 2 for every model and condition, and the tests between conditions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from core.detection.scores import RANKING
from core.metrics import binary
from core.scoring import PAIRS
from core.stats import paired
from core.stats.bootstrap import bootstrap, difference, weight_bootstrap
from core.stats.holm import holm
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells, name

COUNTED = {**binary.METRICS, "accuracy_all": binary.METRICS_OVER_ALL["accuracy_all"]}


def counts_of(rows: pd.DataFrame) -> binary.Counts:
    """(2, 3) gold by predicted and no answer."""
    return binary.counts(rows["gold"], rows["prediction"])


def metric_frame(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Every metric of every cell: columns model, condition, metric, value, low, high, n, n_total,
    reason. Intervals are over clips, with the draws an `evaluate` run makes for itself."""
    tables = np.stack([counts_of(rows) for rows in cells.frames.values()])
    found = bootstrap(tables, COUNTED, **asked.drawn)
    rows: list[dict[str, Any]] = []
    for at, key in enumerate(cells.keys):
        answered, total = int(tables[at, :, :2].sum()), int(tables[at].sum())
        for metric, interval in found.items():
            n = total if metric.endswith("_all") else answered
            rows.append(
                _row(
                    key,
                    metric,
                    float(interval.value[at]),
                    float(interval.low[at]) if n > 1 else np.nan,
                    float(interval.high[at]) if n > 1 else np.nan,
                    n=n,
                    n_total=total,
                    reason=binary.why_undefined(metric, tables[at]),
                )
            )
        rows += _ranked(key, cells.frames[key], asked)
    return pd.DataFrame(rows)


def _row(
    key: tuple[str, str], metric: str, value: float, low: float, high: float, **facts: Any
) -> dict[str, Any]:
    said = {"model": key[0], "condition": key[1], "metric": metric, "value": value}
    return {**said, "low": low, "high": high, **facts}


def _ranked(key: tuple[str, str], rows: pd.DataFrame, asked: Asked) -> list[dict[str, Any]]:
    scored = rows[(rows["status"] == "ok") & rows["expected"].notna()]
    is_yes = np.asarray(scored["gold"] == "YES", dtype=bool)
    p_yes = scored["expected"].to_numpy(dtype=np.float64)
    one_class = not len(scored) or is_yes.all() or not is_yes.any()
    usable = {
        metric: partial(measure, is_yes, p_yes)
        for metric, measure in RANKING.items()
        if len(scored) and not (one_class and metric != "calibration_error")
    }
    found = weight_bootstrap(len(scored), usable, **asked.drawn) if usable else {}
    facts = {"n": len(scored), "n_total": len(rows)}
    why = "no answered clip of each class has a p(YES)"
    return [
        _row(
            key,
            metric,
            float(found[metric].value) if metric in found else np.nan,
            float(found[metric].low) if metric in found and len(scored) > 1 else np.nan,
            float(found[metric].high) if metric in found and len(scored) > 1 else np.nan,
            **facts,
            reason=None if metric in found else why,
        )
        for metric in RANKING
    ]


def pair_frame(cells: Cells, asked: Asked) -> pd.DataFrame:
    """Two conditions of one model, McNemar's exact test; all models of a pair are a family.

    Returns:
        Columns model, pair, n, n_total, difference (accuracy of the first minus the second), low,
        high, first_only, second_only, p, p_holm, mid_p, reason.
    """
    tables = []
    for first, second in PAIRS:
        models = cells.in_both(first, second)
        if not models:
            continue
        named = [(name((model, first)), name((model, second))) for model in models]
        joint = np.stack(
            [paired.joint_table(cells.aligned, *pair, count=binary.joint_counts) for pair in named]
        )
        apart = {"accuracy": difference(binary.accuracy)}
        over_clips = bootstrap(joint[..., :-1, :-1], apart, **asked.drawn)["accuracy"]
        tested = paired.compare_answers(cells.aligned, named, sign_flips=False)
        alone = tested["n"].to_numpy() <= 1
        tables.append(
            pd.DataFrame(
                {
                    "model": models,
                    "pair": f"{first}-{second}",
                    "n": tested["n"],
                    "n_total": len(cells.aligned.item_ids),
                    "difference": over_clips.value,
                    "low": np.where(alone, np.nan, over_clips.low),
                    "high": np.where(alone, np.nan, over_clips.high),
                    "first_only": tested["first_only"],
                    "second_only": tested["second_only"],
                    "p": tested["p"],
                    "p_holm": holm(tested["p"]),
                    "mid_p": tested["mid_p"],
                    "reason": tested["reason"],
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"model": []})
