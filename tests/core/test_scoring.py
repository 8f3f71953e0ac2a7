"""Figures of degenerate data: undefined with a reason, and no certainty where there is none."""

import math

import numpy as np
import pandas as pd

from core.metrics import ordinal
from core.scoring import of_condition, p_values


def estimates(gold, predicted):
    table = ordinal.counts(pd.Series(gold), pd.Series(predicted, dtype="Int64"))
    found = of_condition("AO", table, ordinal.METRICS, ordinal.why_undefined, resamples=50, seed=0)
    return {estimate.metric: estimate for estimate in found}


def test_one_item_has_a_value_and_no_interval():
    found = estimates([3, 4, 5], [2, None, None])["mae"]

    assert (found.value, found.n, found.n_total) == (1.0, 1, 3)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason == "one item has no interval"


def test_two_items_have_one():
    found = estimates([3, 4], [2, 4])["mae"]

    assert (found.value, found.low, found.high, found.reason) == (0.5, 0.0, 1.0, None)


def test_what_is_undefined_for_one_item_keeps_that_reason():
    found = estimates([3], [2])["spearman"]

    assert math.isnan(found.value)
    assert found.reason == ordinal.why_undefined("spearman", ordinal.counts([3], [2]))


def test_nothing_answered_is_undefined_and_never_zero():
    for name, found in estimates([1, 2, 3], [None, None, None]).items():
        assert math.isnan(found.value), name
        assert found.reason, name


def test_a_pair_without_a_reason_has_none_beside_one_that_has():
    compared = pd.DataFrame(
        {
            "first": ["AT", "AO"],
            "second": ["TO", "TO"],
            "n": [5, 5],
            "p": [0.5, 1.0],
            "reason": [np.nan, "all differences are zero"],
        }
    )

    assert [found.reason for found in p_values("wilcoxon_p", compared, 5)] == [
        None,
        "all differences are zero",
    ]
