"""Every ordinal metric against scikit-learn, scipy or numpy on the items behind the table."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    mean_absolute_error,
    mean_squared_error,
)

from core.metrics.ordinal import (
    METRICS,
    METRICS_OVER_ALL,
    absolute_error_by_gold,
    counts,
    coverage,
    why_undefined,
)

levels = st.integers(1, 5)
ratings = st.lists(st.tuples(levels, st.one_of(st.none(), levels)), max_size=60).map(
    lambda pairs: ([gold for gold, _ in pairs], [answer for _, answer in pairs])
)
# few distinct levels, so that constants and empty classes are common
narrow = st.lists(st.tuples(st.sampled_from([2, 3]), st.sampled_from([3, None])), max_size=8).map(
    lambda pairs: ([gold for gold, _ in pairs], [answer for _, answer in pairs])
)


def references(gold, predicted):
    if not len(gold):
        return dict.fromkeys(METRICS, np.nan)
    error = predicted - gold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rho = spearmanr(gold, predicted)[0] if len(gold) > 1 else np.nan
        kappa = cohen_kappa_score(gold, predicted, labels=[1, 2, 3, 4, 5], weights="quadratic")
    by_level = [
        np.abs(error[gold == level]).mean() if (gold == level).any() else np.nan
        for level in range(1, 6)
    ]
    return {
        "mae": mean_absolute_error(gold, predicted),
        "rmse": np.sqrt(mean_squared_error(gold, predicted)),
        "a1": np.mean(np.abs(error) <= 1),
        "exact": accuracy_score(gold, predicted),
        "bias": error.mean(),
        "macro_mae": np.mean(by_level),
        "spearman": rho,
        "qwk": kappa,
    }


@given(st.one_of(ratings, narrow))
def test_metrics_over_answered_items_equal_scikit_learn_and_scipy(pairs):
    gold, predicted = pairs
    table = counts(gold, predicted)
    kept = [(g, p) for g, p in zip(gold, predicted, strict=True) if p is not None]
    expected = references(np.array([g for g, _ in kept]), np.array([p for _, p in kept]))
    for name, metric in METRICS.items():
        np.testing.assert_allclose(metric(table), expected[name], atol=1e-12, rtol=0, err_msg=name)


@given(st.one_of(ratings, narrow))
def test_no_answer_costs_the_worst_error_when_all_items_count(pairs):
    gold, predicted = pairs
    worst = {1: 5, 2: 5, 3: 5, 4: 1, 5: 1}
    filled = np.array([worst[g] if p is None else p for g, p in zip(gold, predicted, strict=True)])
    expected = references(np.array(gold), filled)
    for name, metric in METRICS_OVER_ALL.items():
        value = metric(counts(gold, predicted))
        np.testing.assert_allclose(value, expected[name[: -len("_all")]], atol=1e-12, err_msg=name)


@given(st.one_of(ratings, narrow))
def test_a_metric_is_nan_exactly_where_a_reason_is_given(pairs):
    table = counts(*pairs)
    for name, metric in {**METRICS, **METRICS_OVER_ALL}.items():
        assert np.isnan(metric(table)) == (why_undefined(name, table) is not None), name


@given(ratings, st.randoms(use_true_random=False))
def test_the_order_of_items_and_splitting_them_change_nothing(pairs, random):
    rows = list(zip(*pairs, strict=True))
    whole = counts(*pairs)
    random.shuffle(rows)
    half = len(rows) // 2
    parts = [
        counts([g for g, _ in part], [p for _, p in part]) for part in (rows[:half], rows[half:])
    ]
    assert (sum(parts) == whole).all()


@given(st.lists(st.lists(st.integers(0, 9), min_size=30, max_size=30), min_size=2, max_size=4))
def test_a_batch_gives_what_its_tables_give_alone(cells):
    batch = np.array(cells).reshape(-1, 1, 5, 6)
    for metric in {**METRICS, **METRICS_OVER_ALL}.values():
        alone = [metric(table) for table in batch[:, 0]]
        assert metric(batch).shape == (len(batch), 1)
        np.testing.assert_allclose(metric(batch)[:, 0], alone, atol=1e-12)


def test_a_constant_prediction_has_no_rank_correlation_but_a_kappa_of_zero():
    table = counts([1, 2, 3], [3, 3, 3])
    assert np.isnan(METRICS["spearman"](table))
    assert why_undefined("spearman", table) == "predicted is 3 for all 3 answered items"
    assert METRICS["qwk"](table) == 0


def test_one_item_has_an_error_but_no_correlation():
    table = counts([2], [4])
    assert METRICS["mae"](table) == 2
    assert np.isnan(METRICS["spearman"](table))


def test_nothing_answered_is_said_so():
    table = counts([2, 3], [None, None])
    assert coverage(table) == 0
    assert why_undefined("mae", table) == "none of 2 items was answered"
    # worst errors of gold 2 and 3 are 3 and 2
    assert METRICS_OVER_ALL["mae_all"](table) == 2.5


def test_an_empty_gold_level_is_named():
    table = counts([1, 2, 4, 5], [1, 2, 4, 5])
    assert why_undefined("macro_mae", table) == "no answered item has gold level 3"
    np.testing.assert_array_equal(absolute_error_by_gold(table), [0, 0, np.nan, 0, 0])


@pytest.mark.parametrize("name", ["spearman", "qwk", "bias"])
def test_no_penalty_is_invented_where_an_item_has_no_error_of_its_own(name):
    assert f"{name}_all" not in METRICS_OVER_ALL


def test_a_million_items_keep_twelve_digits():
    drawn = np.random.default_rng(3)
    gold = drawn.integers(1, 6, 1_000_000)
    predicted = np.clip(gold + drawn.integers(-2, 3, 1_000_000), 1, 5)
    table = counts(gold, predicted)
    assert METRICS["spearman"](table) == pytest.approx(spearmanr(gold, predicted)[0], abs=1e-12)
    kappa = cohen_kappa_score(gold, predicted, weights="quadratic")
    assert METRICS["qwk"](table) == pytest.approx(kappa, abs=1e-12)
