import warnings

import krippendorff
import numpy as np
import pytest

from validation.agreement import group_agreement, mean_pairwise_kappa, pairwise

NAN = np.nan
BINARY = np.array([0.0, 1.0])


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    # A degenerate table is answered with a reason, never with a warning on the way.
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def by_metric(values, kind="nominal", levels=BINARY, **options):
    found = group_agreement(np.array(values, dtype=float), levels, kind, group="g", **options)
    return {estimate.metric: estimate for estimate in found}


def only_pair(first, second, kind="nominal", levels=BINARY):
    (pair,) = pairwise(np.array([first, second], dtype=float).T, "AB", levels, kind)
    return pair


def test_each_figure_says_on_how_many_items_it_rests():
    found = by_metric([[0, 0, 0], [1, 1, 0], [1, 1, NAN], [1, NAN, NAN]])
    assert found["fleiss_kappa"].n == 2
    assert found["krippendorff_alpha_nominal"].n == 3
    assert all(estimate.n_total == 4 for estimate in found.values())


def test_without_an_item_of_all_raters_fleiss_is_undefined_and_its_generalisation_is_not():
    found = by_metric([[0, 0, NAN], [NAN, 1, 1], [1, NAN, 0]])
    assert np.isnan(found["fleiss_kappa"].value)
    assert found["fleiss_kappa"].reason == "no item was rated by all 3 raters"
    assert not np.isnan(found["fleiss_kappa_generalised"].value)


def test_all_missing_is_undefined_with_a_reason():
    found = by_metric(np.full((3, 2), NAN))
    assert {e.reason for e in found.values() if e.metric != "fleiss_kappa"} == {
        "no item has two ratings"
    }
    assert all(np.isnan(e.value) for e in found.values())


def test_a_table_of_no_items_and_no_raters_is_undefined():
    found = by_metric(np.empty((0, 0)))
    assert all(np.isnan(e.value) and e.reason and e.n_total == 0 for e in found.values())
    assert pairwise(np.empty((0, 0)), [], BINARY, "nominal") == []


@pytest.mark.parametrize("value", [0.1, 3.3, 5.0])
def test_free_numbers_that_are_all_the_same_are_undefined(value):
    alpha = by_metric(np.full((7, 3), value), "interval")["krippendorff_alpha_interval"]
    assert np.isnan(alpha.value)
    assert alpha.reason == "every rating is the same, so chance alone agrees fully"


def test_constant_raters_agree_fully_and_beyond_chance_not_at_all():
    found = by_metric([[1, 1], [1, 1]])
    assert found["percent_agreement"].value == 1
    alpha = found["krippendorff_alpha_nominal"]
    assert np.isnan(alpha.value)
    assert alpha.reason == "every rating is the same, so chance alone agrees fully"


def test_undefined_resamples_are_counted_and_do_not_undo_the_interval():
    found = by_metric([[0, 0], [1, 1], [1, 0]], resamples=500)["krippendorff_alpha_nominal"]
    # A resample is all 0/0 or all 1/1 with probability 2/27.
    undefined = int(found.reason.split(" of 500 ")[0])
    assert 15 < undefined < 65
    assert found.low <= found.value <= found.high


def test_one_item_has_a_value_and_no_interval():
    alpha = by_metric([[0, 1], [NAN, 1]])["krippendorff_alpha_nominal"]
    # One pair, never equal; chance agreement of two different ratings is nil as well.
    assert alpha.value == 0
    assert np.isnan(alpha.low)


def test_no_resamples_give_no_intervals():
    alpha = by_metric([[0, 0], [1, 1], [1, 0]], resamples=0)["krippendorff_alpha_nominal"]
    assert np.isnan(alpha.low)
    assert not np.isnan(alpha.value)


def test_the_same_seed_gives_the_same_interval_in_any_order_of_items():
    values = np.random.default_rng(1).integers(0, 2, (40, 3)).astype(float)
    first = by_metric(values, seed=5)["fleiss_kappa"]
    assert by_metric(values[::-1], seed=5)["fleiss_kappa"].low == first.low
    assert by_metric(values, seed=6)["fleiss_kappa"].low != first.low


def test_the_interval_is_that_of_a_loop_over_resampled_items():
    values = np.random.default_rng(2).integers(1, 6, (60, 3)).astype(float)
    levels = np.arange(1.0, 6.0)
    ours = by_metric(values, "ordinal", levels, resamples=4000)["krippendorff_alpha_ordinal"]
    rng = np.random.default_rng(3)
    loop = [
        krippendorff.alpha(
            values[rng.integers(0, 60, 60)].T, level_of_measurement="ordinal", value_domain=levels
        )
        for _ in range(1500)
    ]
    # Two Monte-Carlo quantiles of a spread near 0.08 differ by 0.01 or less.
    np.testing.assert_allclose([ours.low, ours.high], np.quantile(loop, [0.025, 0.975]), atol=0.02)


def test_the_scale_decides_which_alphas_there_are():
    values = [[1.0, 2.0], [4.0, 5.0], [3.0, 3.0]]
    levels = np.arange(1.0, 6.0)
    names = {m for m in by_metric(values, "ordinal", levels) if m.startswith("kripp")}
    assert {name.rsplit("_", 1)[1] for name in names} == {"nominal", "ordinal", "interval"}


def test_an_interval_scale_takes_any_number():
    values = np.array([[1.5, 1.7], [4.2, 4.0], [2.0, 2.0]])
    found = by_metric(values, "interval")
    assert set(found) == {"percent_agreement", "krippendorff_alpha_interval"}
    assert found["percent_agreement"].value == pytest.approx(1 / 3)
    alpha = krippendorff.alpha(values.T, level_of_measurement="interval")
    assert found["krippendorff_alpha_interval"].value == pytest.approx(alpha, abs=1e-12)
    (pair,) = pairwise(values, "AB", (1, 5), "interval")
    assert set(pair.kappas) == {"quadratic"}
    assert pair.kappas["quadratic"].value > 0.9


def test_thousands_of_different_numbers_are_no_table_of_levels():
    values = np.random.default_rng(0).uniform(1, 5, (3000, 1)) + np.zeros((1, 3))
    values = values + np.random.default_rng(1).normal(0, 0.5, values.shape)
    found = by_metric(values, "interval", resamples=50)["krippendorff_alpha_interval"]
    # Variance 16/12 between items and 0.25 within: 1.33 / 1.58 = 0.84.
    assert found.value == pytest.approx(0.84, abs=0.02)
    assert found.low < found.value < found.high


def test_a_pair_shows_its_shared_items():
    pair = only_pair([0, 0, 1, 1, NAN], [0, 1, 1, NAN, 0])
    assert pair.shared == 3
    assert pair.percent.value == pytest.approx(2 / 3)
    # (2/3 - 4/9) / (1 - 4/9)
    assert pair.kappas["plain"].value == pytest.approx(0.4)


def test_a_pair_with_one_shared_item_has_no_kappa():
    kappa = only_pair([0, 1, NAN], [0, NAN, 1]).kappas["plain"]
    assert np.isnan(kappa.value)
    assert kappa.reason == "shared items: 1; kappa needs two or more"


def test_a_pair_without_shared_items_is_still_listed():
    pair = only_pair([0, 1, NAN], [NAN, NAN, 1])
    assert pair.shared == 0
    assert pair.percent.reason == "no shared item"


def test_two_constant_raters_have_no_kappa_and_one_has_a_zero_that_is_explained():
    assert "the same one rating" in only_pair([1, 1, 1], [1, 1, 1]).kappas["plain"].reason
    kappa = only_pair([1, 1, 1], [0, 1, 1]).kappas["plain"]
    assert kappa.value == 0
    assert kappa.reason == "A gave one rating only: kappa is 0 whatever the other rater says"


def test_unordered_labels_have_no_weighted_kappa():
    pair = only_pair([0, 1, 2], [0, 2, 1], levels=np.arange(3.0))
    assert set(pair.kappas) == {"plain"}


def test_the_mean_over_pairs_leaves_undefined_ones_out_and_counts_the_others():
    values = np.array([[1, 1, NAN], [2, 3, NAN], [4, 4, 1]], dtype=float)
    pairs = pairwise(values, "ABC", np.arange(1.0, 6.0), "ordinal")
    mean, defined = mean_pairwise_kappa(pairs, "quadratic")
    assert defined == 1
    assert mean == pairs[0].kappas["quadratic"].value
    assert mean_pairwise_kappa([], "plain")[1] == 0
