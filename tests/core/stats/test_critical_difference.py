import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from core.stats.critical_difference import critical_difference

# Demsar (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on fourteen data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_the_example_of_demsar_comes_out():
    found = critical_difference(-DEMSAR)

    # Printed there: mean ranks 3.143, 2.000, 2.893, 1.964.
    assert found.mean_ranks == pytest.approx([3.143, 2.0, 2.893, 1.964], abs=0.0006)


def test_the_critical_difference_is_demsars_where_nothing_ties():
    # Demsar, Table 5: q of four models at 0.05 is 2.569.
    found = critical_difference(np.random.default_rng(0).normal(size=(14, 4)))

    assert found.difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=5e-4)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_the_test_is_scipys_with_ties_and_without(levels):
    losses = np.random.default_rng(levels).integers(0, levels, (25, 4))

    found = critical_difference(losses)

    other = friedmanchisquare(*losses.T)
    assert (found.statistic, found.p) == pytest.approx((other.statistic, other.pvalue))


def test_groups_are_the_longest_runs_that_do_not_differ():
    blocks = np.tile([0.0, 1, 2, 3, 4, 5], (12, 1))

    found = critical_difference(blocks)

    # Ranks 1 to 6, difference 2.850 * sqrt(6 * 7 / 72) = 2.18: three in a row do not differ.
    assert found.difference == pytest.approx(2.18, abs=0.01)
    assert found.groups == ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5))


def test_equal_models_and_one_block_say_why_nothing_was_tested():
    assert critical_difference(np.ones((5, 3))).reason == "all models are equal in every block"
    alone = critical_difference(np.ones((1, 3)))
    assert np.isnan(alone.p)
    assert "two of each" in alone.reason
    with pytest.raises(ValueError, match="1 of 4 are NaN"):
        critical_difference([[1, np.nan], [0, 1]])
