"""The signed-rank test against enumeration and scipy, zero handling always spelled out."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.stats.permutation import sign_flip, signed_ranks
from core.stats.wilcoxon import (
    DIFFERENCES,
    hodges_lehmann,
    rank_biserial,
    signed_rank,
    signed_rank_of_counts,
)

few = st.lists(st.integers(-4, 4), min_size=1, max_size=10).map(np.array)
many = st.lists(st.integers(-4, 4), min_size=60, max_size=200).map(np.array)
zeros_handled = st.sampled_from(["pratt", "wilcox"])


def enumerated_p(differences, zeros):
    kept = differences if zeros == "pratt" else differences[differences != 0]
    ranks = stats.rankdata(np.abs(kept))[kept != 0]
    signs = np.array(list(itertools.product([-1, 1], repeat=len(ranks))))
    observed = abs((ranks * np.sign(kept[kept != 0])).sum())
    return np.mean(np.abs(signs @ ranks) >= observed - 1e-9) if len(ranks) else 1.0


@given(few, zeros_handled)
def test_the_exact_p_is_that_of_enumerating_every_sign(differences, zeros):
    found = signed_rank(differences, zeros=zeros, resamples=0)
    assert found.method == "exact"
    assert found.p == pytest.approx(enumerated_p(differences, zeros), abs=1e-14)


@settings(max_examples=30)
@given(many, zeros_handled)
def test_the_normal_p_is_scipys(differences, zeros):
    if not differences.any():
        return
    theirs = stats.wilcoxon(differences, zero_method=zeros, method="asymptotic", correction=False)
    ours = signed_rank(differences, zeros=zeros, method="normal", resamples=0)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert ours.statistic == pytest.approx(theirs.statistic, abs=1e-9)


@pytest.mark.parametrize("n", [10, 25, 50])
def test_without_ties_the_exact_p_is_scipys(n):
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    theirs = stats.wilcoxon(differences, zero_method="wilcox", method="exact")
    assert signed_rank(differences).p == pytest.approx(theirs.pvalue, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=30).map(np.array))
def test_as_scipy_chooses_is_what_scipy_gives(differences):
    if not differences.any():
        return
    theirs = stats.wilcoxon(differences)
    ours = signed_rank(differences, zeros="wilcox", method="scipy", resamples=0)
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "method"), [(10, "exact"), (50, "exact"), (51, "normal, tie-corrected")]
)
def test_as_scipy_chooses_without_ties_it_is_exact_up_to_fifty(n, method):
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    ours = signed_rank(differences, zeros="wilcox", method="scipy", resamples=0)
    assert str(ours.method).startswith(method)
    assert ours.p == pytest.approx(stats.wilcoxon(differences).pvalue, abs=1e-9)


@given(few)
def test_the_shift_is_the_median_of_all_pairwise_means(differences):
    pairs = [(a + b) / 2 for i, a in enumerate(differences) for b in differences[i:]]
    assert signed_rank(differences, resamples=0).shift == np.median(pairs)


@settings(max_examples=30)
@given(many, st.randoms(use_true_random=False))
def test_the_order_of_items_changes_nothing_and_swapping_the_pair_turns_the_sign(
    differences, random
):
    mixed = list(differences)
    random.shuffle(mixed)
    one = signed_rank(differences, resamples=0)
    two, other_way = signed_rank(mixed, resamples=0), signed_rank(-differences, resamples=0)
    assert (one.p, one.statistic, one.shift) == (two.p, two.statistic, two.shift)
    assert (one.p, one.shift) == (other_way.p, -other_way.shift)
    np.testing.assert_equal(one.r, -other_way.r)


def test_a_batch_of_counts_gives_what_its_pairs_give_alone():
    drawing = np.random.default_rng(0)
    samples = [
        drawing.choice(DIFFERENCES, n, p=[0.01, 0.02, 0.05, 0.1, 0.6, 0.12, 0.06, 0.03, 0.01])
        for n in (30, 90, 300)
    ]
    batch = signed_rank_of_counts(np.stack([np.bincount(d + 4, minlength=9) for d in samples]))
    for place, differences in enumerate(samples):
        alone = signed_rank_of_counts(np.bincount(differences + 4, minlength=9))
        for name in ("n", "n_nonzero", "statistic", "p", "r", "r_low", "r_high", "shift", "method"):
            assert getattr(batch, name)[place] == getattr(alone, name)
        assert signed_rank(differences).p == batch.p[place]


def test_dropping_zeros_lets_lower_values_look_higher_and_ranking_them_does_not():
    # Pratt (1959): thirteen values, one of them zero; then all of them half a unit lower
    values = np.array([0, 2, 3, 4, 6, 7, 8, 9, 11, 14, 15, 17, -18])
    assert signed_rank(values, zeros="wilcox").p / 2 == pytest.approx(0.0171, abs=5e-5)
    for zeros, sensible in (("wilcox", False), ("pratt", True)):
        higher, lower = (signed_rank(x, zeros=zeros).p for x in (values, values - 0.5))
        assert (higher < lower) == sensible


def test_balanced_differences_stay_balanced_however_many_zeros_there_are():
    # a scipy release gave p = 0.00007 here: its mean under the null forgot the zeros
    found = signed_rank([1] * 30 + [0] * 200 + [-1] * 30)
    assert found.p == 1
    assert found.r == 0


def test_all_differences_zero_is_no_evidence_and_no_effect_size():
    found = signed_rank(np.zeros(40))
    assert found.p == 1
    assert found.n_nonzero == 0
    assert np.isnan(found.r)
    assert found.shift == 0


def test_no_items_have_no_p():
    found = signed_rank([])
    assert np.isnan(found.p)
    assert np.isnan(found.shift)


def test_one_item_cannot_be_significant():
    assert signed_rank([3]).p == 1


def test_round_off_does_not_split_ties_or_hide_zeros():
    # 0.3 - 0.1 and 0.2 differ in the last bit, and so do 0.1 + 0.2 - 0.3 and 0
    noisy = np.array([0.3 - 0.1, 0.2, -0.2, 0.1 + 0.2 - 0.3, 0.5, 0.7])
    clean = np.array([0.2, 0.2, -0.2, 0, 0.5, 0.7])
    one, two = signed_rank(noisy), signed_rank(clean)
    assert one.n_nonzero == two.n_nonzero == 5
    assert (one.p, one.statistic) == (two.p, two.statistic)


def test_nan_is_refused():
    with pytest.raises(ValueError, match="1 of 2 are NaN"):
        signed_rank([1, np.nan])


def test_rank_biserial_is_the_share_of_positive_less_that_of_negative_ranks():
    # ranks of 1 1 2 with one zero ranked below: 2.5 2.5 4; positive 6.5 of 9
    assert rank_biserial(np.bincount(np.array([0, 1, -1, 2]) + 4, minlength=9)) == pytest.approx(
        4 / 9
    )


def test_the_interval_of_r_holds_it_and_counts_as_the_same_draws_each_time():
    differences = np.random.default_rng(1).choice([-1, 0, 1], 200, p=[0.15, 0.6, 0.25])
    one, two = signed_rank(differences), signed_rank(differences)
    assert one.r_low < one.r < one.r_high
    assert (one.r_low, one.r_high) == (two.r_low, two.r_high)


def test_the_signed_rank_test_agrees_with_its_sign_flips_at_the_studys_size():
    differences = np.random.default_rng(8).choice(
        [-2, -1, 0, 1, 2], 1802, p=[0.05, 0.15, 0.55, 0.18, 0.07]
    )
    asymptotic = signed_rank(differences, resamples=0).p
    flipped = sign_flip(signed_ranks(differences)).p
    assert asymptotic == pytest.approx(flipped, rel=0.05)


def test_ten_million_items_have_a_shift():
    assert hodges_lehmann(np.array([0, 0, 0, 3, 6, 1, 0, 0, 0]) * 10**6) == 0


@pytest.mark.slow
@pytest.mark.parametrize("zeros", ["pratt", "wilcox"])
@pytest.mark.parametrize("n", [40, 194, 1802])
def test_the_level_holds_on_heavily_tied_data(zeros, n):
    symmetric = [0.01, 0.02, 0.05, 0.12, 0.6, 0.12, 0.05, 0.02, 0.01]
    counts = np.random.default_rng(n).multinomial(n, symmetric, 4000)
    rejected = np.mean(signed_rank_of_counts(counts, zeros=zeros, resamples=0).p <= 0.05)
    # three Monte-Carlo errors above the level; below it the exact test's steps may lie
    assert 0.025 < rejected < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
