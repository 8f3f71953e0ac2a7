import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from validation.experts import CONSENSUS, against_labels, model_error, pairwise_means

NAN = np.nan
VALUES = np.array([[1, 2, 1], [3, 3, 5], [4, 5, 5], [2, 2, NAN], [NAN, 4, NAN]], dtype=float)


def by_metric(estimates):
    return {each.metric: each for each in estimates}


def test_pairs_count_alike_however_many_turns_they_share():
    found = by_metric(pairwise_means(VALUES, resamples=0))
    # Gaps: first-second 1 0 1 0, first-third 0 2 1, second-third 1 2 0.
    assert found["pairwise_exact"].value == pytest.approx((2 / 4 + 1 / 3 + 1 / 3) / 3)
    assert found["pairwise_within_one"].value == pytest.approx((4 / 4 + 2 / 3 + 2 / 3) / 3)
    assert found["pairwise_mae"].value == pytest.approx((2 / 4 + 3 / 3 + 3 / 3) / 3)
    assert (found["pairwise_mae"].n, found["pairwise_mae"].n_total) == (4, 5)


def test_the_kappa_is_scikit_learn_s():
    values = np.random.default_rng(0).integers(1, 6, (40, 3)).astype(float)
    expected = [
        cohen_kappa_score(values[:, a], values[:, b], weights="quadratic", labels=range(1, 6))
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    found = by_metric(pairwise_means(values, resamples=200))["pairwise_qwk"]
    assert found.value == pytest.approx(np.mean(expected))
    assert found.low < found.value < found.high


def test_what_is_undefined_has_its_reason():
    assert {e.reason for e in pairwise_means(np.array([[1, NAN], [NAN, 2]]))} == {
        "no item has two ratings"
    }
    found = by_metric(pairwise_means(np.full((3, 2), 4.0), resamples=10))
    assert found["pairwise_exact"].value == 1.0
    assert np.isnan(found["pairwise_qwk"].value)
    assert found["pairwise_qwk"].reason == "every two raters always gave the same one rating"


def test_each_expert_and_the_median_stand_beside_the_labels():
    labels = np.array([1, 3, 5, 4, 4], dtype=float)
    found = {(e.condition, e.metric): e for e in against_labels(VALUES, "ABC", labels, resamples=0)}
    assert found["A", "reference_mae"].value == pytest.approx((0 + 0 + 1 + 2) / 4)
    # Medians 1 3 5 2 4.
    assert found[CONSENSUS, "reference_mae"].value == pytest.approx(2 / 5)
    assert found[CONSENSUS, "reference_within_one"].value == pytest.approx(4 / 5)
    assert found["C", "reference_mae"].n == 3


def test_a_model_s_error_is_over_what_it_answered():
    labels = {"t1": 1.0, "t2": 3.0, "t3": 5.0}
    found = model_error("m", {"t1": 2.0, "t2": NAN}, labels, {"t1": 3.5, "t2": 3.0, "t9": 1.0})
    assert (found.full, found.n_full, found.asked) == (1.0, 1, 3)
    assert (found.experts, found.labels, found.n_experts) == (1.5, 1.0, 1)
    nothing = model_error("m", {}, labels, {})
    assert np.isnan(nothing.full)
