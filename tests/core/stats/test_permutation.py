"""Sign-flip tests, over items and over sessions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from core.stats.permutation import sign_flip, signed_ranks, subset_sums

differences_of = st.lists(st.integers(-4, 4), min_size=1, max_size=10).map(np.array)


def enumerated_p(sums):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(sums))))
    return np.mean(np.abs(signs @ sums) >= abs(sums.sum()))


@given(differences_of)
def test_the_exact_p_is_that_of_enumerating_every_sign(differences):
    assert sign_flip(differences).p == pytest.approx(enumerated_p(differences), abs=1e-14)


@given(differences_of, st.lists(st.sampled_from("abcd"), min_size=10, max_size=10))
def test_sessions_are_flipped_as_a_whole(differences, names):
    sessions = np.array(names[: len(differences)])
    sums = np.array([differences[sessions == name].sum() for name in sorted(set(sessions))])
    found = sign_flip(differences, sessions=sessions)
    assert found.p == pytest.approx(enumerated_p(sums), abs=1e-14)
    assert found.statistic == pytest.approx(differences.mean())
    assert found.units == len(sums)


def test_one_lucky_session_is_no_evidence():
    differences = np.repeat([1, 0, 0, 0], 20)
    assert sign_flip(differences).p < 1e-5
    assert sign_flip(differences, sessions=np.repeat(list("abcd"), 20)).p == 1


def test_right_and_wrong_differences_give_the_sign_test():
    assert sign_flip([1] * 9 + [-1] * 2 + [0] * 50).p == pytest.approx(2 * binom.cdf(2, 11, 0.5))


def test_the_studys_size_is_still_exact():
    differences = np.random.default_rng(0).choice(np.arange(-4, 5), 1802)
    assert sign_flip(differences).method == "exact"


def test_random_flips_agree_with_the_exact_p_and_are_never_zero():
    differences = np.random.default_rng(3).choice([-1, 0, 1, 2], 60)
    # a scale that is no whole number is flipped at random
    exact, drawn = sign_flip(differences), sign_flip(differences * 0.37, flips=20_000)
    assert drawn.method == "monte carlo, 20000 flips"
    assert drawn.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p / 20_000))
    assert sign_flip(np.full(60, 0.37), flips=100).p == pytest.approx(1 / 101)


def test_random_flips_are_reproducible_and_count_round_off_ties():
    differences = [0.1, 0.2, -0.3 + 1e-17, 0.1 + 0.2]
    assert sign_flip(differences, seed=5) == sign_flip(differences, seed=5)
    # sums 0.1 + 0.2 - 0.3 + 0.3 = 0.3 and its equals: 10 of 16 patterns are at least as far out
    values = np.array([1, 2, -3, 3])
    assert sign_flip(differences, flips=40_000).p == pytest.approx(enumerated_p(values), abs=0.01)


def test_all_differences_zero_and_no_items_say_so():
    nothing = sign_flip(np.zeros(5))
    assert (nothing.p, nothing.reason) == (1, "all differences are zero")
    assert sign_flip([]).reason == "there are no items"


def test_nan_is_refused():
    with pytest.raises(ValueError, match="1 of 3 are NaN"):
        sign_flip([1, np.nan, 0])


def test_subset_sums_are_those_of_every_subset():
    values, sizes = np.array([2, 5, 1000]), np.array([2, 1, 2])
    sums, probability = subset_sums(values, sizes)
    every = [sum(kept) for kept in itertools.product(*[(0, v) for v in np.repeat(values, sizes)])]
    expected = {total: every.count(total) / 32 for total in set(every)}
    assert dict(zip(sums.tolist(), probability.tolist(), strict=True)) == pytest.approx(expected)


def test_signed_ranks_are_twice_the_average_ranks():
    assert signed_ranks([0, 1, -1, 2], zeros="pratt").tolist() == [0, 5, -5, 8]
    assert signed_ranks([0, 1, -1, 2], zeros="wilcox").tolist() == [0, 3, -3, 6]


@pytest.mark.slow
def test_the_level_holds_over_sessions_where_the_test_over_items_breaks_it():
    drawing = np.random.default_rng(6)
    sessions = np.repeat(np.arange(30), 12)
    rejected = {"items": 0, "sessions": 0}
    trials = 500
    for _ in range(trials):
        # no difference on average, but whole sessions lean to one side
        lean = drawing.choice([0.1, 0.6], 30)[sessions]
        size = (drawing.random(360) < 0.7).astype(int)
        differences = size * np.where(drawing.random(360) < lean + 0.15, 1, -1)
        rejected["items"] += sign_flip(differences).p <= 0.05
        rejected["sessions"] += sign_flip(differences, sessions=sessions).p <= 0.05
    assert rejected["sessions"] / trials < 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)
    assert rejected["items"] / trials > 0.1
