"""AUROC and AUPRC against scikit-learn, weights included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from core.metrics.ranking import auprc, auroc, calibration_error

# few distinct probabilities, so that ties are common
clips = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.integers(1, 3)),
    min_size=2,
    max_size=40,
).filter(lambda rows: len({yes for yes, _, _ in rows}) == 2)


@given(clips)
def test_areas_equal_scikit_learn(rows):
    gold, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    for ours, theirs in ((auroc, roc_auc_score), (auprc, average_precision_score)):
        np.testing.assert_allclose(ours(gold, scores), theirs(gold, scores), atol=1e-12)
        expected = theirs(gold, scores, sample_weight=weights)
        np.testing.assert_allclose(ours(gold, scores, weights), expected, atol=1e-12)


def test_weights_count_a_clip_as_often_as_it_was_drawn():
    gold, scores = np.array([True, False, True]), np.array([0.9, 0.4, 0.3])
    twice = auroc(gold, scores, np.array([[1, 1, 1], [2, 1, 1]]))
    np.testing.assert_allclose(twice, [0.5, 2 / 3])


def test_a_clip_without_a_probability_is_left_out():
    assert auroc([True, False, False], [0.9, 0.1, np.nan]) == 1


def test_one_class_alone_has_no_auroc():
    assert np.isnan(auroc([True, True], [0.3, 0.4]))
    assert auprc([True, True], [0.3, 0.4]) == 1
    assert np.isnan(auprc([False], [0.3]))


def test_no_scored_clip_is_undefined():
    assert np.isnan(auroc([True, False], [np.nan, np.nan]))


def test_the_calibration_error_by_hand():
    # bin (0.7, 0.8]: two clips of p 0.8, one YES: gap 0.3; bin [0, 0.1]: two of 0.1, none: gap 0.1.
    found = calibration_error([True, False, False, False], [0.8, 0.8, 0.1, 0.1])

    assert found == pytest.approx((2 * 0.3 + 2 * 0.1) / 4)


def test_a_calibrated_model_has_no_calibration_error_and_weights_count_clips():
    assert calibration_error([True, False], [0.5, 0.5]) == pytest.approx(0)
    assert calibration_error([True, False], [0.5, 0.5], np.array([[3, 1]])) == pytest.approx([0.25])
    assert np.isnan(calibration_error([True], [np.nan]))
