import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from core.metrics.calibration import reliability
from core.metrics.distribution import expected_calibration_error
from core.metrics.ranking import calibration_error

DRAWING = np.random.default_rng(4)


def test_bins_are_those_of_scikit_learn():
    sure = DRAWING.uniform(size=300)
    right = DRAWING.uniform(size=300) < sure

    found = reliability(sure, right)

    observed, confidence = calibration_curve(right, sure, n_bins=10)
    assert found["observed"].to_numpy() == pytest.approx(observed)
    assert found["confidence"].to_numpy() == pytest.approx(confidence)


def test_the_weighted_gap_of_the_bins_is_the_calibration_error():
    shares = DRAWING.dirichlet(np.ones(5), 200)
    gold = DRAWING.integers(1, 6, 200)
    bins = reliability(shares.max(1), shares.argmax(1) + 1 == gold)

    gap = (bins["n"] * (bins["observed"] - bins["confidence"]).abs()).sum() / bins["n"].sum()

    assert gap == pytest.approx(float(expected_calibration_error(gold, shares)))


def test_the_same_holds_for_p_of_yes():
    p_yes, is_yes = np.array([0.05, 0.3, 0.3, 0.95, np.nan]), np.array([0, 1, 0, 1, 1])
    bins = reliability(p_yes, is_yes)

    gap = (bins["n"] * (bins["observed"] - bins["confidence"]).abs()).sum() / bins["n"].sum()

    assert gap == pytest.approx(float(calibration_error(is_yes, p_yes)))
    assert bins["n"].tolist() == [1, 2, 1]


def test_a_model_without_confidence_has_no_bins():
    assert reliability([np.nan, np.nan], [True, False]).empty
