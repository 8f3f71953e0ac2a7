"""Chance-corrected agreement as functions of counts, for one table or a thousand resamples.

Items with the same votes are interchangeable, so an item resample is a vector of
weights over the different vote histograms: every function takes those weights
with leading dimensions and gives one value for each. NaN where undefined.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from validation.scale import Kind

Float = NDArray[np.float64]
Weighting = Literal["plain", "linear", "quadratic"]


def percent_agreement(votes: Float, weights: Float) -> Float:
    """Share of equal pairs among all pairs of ratings of one item.

    Args:
        votes: (P, L) ratings of each level, for each different histogram.
        weights: (..., P) how often each occurs.

    Returns:
        (...) in [0, 1]; NaN where no item has two ratings. An item with many raters
        has many pairs and counts for more.
    """
    ratings = votes.sum(-1)
    return equal_share(
        np.stack([(votes * (votes - 1)).sum(-1), ratings * (ratings - 1)], -1), weights
    )


def equal_share(pairs: Float, weights: Float) -> Float:
    """The same from (P, 2) equal pairs and all pairs of ratings of each item."""
    equal, every = pairs.T
    return _ratio(weights @ equal, weights @ every)


def fleiss_kappa(votes: Float, weights: Float) -> Float:
    """Fleiss' kappa, in the form that also takes unequal numbers of raters.

    Observed agreement is the mean over items with two or more ratings; chance
    agreement comes from the mean share of each level over all items given. With
    equal numbers of raters this is Fleiss (1971); with unequal ones it is the
    generalisation of Gwet (Handbook of Inter-Rater Reliability, 2014, chapter 2) and must be
    named so.

    Args:
        votes: (P, L) ratings of each level, for each different histogram.
        weights: (..., P) how often each occurs.

    Returns:
        (...) at most 1; NaN where no item has two ratings or all ratings are the same.
    """
    ratings = votes.sum(-1)
    rated = weights * (ratings > 0)
    paired = weights * (ratings > 1)
    equal = (votes * (votes - 1)).sum(-1) / np.maximum(ratings * (ratings - 1), 1)
    observed = _ratio(paired @ equal, paired.sum(-1))
    shares = votes / np.maximum(ratings, 1)[:, None]
    level_share = _ratio(rated @ shares, rated.sum(-1)[..., None])
    chance = (level_share**2).sum(-1)
    return _ratio(observed - chance, 1 - chance)


def krippendorff_alpha(votes: Float, weights: Float, numbers: Float, level: Kind) -> Float:
    """Krippendorff's alpha with missing ratings.

    Args:
        votes: (P, L) ratings of each level, for each different histogram; items with
            fewer than two ratings do not count.
        weights: (..., P) how often each occurs.
        numbers: (L,) the levels' values, ascending; used by the interval level only.
        level: the distance of two ratings: unequal (nominal), by the ratings between them
            (ordinal), by their squared difference (interval).

    Returns:
        (...) at most 1; NaN where no item has two ratings or all ratings are the same.

    Source: Krippendorff, Content Analysis (2004), section 11.3.
    """
    if level == "interval":
        return interval_alpha(
            np.stack([votes.sum(-1), votes @ numbers, votes @ numbers**2], -1), weights
        )
    ratings = votes.sum(-1)
    size = votes.shape[1]
    ordered_pairs = votes[:, :, None] * votes[:, None, :] - votes[:, :, None] * np.eye(size)
    share = ordered_pairs / np.maximum(ratings - 1, 1)[:, None, None]
    coincidences = (weights @ share.reshape(len(votes), size * size)).reshape(
        *weights.shape[:-1], size, size
    )
    margin = coincidences.sum(-1)
    distance = 1 - np.eye(size) if level == "nominal" else _ordinal_distances(margin)
    total = margin.sum(-1)
    observed = (coincidences * distance).sum((-2, -1))
    expected = (margin[..., :, None] * margin[..., None, :] * distance).sum((-2, -1))
    return 1 - _ratio((total - 1) * observed, expected)


def _ordinal_distances(margin: Float) -> Float:
    # Middle ranks differ by the ratings between two levels and half of either end: the
    # ordinal distance, without a sum for each pair of levels.
    middle = np.cumsum(margin, -1) - margin / 2
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2, dtype=float)


def interval_alpha(moments: Float, weights: Float) -> Float:
    """Krippendorff's interval alpha from each item's sums, for ratings that are any number.

    A table of level by level would not fit in memory where every rating is a level of its own.

    Args:
        moments: (P, 3) number of ratings of the item, their sum, the sum of their squares,
            taken from an origin near the ratings (the lowest, say).
        weights: (..., P) how often each occurs.

    Returns:
        (...) as `krippendorff_alpha`.
    """
    ratings, sums, squares = moments.T
    paired = weights * (ratings > 1)
    within = 2 * (ratings * squares - sums**2) / np.maximum(ratings - 1, 1)
    total, square = paired @ ratings, paired @ squares
    expected = 2 * (total * square - (paired @ sums) ** 2)
    return 1 - _ratio((total - 1) * (paired @ within), _no_round_off(expected, total * square))


def concordance(pairs: Float, weights: Float) -> Float:
    """Quadratic-weighted kappa of free numbers: Lin's concordance correlation (1989).

    Args:
        pairs: (P, 2) the two raters' values.
        weights: (..., P) how often each pair occurs.

    Returns:
        (...) at most 1; NaN without a pair or where both always give the same one number.
    """
    total = weights.sum(-1)
    first, second = (pairs - pairs.min(initial=np.inf)).T
    square = weights @ (first**2 + second**2)
    gaps = total * (weights @ (first - second) ** 2)
    expected = total * square - 2 * (weights @ first) * (weights @ second)
    return 1 - _ratio(gaps, _no_round_off(expected, total * square))


def _no_round_off(difference: Float, parts: Float) -> Float:
    # Equal ratings differ by nothing; what is left of two large parts is not a spread.
    return np.where(difference > 1e-12 * parts, difference, 0.0)


def cohen_kappa(tables: Float, numbers: Float, weighting: Weighting) -> Float:
    """Cohen's kappa of two raters.

    Args:
        tables: (..., L, L) counts, row the first rater's level, column the second's.
        numbers: (L,) the levels' values; linear and quadratic weights are their distances,
            which for levels one apart are the usual weights.
        weighting: plain (Cohen 1960), linear or quadratic (Cohen 1968).

    Returns:
        (...) at most 1; NaN where the table is empty or chance alone agrees fully, as when
        both raters always give the same one level.
    """
    gaps = np.abs(np.subtract.outer(numbers, numbers))
    penalty = {"plain": (gaps > 0).astype(float), "linear": gaps, "quadratic": gaps**2}[weighting]
    rows, columns = tables.sum(-1), tables.sum(-2)
    total = tables.sum((-2, -1))
    expected = (rows[..., :, None] * columns[..., None, :] * penalty).sum((-2, -1))
    return 1 - _ratio(total * (tables * penalty).sum((-2, -1)), expected)


def _ratio(part: Float, whole: Float) -> Float:
    part, whole = np.broadcast_arrays(np.asarray(part, dtype=float), np.asarray(whole, dtype=float))
    out: Float = np.full(part.shape, np.nan)
    np.divide(part, whole, out=out, where=whole != 0)
    return out
