"""Bootstrap intervals of metrics that are functions of a table of counts.

Drawing n items with replacement changes nothing but how often each cell of the table is
drawn, so a resample is one multinomial draw over the cells: exact, and as fast for a
million items as for a hundred. Resampling sessions draws weights for per-session tables.
Random draws depend on the seed and the resample's number alone, never on how the work is
cut: resample 17 of a table is the same alone, beside thirty others, or in a longer run.
An item without an answer is an item like any other here and is drawn with its column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from core.stats.resampling import BLOCK as BLOCK
from core.stats.resampling import resampled as resampled
from core.stats.resampling import resamples_in_pieces, sessions_in_pieces
from core.stats.resampling import session_weights as session_weights

Counts = NDArray[Any]
Float = NDArray[np.float64]
Metric = Callable[[Counts], Float]


@dataclass(frozen=True)
class Interval:
    """Interval ends of one metric for every table of a batch.

    Attributes:
        value: (...) the metric of the tables as given; NaN where undefined.
        low, high: (...) interval ends; NaN where no resample was defined, or BCa cannot be
            computed.
        undefined: (...) resamples in which the metric was undefined; they are left out of
            the ends, and many of them mean that the interval is one given definedness.
        resamples: how many were drawn.
        level: nominal coverage.
        method: "percentile" or "bca", over items or sessions.
    """

    value: Float
    low: Float
    high: Float
    undefined: NDArray[np.int64]
    resamples: int
    level: float
    method: str


def bootstrap(
    counts: Counts,
    metrics: Mapping[str, Metric],
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    method: str = "percentile",
) -> dict[str, Interval]:
    """Intervals over items, of every metric of every table, from the same resamples.

    Args:
        counts: (..., R, C) tables, or (..., R, C, C) joint tables if the metrics take those.
            The metrics' value of one table must be a scalar; leading axes are a batch.
        metrics: name to function over (..., R, C).
        method: "percentile", as the study reports, or "bca" (bias-corrected, accelerated).

    Returns:
        An `Interval` a metric, each with the leading axes of `counts`.

    Source: Efron and Tibshirani (1993), An introduction to the bootstrap, chapters 13 and 14.
    """
    _check(method, resamples, level)
    value = {name: np.asarray(metric(counts)) for name, metric in metrics.items()}
    lead = next(iter(value.values())).shape if value else ()
    tables = np.asarray(counts).reshape(-1, *np.shape(counts)[len(lead) :])
    redrawn = {name: np.empty((len(tables), resamples)) for name in metrics}
    for start, stop, drawn in resamples_in_pieces(tables, seed=seed, resamples=resamples):
        block = drawn.astype(np.float64)
        for name, metric in metrics.items():
            redrawn[name][:, start:stop] = metric(block)
    return {
        name: _interval(
            value[name],
            redrawn[name].reshape(*lead, resamples),
            level,
            f"{method} over items",
            _item_jackknife(tables, metric, lead) if method == "bca" else None,
        )
        for name, metric in metrics.items()
    }


def cluster_bootstrap(
    counts: Counts,
    metrics: Mapping[str, Metric],
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    method: str = "percentile",
) -> dict[str, Interval]:
    """Intervals over sessions: turns of one session stay together, as they are not independent.

    Args:
        counts: (..., S, R, C) one table for each of S sessions; (..., S, R, C, C) for metrics
            of joint tables. All leading cells are resampled by the same sessions, so differences
            of the metrics between cells are paired.
        metrics: name to function over (..., R, C).

    Returns:
        An `Interval` a metric, each with the axes before S.

    With few sessions the percentile interval is too short; below about 20, say so.

    Source: Field and Welsh (2007), Bootstrapping clustered data.
    """
    _check(method, resamples, level)
    counts = np.asarray(counts, dtype=np.float64)
    depth = _session_axis(counts, metrics)
    sessions = counts.shape[depth]
    lead, inner = counts.shape[:depth], counts.shape[depth + 1 :]
    tables = np.moveaxis(counts, depth, 0).reshape(sessions, -1)
    totals = counts.sum(depth)
    redrawn = {name: np.empty((*lead, resamples)) for name in metrics}
    for start in range(0, resamples, BLOCK):
        stop = min(start + BLOCK, resamples)
        weights = session_weights(sessions, seed=seed, start=start, stop=stop)
        block = (weights.astype(np.float64) @ tables).reshape(stop - start, *lead, *inner)
        for name, metric in metrics.items():
            redrawn[name][..., start:stop] = np.moveaxis(metric(block), 0, -1)
    return {
        name: _interval(
            np.asarray(metric(totals)),
            redrawn[name],
            level,
            f"{method} over sessions",
            _session_jackknife(counts, metric, depth) if method == "bca" else None,
        )
        for name, metric in metrics.items()
    }


def weight_bootstrap(
    items: int,
    statistics: Mapping[str, Callable[[Counts], Float]],
    *,
    sessions: NDArray[Any] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Interval]:
    """Percentile intervals of statistics that need the items themselves, such as AUROC.

    Args:
        items: how many there are.
        statistics: name to function of (..., items) weights, how often each item was drawn.
        sessions: (items,) the session of each item, to draw whole sessions; None for items.

    Returns:
        An `Interval` a statistic, of one value each.
    """
    _check("percentile", resamples, level)
    each_once = np.ones((1, items), dtype=np.int64)
    names, place = np.unique(
        np.arange(items) if sessions is None else np.asarray(sessions, dtype=str),
        return_inverse=True,
    )
    redrawn = {name: np.empty(resamples) for name in statistics}
    if sessions is None:
        pieces = resamples_in_pieces(each_once, seed=seed, resamples=resamples)
    else:
        pieces = sessions_in_pieces(len(names), items, seed=seed, resamples=resamples)
    for start, stop, drawn in pieces:
        # Once, and not by every statistic for itself.
        weights = (drawn[0] if sessions is None else drawn[:, place]).astype(np.float64)
        for name, statistic in statistics.items():
            redrawn[name][start:stop] = statistic(weights)
    drawn_by = "percentile over items" if sessions is None else "percentile over sessions"
    return {
        name: _interval(np.asarray(statistic(each_once[0])), redrawn[name], level, drawn_by, None)
        for name, statistic in statistics.items()
    }


def over_several(found: Interval, sessions: ArrayLike) -> Interval:
    """The interval where the answers lie in two sessions or more, and none elsewhere.

    Args:
        found: over sessions.
        sessions: (...) sessions with an answer; resamples of a single one are all that
            session, and an interval of no width would read as certainty.
    """
    several = np.asarray(sessions) > 1
    return replace(
        found,
        low=np.where(several, found.low, np.nan),
        high=np.where(several, found.high, np.nan),
    )


ONE_SESSION = "its answers lie in one session: no interval over sessions"


def difference(metric: Metric) -> Metric:
    """The metric of the first prediction minus that of the second, over joint tables.

    Args:
        metric: function over (..., R, C).

    Returns:
        Function over (..., R, C, C), axes gold, first, second; for a paired bootstrap, since
        drawing from the joint table keeps both answers to an item together. Without the columns
        of no answer the difference is over the items both answered; with them each metric
        rests on the items its own side answered.
    """

    def first_minus_second(joint: Counts) -> Float:
        return np.asarray(metric(joint.sum(-1)) - metric(joint.sum(-2)))

    return first_minus_second


def _check(method: str, resamples: int, level: float) -> None:
    if method not in ("percentile", "bca"):
        raise ValueError(f'method: expected "percentile" or "bca", found {method!r}.')
    if resamples < 1:
        raise ValueError(f"resamples: expected 1 or more, found {resamples}.")
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, found {level}.")


def _session_axis(counts: Float, metrics: Mapping[str, Metric]) -> int:
    # the axes the metric leaves end in the sessions' one
    metric = next(iter(metrics.values()))
    return int(np.ndim(metric(counts))) - 1


def _interval(
    value: Float,
    redrawn: Float,
    level: float,
    method: str,
    jackknife: tuple[Float, Float] | None,
) -> Interval:
    undefined = np.isnan(redrawn).sum(-1)
    tail = (1 - level) / 2
    ends: tuple[Float, Float]
    if jackknife is None:
        ends = (np.full(value.shape, tail), np.full(value.shape, 1 - tail))
    else:
        ends = _bca_levels(value, redrawn, tail, *jackknife)
    # NaN sorts last, so the defined resamples are the first of each row
    ordered = np.sort(redrawn, axis=-1)
    return Interval(
        value=value,
        low=_quantile(ordered, undefined, ends[0]),
        high=_quantile(ordered, undefined, ends[1]),
        undefined=undefined,
        resamples=redrawn.shape[-1],
        level=level,
        method=method,
    )


def _quantile(ordered: Float, undefined: NDArray[np.int64], level: Float) -> Float:
    # linear between order statistics, as numpy's default
    defined = ordered.shape[-1] - undefined
    place = np.clip(np.nan_to_num(level), 0, 1) * np.maximum(defined - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    low = np.take_along_axis(ordered, below[..., None], -1)[..., 0]
    high = np.take_along_axis(ordered, above[..., None], -1)[..., 0]
    found = low + (high - low) * (place - below)
    return np.where((defined > 0) & ~np.isnan(level), found, np.nan)


def _bca_levels(
    value: Float, redrawn: Float, tail: float, left_out: Float, weights: Float
) -> tuple[Float, Float]:
    """Percentile levels after correcting for bias and skewness; NaN where they do not exist.

    Args:
        left_out: (..., J) the metric with one item (or session) of each kind left out.
        weights: (..., J) how many items are of that kind.

    They do not exist where all resamples lie on one side of the value. A leave-one-out value
    that is undefined is no part of the skewness.
    """
    defined = np.maximum((~np.isnan(redrawn)).sum(-1), 1)
    at = value[..., None]
    # half of the ties: the metrics are discrete, and all-equal resamples mean no bias
    below = ((redrawn < at).sum(-1) + (redrawn == at).sum(-1) / 2) / defined
    bias = ndtri(below)
    weights = np.where(np.isnan(left_out), 0.0, weights)
    present = weights > 0
    kept = np.where(present, left_out, 0.0)
    mean = (weights * kept).sum(-1) / np.maximum(weights.sum(-1), 1)
    apart = np.where(present, mean[..., None] - kept, 0.0)
    square = (weights * apart**2).sum(-1)
    cube = (weights * apart**3).sum(-1)
    skew = np.divide(cube, 6 * square**1.5, out=np.zeros_like(square), where=square > 1e-30)
    usable = np.isfinite(bias) & ~np.isnan(value)

    def adjusted(level: float) -> Float:
        with np.errstate(invalid="ignore", divide="ignore"):
            shifted = bias + ndtri(level)
            return np.where(usable, ndtr(bias + shifted / (1 - skew * shifted)), np.nan)

    return adjusted(tail), adjusted(1 - tail)


def _item_jackknife(tables: Counts, metric: Metric, lead: tuple[int, ...]) -> tuple[Float, Float]:
    # items of one cell are alike, so there are as many leave-one-out tables as filled cells
    flat = tables.reshape(len(tables), -1).astype(np.float64)
    cells = flat.shape[1]
    fewer = np.maximum(flat[:, None, :] - np.eye(cells), 0)
    left_out = metric(fewer.reshape(len(tables), cells, *tables.shape[1:]))
    return left_out.reshape(*lead, cells), flat.reshape(*lead, cells)


def _session_jackknife(counts: Float, metric: Metric, axis: int) -> tuple[Float, Float]:
    left_out = np.asarray(metric(counts.sum(axis, keepdims=True) - counts))
    return left_out, np.ones_like(left_out)
