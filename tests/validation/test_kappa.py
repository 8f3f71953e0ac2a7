"""Each vectorised statistic against a maintained package, and each package against the formula."""

import warnings
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from validation.agreement import vote_counts
from validation.kappa import (
    cohen_kappa,
    concordance,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)

NAN = np.nan
LEVELS = np.arange(1.0, 6.0)
# Krippendorff's own example (Computing Krippendorff's Alpha-Reliability, 2011, section C),
# which Gwet's handbook uses too: 12 units, 4 raters, missing ratings, one unit rated once.
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T

ratings = arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, NAN]),
)
complete_ratings = arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]),
)


def votes(values):
    return vote_counts(values, LEVELS).astype(float)


def ones(values):
    return np.ones(len(values))


def alpha_by_pairs(values, level):
    """1 - D_o/D_e by walking through every ordered pair of ratings."""
    units = [row[~np.isnan(row)] for row in values]
    units = [unit for unit in units if len(unit) > 1]
    every = np.concatenate(units)
    counts = np.array([(every == value).sum() for value in LEVELS])

    def distance(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = int(min(a, b)) - 1, int(max(a, b)) - 1
        return (counts[low : high + 1].sum() - (counts[low] + counts[high]) / 2) ** 2

    observed = sum(
        distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    ) / len(every)
    expected = sum(distance(a, b) for a, b in permutations(every, 2)) / (
        len(every) * (len(every) - 1)
    )
    return 1 - observed / expected


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_krippendorffs_own_example(level, published):
    ours = krippendorff_alpha(votes(EXAMPLE), ones(EXAMPLE), LEVELS, level)
    assert round(float(ours), 3) == published


def test_generalised_fleiss_of_gwets_example():
    # Gwet's irrCAC prints Fleiss' kappa 0.76117 for these ratings.
    assert round(float(fleiss_kappa(votes(EXAMPLE), ones(EXAMPLE))), 5) == 0.76117


def test_fleiss_of_fleiss_1971_by_hand():
    # Two items, three raters. P = ((3*2) + (2*1)) / (2 * 6) = 2/3; shares 5/6 and 1/6;
    # chance 26/36; kappa = (24/36 - 26/36) / (10/36) = -0.2.
    counts = np.array([[3.0, 0.0], [2.0, 1.0]])
    assert fleiss_kappa(counts, np.ones(2)) == pytest.approx(-0.2)
    assert inter_rater.fleiss_kappa(counts) == pytest.approx(-0.2)


@pytest.mark.parametrize(
    ("weighting", "by_hand"),
    [
        # [[4, 1, 0], [1, 2, 1], [0, 0, 1]]: observed agreement 7/10, chance 0.25+0.12+0.02.
        ("plain", (0.7 - 0.39) / (1 - 0.39)),
        # Disagreement 3 one level apart; by chance 10*(.5*.3+.4*.5+.4*.2+.1*.3) + 2*10*(.5*.2+.1*.5).
        ("linear", 1 - 3 / 7.6),
        ("quadratic", 1 - 3 / 10.6),
    ],
)
def test_cohens_kappa_by_hand(weighting, by_hand):
    table = np.array([[4.0, 1, 0], [1, 2, 1], [0, 0, 1]])
    assert cohen_kappa(table, np.arange(3.0), weighting) == pytest.approx(by_hand)


@given(ratings, st.sampled_from(["nominal", "ordinal", "interval"]))
@settings(max_examples=150, deadline=None)
def test_alpha_equals_the_package_and_the_definition(values, level):
    counts = votes(values)
    paired = counts[counts.sum(1) > 1]
    assume(len(paired) and (paired.sum(0) > 0).sum() > 1)
    ours = float(krippendorff_alpha(counts, ones(counts), LEVELS, level))
    package = krippendorff.alpha(
        value_counts=counts.astype(int), value_domain=LEVELS, level_of_measurement=level
    )
    assert ours == pytest.approx(package, abs=1e-12)
    assert ours == pytest.approx(alpha_by_pairs(values, level), abs=1e-12)


@given(complete_ratings)
@settings(max_examples=100, deadline=None)
def test_fleiss_equals_statsmodels_where_every_rater_rated(values):
    counts = votes(values)
    assume((counts.sum(0) > 0).sum() > 1)
    ours = float(fleiss_kappa(counts, ones(counts)))
    assert ours == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


@given(complete_ratings, st.sampled_from(["plain", "linear", "quadratic"]))
@settings(max_examples=100, deadline=None)
def test_cohen_equals_scikit_learn(values, weighting):
    first, second = values[:, 0], values[:, 1]
    assume(len(set(first) | set(second)) > 1)
    table = np.zeros((5, 5))
    np.add.at(table, (first.astype(int) - 1, second.astype(int) - 1), 1)
    weights = None if weighting == "plain" else weighting
    package = cohen_kappa_score(first, second, labels=LEVELS, weights=weights)
    assert float(cohen_kappa(table, LEVELS, weighting)) == pytest.approx(package, abs=1e-12)


@given(complete_ratings)
@settings(max_examples=100, deadline=None)
def test_concordance_is_the_quadratic_kappa_of_scikit_learn(values):
    first, second = values[:, 0], values[:, 1]
    assume(len(set(first) | set(second)) > 1)
    package = cohen_kappa_score(first, second, labels=LEVELS, weights="quadratic")
    assert float(concordance(values[:, :2], ones(values))) == pytest.approx(package, abs=1e-12)


def test_one_number_only_is_undefined_in_every_resample():
    pairs = np.array([[1.1, 1.1], [3.3, 2.9]])
    draws = concordance(pairs, np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 1.0], [0.0, 0.0]]))
    assert np.isnan(draws).tolist() == [True, False, False, True]


@given(ratings)
@settings(max_examples=50, deadline=None)
def test_percent_agreement_is_the_share_of_equal_pairs(values):
    pairs = [a == b for row in values for a, b in permutations(row[~np.isnan(row)], 2)]
    ours = float(percent_agreement(votes(values), ones(values)))
    assert np.isnan(ours) if not pairs else ours == pytest.approx(np.mean(pairs))


@given(ratings, st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_weights_are_the_same_as_repeated_items(values, seed):
    counts = votes(values)
    times = np.random.default_rng(seed).integers(0, 3, len(counts))
    repeated = np.repeat(counts, times, axis=0)
    weights = np.stack([times, np.ones(len(times))]).astype(float)
    for statistic in (
        percent_agreement,
        fleiss_kappa,
        lambda v, w: krippendorff_alpha(v, w, LEVELS, "ordinal"),
    ):
        many = statistic(counts, weights)
        one = statistic(repeated, np.ones(len(repeated)))
        np.testing.assert_allclose(many[0], one, atol=1e-12)


def test_one_level_only_is_undefined_and_silent():
    constant = np.array([[0.0, 3.0], [0.0, 2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(fleiss_kappa(constant, np.ones(2)))
        assert np.isnan(krippendorff_alpha(constant, np.ones(2), np.arange(2.0), "nominal"))
        assert np.isnan(cohen_kappa(np.array([[4.0, 0], [0, 0]]), np.arange(2.0), "plain"))
        assert np.isnan(cohen_kappa(np.zeros((2, 2)), np.arange(2.0), "linear"))
        assert percent_agreement(constant, np.ones(2)) == 1
