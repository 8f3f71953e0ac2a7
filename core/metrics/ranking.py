"""How good p(YES) is, whatever the threshold: AUROC, AUPRC and calibration.

These need the clips themselves, not a table, so their bootstrap weighs clips: every
function takes weights with leading axes, one row a resample (`core.stats.bootstrap`
draws them).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.metrics.distribution import BINS, bins_of
from core.metrics.ordinal import share

Float = NDArray[np.float64]


def _steps(gold_yes: ArrayLike, p_yes: ArrayLike, weights: ArrayLike | None) -> tuple[Float, Float]:
    """Weight of positives and negatives at each distinct p(YES), highest first, (..., K)."""
    positive = np.asarray(gold_yes, dtype=bool)
    scored = np.asarray(p_yes, dtype=np.float64)
    known = ~np.isnan(scored)
    weight = np.ones(len(scored)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight, positive, scored = weight[..., known], positive[known], scored[known]
    if not len(scored):
        nothing = np.zeros((*weight.shape[:-1], 1))
        return nothing, nothing
    order = np.argsort(-scored, kind="stable")
    starts = np.flatnonzero(np.diff(scored[order], prepend=np.inf))
    in_order, is_positive = weight[..., order], positive[order]
    yes = np.add.reduceat(in_order * is_positive, starts, axis=-1)
    no = np.add.reduceat(in_order * ~is_positive, starts, axis=-1)
    return yes, no


def auroc(gold_yes: ArrayLike, p_yes: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Probability that a YES clip has a higher p(YES) than a NO clip, ties counted half.

    Args:
        gold_yes: (n,) whether gold is YES.
        p_yes: (n,) probabilities; NaN where the model gave none, and then left out.
        weights: (..., n) how often each clip counts; once each if None.

    Returns:
        (...) in [0, 1]; NaN where one class has no scored clip.

    Source: Hanley and McNeil (1982).
    """
    yes, no = _steps(gold_yes, p_yes, weights)
    above = np.cumsum(yes, -1) - yes / 2
    return share((no * above).sum(-1), yes.sum(-1) * no.sum(-1))


def auprc(gold_yes: ArrayLike, p_yes: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Average precision: mean precision over thresholds, weighted by the recall each adds.

    Args:
        gold_yes, p_yes, weights: as in `auroc`.

    Returns:
        (...) in (0, 1]; the share of YES for a constant p(YES); NaN where no YES clip is scored.

    The step-wise sum, not the trapezoid, which is too high: Davis and Goadrich (2006).
    """
    yes, no = _steps(gold_yes, p_yes, weights)
    found = np.cumsum(yes, -1)
    precise = share(found, found + np.cumsum(no, -1))
    gained = np.where(yes > 0, yes * np.nan_to_num(precise), 0.0).sum(-1)
    return share(gained, yes.sum(-1))


def calibration_error(
    gold_yes: ArrayLike, p_yes: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Mean gap between p(YES) and the share of YES among clips of about that p(YES).

    Ten equal-width bins, [0, 0.1] to (0.9, 1]; each bin's absolute gap is weighted by its
    clips. With fewer than some hundred clips it is biased upwards, as noise within a bin
    cannot cancel.

    Args:
        gold_yes, p_yes, weights: as in `auroc`.

    Returns:
        (...) in [0, 1]; NaN where no clip is scored.

    Source: Guo, Pleiss, Sun and Weinberger (2017), with p(YES) in the place of confidence.
    """
    positive = np.asarray(gold_yes, dtype=np.float64)
    scored = np.asarray(p_yes, dtype=np.float64)
    known = ~np.isnan(scored)
    weight = np.ones(len(scored)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight, positive, scored = weight[..., known], positive[known], scored[known]
    in_bin = np.eye(BINS)[bins_of(scored)]
    gap = np.abs(weight @ ((positive - scored)[:, None] * in_bin)).sum(-1)
    return share(gap, weight.sum(-1))
