"""Study 2's Table 3 to the printed digit, and every metric against scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    matthews_corrcoef,
    precision_recall_fscore_support,
)

from core.metrics.binary import (
    METRICS,
    METRICS_OVER_ALL,
    counts,
    coverage,
    f1,
    joint_counts,
    per_set,
    precision,
    recall,
    report,
    support,
    why_undefined,
    wrong_if_unanswered,
)

# SpeechMentalManip, Table 3: predicted YES and NO in the sets GT=YES and GT=NO
PUBLISHED = np.array([[87, 163, 0], [16, 74, 0]])

clips = st.lists(
    st.tuples(st.sampled_from(["YES", "NO"]), st.sampled_from(["YES", "NO", None])), max_size=40
).map(lambda pairs: ([gold for gold, _ in pairs], [answer for _, answer in pairs]))


def test_table_3_comes_out_to_the_printed_digit():
    # all of the table's figures can be reproduced; section 3.1 speaks of 609 manipulative
    # clips, but the printed table rests on 250
    printed = {
        "GT=YES": (0.845, 0.348, 0.493, 250),
        "GT=NO": (0.312, 0.822, 0.453, 90),
        "Macro avg": (0.578, 0.585, 0.473, 340),
        "Weighted avg": (0.704, 0.474, 0.482, 340),
    }
    table = report(PUBLISHED)
    for row, figures in printed.items():
        assert tuple(float(f"{x:.3f}") for x in table.loc[row]) == figures


def test_table_3_per_set_accuracies_come_out_to_the_printed_digit():
    table = per_set(PUBLISHED)
    assert list(table["Pred YES"]) == [87, 16]
    assert list(table["Pred NO"]) == [163, 74]
    assert [f"{share:.3f}" for share in table["Acc"]] == ["0.348", "0.822"]
    assert list(table["N"]) == [250, 90]


@given(clips)
def test_scores_over_answered_clips_equal_scikit_learn(pairs):
    gold, predicted = pairs
    table = counts(gold, predicted)
    kept = [(g, p) for g, p in zip(gold, predicted, strict=True) if p is not None]
    if not kept:
        assert np.isnan(METRICS["accuracy"](table))
        return
    truth, answers = zip(*kept, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = precision_recall_fscore_support(
            truth, answers, labels=["YES", "NO"], zero_division=np.nan
        )
        correlation = matthews_corrcoef(truth, answers)
        balanced = balanced_accuracy_score(truth, answers)
    for ours, theirs in zip((precision, recall, f1, support), expected, strict=True):
        np.testing.assert_allclose(ours(table), theirs, atol=1e-12)
    constant = len(set(truth)) == 1 or len(set(answers)) == 1
    # where scikit-learn puts 0, the correlation does not exist
    np.testing.assert_allclose(
        METRICS["mcc"](table), np.nan if constant else correlation, atol=1e-12
    )
    if len(set(truth)) == 2:
        np.testing.assert_allclose(METRICS["balanced_accuracy"](table), balanced, atol=1e-12)


@given(clips)
def test_averages_equal_scikit_learn_where_every_class_has_a_score(pairs):
    table = counts(*pairs)
    scores = [precision(table), recall(table), f1(table)]
    if np.isnan(scores).any():
        return
    kept = [(g, p) for g, p in zip(*pairs, strict=True) if p is not None]
    truth, answers = zip(*kept, strict=True)
    for average in ("macro", "weighted"):
        expected = precision_recall_fscore_support(truth, answers, average=average)[:3]
        ours = [METRICS[f"{average}_{name}"](table) for name in ("precision", "recall", "f1")]
        np.testing.assert_allclose(ours, expected, atol=1e-12)


@given(clips)
def test_a_metric_is_nan_exactly_where_a_reason_is_given(pairs):
    table = counts(*pairs)
    for name, metric in {**METRICS, **METRICS_OVER_ALL}.items():
        reason = why_undefined(name, table)
        assert np.isnan(metric(table)) == bool(reason), name


def test_an_unanswered_clip_counts_as_wrong_over_all():
    table = counts(["YES", "YES", "NO"], ["YES", None, None])
    assert (wrong_if_unanswered(table) == [[1, 1], [1, 0]]).all()
    assert METRICS["recall_yes"](table) == 1
    assert METRICS_OVER_ALL["recall_yes_all"](table) == 0.5
    assert coverage(table) == pytest.approx(1 / 3)


def test_a_model_that_never_says_yes_has_no_precision_for_yes():
    table = counts(["YES", "NO"], ["NO", "NO"])
    assert np.isnan(METRICS["precision_yes"](table))
    assert why_undefined("precision_yes", table) == "YES was never predicted"
    assert METRICS["f1_yes"](table) == 0


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA])
def test_an_answer_that_is_missing_in_any_of_its_forms_is_none(nothing):
    table = counts(pd.Series(["YES", "NO"]), pd.Series(["YES", nothing], dtype=object))
    assert table.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_a_gold_label_that_is_missing_is_named():
    with pytest.raises(ValueError, match="gold, position 1: expected YES or NO, found <NA>"):
        counts(["YES", pd.NA], ["YES", "NO"])


def test_a_batch_gives_what_its_tables_give_alone():
    batch = np.stack([PUBLISHED, PUBLISHED[::-1], PUBLISHED * 3])[:, None]
    for metric in METRICS.values():
        np.testing.assert_allclose(metric(batch)[:, 0], [metric(table) for table in batch[:, 0]])


def test_joint_counts_hold_both_tables():
    joint = joint_counts(["YES", "NO"], ["YES", None], ["NO", "NO"])
    assert (joint.sum(-1) == counts(["YES", "NO"], ["YES", None])).all()
    assert (joint.sum(-2) == counts(["YES", "NO"], ["NO", "NO"])).all()


def test_another_label_is_refused_with_its_position():
    with pytest.raises(ValueError, match="predicted, position 1: expected YES or NO, or None"):
        counts(["YES", "NO"], ["YES", "maybe"])
