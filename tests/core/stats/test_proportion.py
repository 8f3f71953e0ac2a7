"""Wilson's interval against statsmodels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from core.stats.proportion import wilson


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_that_of_statsmodels(counts):
    hits, n = counts
    np.testing.assert_allclose(
        wilson(hits, n), proportion_confint(hits, n, method="wilson"), atol=1e-12
    )


def test_no_trials_have_no_interval():
    assert np.isnan(wilson(0, 0)).all()


def test_the_papers_recall_of_87_in_250():
    low, high = wilson([87, 74], [250, 90])
    # (87 + z2/2) / (250 + z2) = 0.3503, z / (250 + z2) sqrt(87 163 / 250 + z2/4) = 0.0586
    np.testing.assert_allclose((low[0], high[0]), (0.2917, 0.4089), atol=1e-4)
    assert high[1] < 0.9
