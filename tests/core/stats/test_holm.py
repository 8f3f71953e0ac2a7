"""Holm's adjustment against statsmodels."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from core.stats.holm import holm


# statsmodels is slow, so fewer and plainer numbers than hypothesis would try
@settings(max_examples=40)
@given(st.lists(st.integers(0, 1000).map(lambda k: k / 1000), min_size=1, max_size=30))
def test_adjusted_p_values_are_those_of_statsmodels(p):
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], atol=1e-12)


def test_a_test_that_could_not_be_made_is_no_member_of_the_family():
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])


def test_no_tests_give_no_p_values():
    assert holm([]).shape == (0,)
