import numpy as np
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from core.stats.clustering import clustering


def test_equal_groups_give_the_random_intercept_models_components():
    drawing = np.random.default_rng(2)
    groups = np.repeat(np.arange(12), 8)
    values = drawing.normal(size=96) + np.repeat(drawing.normal(size=12), 8)

    found = clustering(values, groups)

    model = MixedLM(values, np.ones(96), groups).fit(reml=True)
    assert found.between == pytest.approx(float(model.cov_re[0, 0]), rel=1e-3)
    assert found.within == pytest.approx(float(model.scale), rel=1e-3)
    # Kish: 1 + (m - 1) icc
    assert found.design_effect == pytest.approx(1 + 7 * found.icc)


def test_groups_that_do_not_differ_have_no_component_of_their_own():
    found = clustering([0, 4, 0, 4], ["a", "a", "b", "b"])

    assert (found.between, found.icc, found.design_effect) == (0, 0, 1)


def test_values_that_are_all_in_their_group_have_correlation_one():
    assert clustering([1, 1, 3, 3, np.nan], ["a", "a", "b", "b", "c"]).icc == 1


@pytest.mark.parametrize(
    ("values", "groups", "reason"),
    [
        ([1, 2, 3], ["a", "a", "a"], "3 values in 1 groups"),
        ([1, 2, 3], ["a", "b", "c"], "3 values in 3 groups"),
        ([1, 1, 1, 1], ["a", "a", "b", "b"], "all values are equal"),
    ],
)
def test_what_cannot_be_split_is_undefined_with_its_reason(values, groups, reason):
    found = clustering(values, groups)

    assert np.isnan(found.icc)
    assert found.reason.startswith(reason)
