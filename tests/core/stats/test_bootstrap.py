"""The bootstrap over counts: the law of resampling items, reproducible however it is cut."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.metrics.ordinal import METRICS
from core.metrics.ranking import auroc
from core.metrics.tables import counts, counts_by_session, joint_counts
from core.stats.bootstrap import (
    bootstrap,
    cluster_bootstrap,
    difference,
    resampled,
    session_weights,
    weight_bootstrap,
)

tables = st.lists(st.integers(0, 12), min_size=30, max_size=30).map(
    lambda cells: np.array(cells).reshape(5, 6)
)


def ratings(n, seed=1):
    drawing = np.random.default_rng(seed)
    gold = drawing.choice([1, 2, 3, 4, 5], n, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    return gold, np.clip(gold + drawing.integers(-2, 3, n), 1, 5)


@settings(max_examples=20)
@given(tables, tables, st.lists(st.integers(0, 700), min_size=2, max_size=4))
def test_resamples_are_the_same_however_the_work_is_cut(one, two, cuts):
    whole = resampled(np.stack([one, two]), seed=7, stop=700)
    edges = sorted({0, *cuts, 700})
    parts = [
        resampled(np.stack([two]), seed=7, start=start, stop=stop)
        for start, stop in pairwise(edges)
    ]
    assert (np.concatenate(parts, 1)[0] == whole[1]).all()


def test_session_weights_are_the_same_however_the_work_is_cut():
    whole = session_weights(9, seed=3, stop=600)
    parts = [
        session_weights(9, seed=3, start=a, stop=b) for a, b in ((0, 10), (10, 510), (510, 600))
    ]
    assert (np.concatenate(parts) == whole).all()
    assert (whole.sum(1) == 9).all()


@settings(max_examples=20)
@given(tables)
def test_a_resample_has_as_many_items_and_fills_no_empty_cell(table):
    drawn = resampled(table[None], seed=0, stop=50)[0]
    assert (drawn.sum((-2, -1)) == table.sum()).all()
    assert not drawn[:, table == 0].any()


def test_a_table_has_the_same_interval_alone_and_beside_others():
    batch = np.stack([counts(*ratings(80, seed)) for seed in range(3)])
    together, alone = bootstrap(batch, METRICS), bootstrap(batch[2], METRICS)
    for name in METRICS:
        assert together[name].low[2] == alone[name].low
        assert together[name].high[2] == alone[name].high


def test_another_seed_draws_another_interval():
    table = counts(*ratings(80))
    ends = {float(bootstrap(table, METRICS, seed=seed)["mae"].low) for seed in range(3)}
    assert len(ends) > 1
    assert (
        bootstrap(table, METRICS, seed=1)["mae"].low == bootstrap(table, METRICS, seed=1)["mae"].low
    )


def test_drawing_counts_is_drawing_items():
    gold, predicted = ratings(60)
    drawing = np.random.default_rng(0)
    rows = drawing.integers(0, 60, (4000, 60))
    by_items = METRICS["spearman"](np.stack([counts(gold[row], predicted[row]) for row in rows]))
    by_counts = METRICS["spearman"](resampled(counts(gold, predicted)[None], seed=1, stop=4000)[0])
    assert stats.ks_2samp(by_items, by_counts).pvalue > 0.01


def test_ends_are_numpys_percentiles_of_the_resamples():
    table = counts(*ratings(80))
    redrawn = METRICS["qwk"](resampled(table[None], seed=2, stop=999)[0])
    interval = bootstrap(table, METRICS, resamples=999, seed=2)["qwk"]
    np.testing.assert_allclose((interval.low, interval.high), np.percentile(redrawn, [2.5, 97.5]))


def test_undefined_resamples_are_counted_and_leave_the_interval_alone():
    # two items: half of the resamples draw one of them twice and have no correlation
    interval = bootstrap(counts([1, 5], [1, 4]), METRICS, resamples=400)["spearman"]
    assert 140 < interval.undefined < 260
    assert (interval.low, interval.high) == (1, 1)


def test_an_undefined_metric_has_no_interval_and_does_not_touch_the_others():
    intervals = bootstrap(counts([1, 2, 3], [3, 3, 3]), METRICS)
    assert np.isnan(intervals["spearman"].low)
    assert intervals["spearman"].undefined == 1000
    assert intervals["mae"].low < intervals["mae"].high


def test_one_item_and_no_item_do_not_fail():
    assert bootstrap(counts([2], [4]), METRICS)["mae"].low == 2
    assert np.isnan(bootstrap(counts([], []), METRICS)["mae"].low)


def test_items_without_an_answer_are_drawn_too():
    table = counts([1] * 10, [1] * 5 + [None] * 5)
    drawn = resampled(table[None], seed=0, stop=500)[0]
    assert drawn[:, 0, 5].std() > 1


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("rmse", lambda gold, predicted: np.sqrt(np.mean((gold - predicted) ** 2))),
        ("spearman", lambda gold, predicted: stats.spearmanr(gold, predicted)[0]),
    ],
)
def test_bca_ends_are_scipys_for_the_same_resamples(name, statistic):
    gold, predicted = ratings(40)
    table = counts(gold, predicted)
    redrawn = METRICS[name](resampled(table[None], seed=3, stop=2000)[0])
    theirs = stats.bootstrap(
        (gold, predicted),
        statistic,
        paired=True,
        vectorized=False,
        n_resamples=0,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=redrawn),
        method="BCa",
    ).confidence_interval
    ours = bootstrap(table, METRICS, resamples=2000, seed=3, method="bca")[name]
    np.testing.assert_allclose((ours.low, ours.high), theirs, atol=1e-9)
    plain = bootstrap(table, METRICS, resamples=2000, seed=3)[name]
    assert (plain.low, plain.high) != (ours.low, ours.high)


def test_bca_of_a_metric_that_never_varies_is_its_value():
    perfect = counts([1, 2, 3, 4, 5] * 4, [1, 2, 3, 4, 5] * 4)
    interval = bootstrap(perfect, {"exact": METRICS["exact"]}, method="bca")["exact"]
    assert (interval.low, interval.high) == (1, 1)


def test_bca_leaves_out_what_is_undefined_without_one_item():
    # without its one item of gold 5 the macro average does not exist
    table = counts([1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 2, 2, 3, 3, 4, 4, 2, 4])
    interval = bootstrap(table, METRICS, method="bca")["macro_mae"]
    assert interval.undefined > 0
    assert interval.low < interval.value < interval.high


def test_the_cluster_bootstrap_draws_whole_sessions():
    gold, predicted = ratings(120)
    sessions = np.repeat(np.arange(12), 10)
    names = [f"session-{number:02d}" for number in sessions]
    by_session = counts_by_session(gold, predicted, names)
    ours = cluster_bootstrap(by_session, METRICS, resamples=500, seed=4)["mae"]
    weights = session_weights(12, seed=4, stop=500)
    by_hand = [np.average(np.abs(predicted - gold), weights=row[sessions]) for row in weights]
    np.testing.assert_allclose((ours.low, ours.high), np.percentile(by_hand, [2.5, 97.5]))
    assert ours.value == METRICS["mae"](counts(gold, predicted))


def test_sessions_that_differ_widen_the_interval():
    gold = np.ones(200, dtype=int)
    predicted = np.repeat([1, 3] * 10, 10)
    sessions = np.repeat(np.arange(20), 10)
    by_items = bootstrap(counts(gold, predicted), METRICS)["mae"]
    by_sessions = cluster_bootstrap(counts_by_session(gold, predicted, sessions), METRICS)["mae"]
    assert by_sessions.high - by_sessions.low > 2 * (by_items.high - by_items.low)


def test_a_batch_of_cells_is_drawn_by_the_same_sessions():
    one = counts_by_session(*ratings(60), np.repeat(np.arange(6), 10))
    two = counts_by_session(*ratings(60, 9), np.repeat(np.arange(6), 10))
    both = cluster_bootstrap(np.stack([one, two]), METRICS, method="bca")
    alone = cluster_bootstrap(two, METRICS, method="bca")
    for name in METRICS:
        np.testing.assert_allclose(both[name].low[1], alone[name].low)


def test_pairing_narrows_the_interval_of_a_difference():
    gold, first = ratings(150)
    second = first.copy()
    second[:20] = np.clip(second[:20] - 1, 1, 5)
    paired = bootstrap(joint_counts(gold, first, second), {"mae": difference(METRICS["mae"])})[
        "mae"
    ]
    assert paired.value == METRICS["mae"](counts(gold, first)) - METRICS["mae"](
        counts(gold, second)
    )
    alone = bootstrap(counts(gold, first), METRICS)["mae"]
    assert paired.high - paired.low < (alone.high - alone.low) / 2


def test_the_same_answers_twice_differ_by_exactly_nothing():
    gold, first = ratings(50)
    paired = bootstrap(joint_counts(gold, first, first), {"rmse": difference(METRICS["rmse"])})[
        "rmse"
    ]
    assert (paired.low, paired.value, paired.high) == (0, 0, 0)


def test_statistics_of_items_are_drawn_with_weights():
    drawing = np.random.default_rng(2)
    gold = drawing.random(80) < 0.5
    scores = gold + drawing.normal(size=80)
    interval = weight_bootstrap(80, {"auroc": lambda w: auroc(gold, scores, w)})["auroc"]
    assert interval.low < interval.value < interval.high
    by_sessions = weight_bootstrap(
        80, {"auroc": lambda w: auroc(gold, scores, w)}, sessions=np.arange(80) // 4
    )["auroc"]
    assert by_sessions.method == "percentile over sessions"
    assert by_sessions.low < by_sessions.value < by_sessions.high


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match='expected "percentile" or "bca"'):
        bootstrap(counts([1], [1]), METRICS, method="basic")


def coverage_of(method, trials, n, inside):
    truth = np.array(
        [
            [12, 5, 2, 0, 0, 1],
            [4, 10, 6, 1, 0, 1],
            [1, 4, 9, 4, 1, 1],
            [0, 1, 4, 8, 3, 0],
            [0, 0, 1, 3, 4, 0],
        ]
    )
    share = truth / truth.sum()
    drawn = np.random.default_rng(11).multinomial(n, share.ravel(), trials).reshape(-1, 5, 6)
    intervals = bootstrap(drawn, {name: METRICS[name] for name in inside}, method=method)
    return {
        name: np.mean((found.low <= METRICS[name](truth)) & (METRICS[name](truth) <= found.high))
        for name, found in intervals.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_cover_the_truth_as_often_as_they_say(method):
    shares = coverage_of(method, 1000, 194, ("mae", "rmse", "spearman", "qwk", "a1"))
    for name, covered in shares.items():
        # Monte-Carlo error of 95 % over 1000 trials is 0.7 %; three of it, and one percent for
        # the interval's own error at n = 194
        assert covered == pytest.approx(0.95, abs=0.031), name


@pytest.mark.slow
def test_the_cluster_interval_covers_where_the_one_over_items_does_not():
    drawing = np.random.default_rng(12)
    covered = {"items": 0, "sessions": 0}
    trials, sessions, turns = 400, 60, 15
    for _ in range(trials):
        # each session has its own chance of an error of 1; the mean over sessions is 0.5
        chance = drawing.choice([0.2, 0.8], sessions)
        wrong = drawing.binomial(turns, chance)
        by_session = np.zeros((sessions, 5, 6), dtype=np.int64)
        by_session[:, 0, 1], by_session[:, 0, 0] = wrong, turns - wrong
        mae = {"mae": METRICS["mae"]}
        for name, found in (
            ("items", bootstrap(by_session.sum(0), mae)["mae"]),
            ("sessions", cluster_bootstrap(by_session, mae)["mae"]),
        ):
            covered[name] += bool(found.low <= 0.5 <= found.high)
    assert covered["sessions"] / trials == pytest.approx(0.94, abs=0.04)
    assert covered["items"] / trials < 0.75
