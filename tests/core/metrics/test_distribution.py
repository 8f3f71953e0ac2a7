"""Metrics of the choice distribution, by hand and against the definition."""

import numpy as np
import pytest
from hypothesis import given as drawn_from
from hypothesis import strategies as st

from core.metrics.distribution import (
    expected_absolute_error,
    expected_calibration_error,
    given,
    ranked_probability_score,
)

distributions = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)),
    min_size=1,
    max_size=30,
).map(
    lambda rows: (np.array([g for g, _ in rows]), np.array([np.array(p) / sum(p) for _, p in rows]))
)


def test_a_certain_hit_scores_zero_everywhere():
    gold, sure = [2, 5], np.eye(5)[[1, 4]]
    assert expected_absolute_error(gold, sure) == 0
    assert ranked_probability_score(gold, sure) == 0
    assert expected_calibration_error(gold, sure) == 0


def test_certainty_at_the_far_end_scores_one():
    assert ranked_probability_score([1], np.eye(5)[[4]]) == 1


def test_figures_by_hand():
    # mean 2.5, gold 2; cumulative .25 .5 .75 1 against 0 1 1 1
    spread = [[0.25, 0.25, 0.25, 0.25, 0.0]]
    assert expected_absolute_error([2], spread) == 0.5
    assert ranked_probability_score([2], spread) == pytest.approx((0.0625 + 0.25 + 0.0625) / 4)
    # the tie goes to level 1, which is wrong: a gap of 0.25 in the only bin
    assert expected_calibration_error([2], spread) == pytest.approx(0.25)


@drawn_from(distributions)
def test_a_certain_distribution_turns_the_score_into_absolute_error(items):
    gold, spread = items
    certain = np.eye(5)[spread.argmax(-1)]
    error = np.abs(spread.argmax(-1) + 1 - gold).mean()
    assert ranked_probability_score(gold, certain) == pytest.approx(error / 4)
    assert expected_absolute_error(gold, certain) == pytest.approx(error)


@drawn_from(distributions)
def test_calibration_error_equals_a_loop_over_bins(items):
    gold, spread = items
    sure, right = spread.max(-1), spread.argmax(-1) + 1 == gold
    gap = 0.0
    for upper in range(1, 11):
        inside = (np.round(sure * 10, 9) > upper - 1) & (np.round(sure * 10, 9) <= upper)
        gap += abs((right[inside] - sure[inside]).sum())
    assert expected_calibration_error(gold, spread) == pytest.approx(gap / len(gold))


def test_weights_count_an_item_as_often_as_it_was_drawn():
    gold, sure = [1, 1], np.eye(5)[[0, 2]]
    drawn = np.array([[2, 0], [0, 2], [1, 1]])
    np.testing.assert_allclose(expected_absolute_error(gold, sure, drawn), [0, 2, 1])


def test_items_without_a_distribution_are_left_out_and_counted():
    spread = np.array([np.eye(5)[0], np.full(5, np.nan)])
    assert given(spread) == 1
    assert expected_absolute_error([1, 5], spread) == 0
    assert np.isnan(ranked_probability_score([5], spread[1:]))


def test_a_row_that_is_no_distribution_is_refused_with_its_position():
    with pytest.raises(ValueError, match="position 1: expected non-negative numbers that sum to 1"):
        expected_absolute_error([1, 2], [np.eye(5)[0], np.full(5, 0.1)])
