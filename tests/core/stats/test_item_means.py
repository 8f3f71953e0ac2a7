import numpy as np
import pytest

from core.metrics.ordinal import mean_absolute_error
from core.metrics.tables import counts
from core.stats.bootstrap import weight_bootstrap
from core.stats.item_means import ends, mean_draws, mean_ends, strata_means

ERRORS = np.array([[0.0, 1, 2, 0, 4, 1], [1, 1, np.nan, 0, 0, 3]])
SESSIONS = ["a", "a", "b", "b", "c", "c"]


@pytest.mark.parametrize("sessions", [None, SESSIONS])
def test_the_interval_of_a_cell_is_the_weight_bootstraps(sessions):
    low, high = ends(mean_draws(ERRORS, sessions=sessions, resamples=500, seed=3))
    given = np.isnan(ERRORS[1])
    filled = np.where(given, 0, ERRORS[1])
    other = weight_bootstrap(
        6,
        {"mean": lambda w: (w @ filled) / (w @ ~given)},
        sessions=None if sessions is None else np.array(sessions),
        resamples=500,
        seed=3,
    )["mean"]

    assert (low[1], high[1]) == pytest.approx((float(other.low), float(other.high)))


def test_two_cells_with_the_same_values_agree_in_every_resample():
    drawn = mean_draws(np.stack([ERRORS[0], ERRORS[0]]), resamples=200)

    assert (drawn[:, 0] == drawn[:, 1]).all()


def test_the_means_of_gold_levels_are_those_of_the_table_of_counts():
    gold, predicted = np.array([1, 1, 2, 2, 5, 5]), np.array([1, 2, 4, 2, 1, 4])
    found = strata_means([np.abs(gold - predicted)], gold - 1, 5, sessions=SESSIONS)

    for level in (1, 2, 5):
        rows = gold == level
        expected = mean_absolute_error(counts(gold[rows], predicted[rows]))
        assert found.value[0, level - 1] == pytest.approx(float(expected))
    assert found.n[0].tolist() == [2, 2, 0, 0, 2]
    assert np.isnan(found.value[0, 2])


def test_a_stratum_of_one_session_has_no_interval():
    found = strata_means(ERRORS[:1], [0, 0, 1, 1, 1, 1], 2, sessions=SESSIONS)

    assert np.isnan(found.low[0, 0])
    assert found.low[0, 1] <= found.value[0, 1] <= found.high[0, 1]
    assert found.units.tolist() == [[1, 2]]


@pytest.mark.parametrize("sessions", [None, SESSIONS])
def test_a_stratum_with_one_answer_has_no_interval_for_the_cell_that_gave_it(sessions):
    # Of the stratum's three items the first cell answered all, the second one.
    values = [[0, 1, 2, 0, 4, 1], [0, 1, np.nan, 1, np.nan, 1]]
    found = strata_means(values, [0, 0, 1, 1, 1, -1], 2, sessions=sessions)

    assert found.low[0, 1] < found.high[0, 1]
    assert (found.value[1, 1], found.n[1, 1], found.units[1, 1]) == (1, 1, 1)
    assert np.isnan([found.low[1, 1], found.high[1, 1]]).all()


def test_answers_of_one_session_have_no_interval_over_sessions():
    low, high, units = mean_ends([[0, 1, np.nan, np.nan, np.nan, np.nan]], sessions=SESSIONS)

    assert units.tolist() == [1]
    assert np.isnan([low, high]).all()


def test_no_items_are_no_numbers():
    assert np.isnan(mean_draws(np.empty((2, 0)), resamples=10)).all()
