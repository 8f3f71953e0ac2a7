import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from core.metrics.correlation import weighted_spearman

PAIRS = st.lists(st.tuples(st.integers(-4, 4), st.floats(-4, 4)), min_size=3, max_size=40)


@settings(max_examples=100, deadline=None)
@given(PAIRS)
def test_it_is_scipys_for_items_that_count_once(pairs):
    one, two = np.array(pairs).T
    two = np.round(two, 6)
    assume(len(set(one)) > 1 and len(set(two)) > 1)

    assert weighted_spearman(one, two) == pytest.approx(spearmanr(one, two).statistic, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.data())
def test_a_weight_of_two_is_two_equal_items(pairs, data):
    one, two = np.array(pairs).T
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(one), max_size=len(one))))
    repeated = weighted_spearman(np.repeat(one, weights), np.repeat(two, weights))

    assert weighted_spearman(one, two, weights) == pytest.approx(repeated, abs=1e-9, nan_ok=True)


def test_many_rows_of_weights_go_through_at_once():
    one, two = [1, 2, 3, 4], [1, 3, 2, 4]
    # The last row leaves the first two items, which agree; the middle one leaves one item.
    weights = np.array([[1, 1, 1, 1], [0, 0, 5, 0], [1, 1, 0, 0]])

    assert weighted_spearman(one, two, weights) == pytest.approx([0.8, np.nan, 1], nan_ok=True)


def test_what_never_varies_is_undefined():
    assert np.isnan(weighted_spearman([1, 1, 1], [1, 2, 3]))
    assert np.isnan(weighted_spearman([], []))
