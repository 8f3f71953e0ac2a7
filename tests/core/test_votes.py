"""Draws from a first-token distribution, as a sampler would make them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.votes import draw, majority, sampling_distribution


def logs(**shares):
    return {label: math.log(share) if share else -math.inf for label, share in shares.items()}


def test_temperature_one_and_the_whole_mass_is_the_distribution_itself():
    shares = sampling_distribution(logs(A=0.7, B=0.3), temperature=1, top_p=1)

    assert shares == pytest.approx({"A": 0.7, "B": 0.3})


def test_temperature_sharpens_before_the_nucleus_is_cut():
    # 0.8 and 0.2 at temperature 0.5 are 0.64 / 0.68 = 0.941 and 0.059. Cut first, at 0.9, both
    # would stay (0.8 < 0.9); after temperature the first alone holds 0.941.
    shares = sampling_distribution(logs(A=0.8, B=0.2), temperature=0.5, top_p=0.9)

    assert shares == {"A": 1.0, "B": 0.0}


def test_the_studys_settings_by_hand():
    # 0.6 and 0.4 at temperature 0.6: (0.6 / 0.4) ** (1 / 0.6) = 1.9656, so 0.6628; 0.95 keeps both.
    shares = sampling_distribution(logs(A=0.6, B=0.4), temperature=0.6, top_p=0.95)

    assert shares["A"] == pytest.approx(0.66280, abs=1e-5)


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.49, "A"), (0.51, "AB"), (0.79, "AB"), (0.81, "ABC"), (1.0, "ABC")]
)
def test_the_nucleus_is_the_fewest_labels_that_hold_top_p(top_p, kept):
    shares = sampling_distribution(logs(A=0.5, B=0.3, C=0.2), temperature=1, top_p=top_p)

    assert "".join(label for label, share in shares.items() if share) == kept
    assert sum(shares.values()) == pytest.approx(1)


def test_it_equals_the_warpers_of_a_sampler_written_out():
    # transformers' TopPLogitsWarper: sort ascending, drop where the running sum <= 1 - top_p.
    found = logs(A=0.05, B=0.5, C=0.15, D=0.3)
    scores = np.array(list(found.values())) / 0.6
    shares = np.exp(scores) / np.exp(scores).sum()
    ascending = np.argsort(shares)
    dropped = ascending[np.cumsum(shares[ascending]) <= 1 - 0.95]
    shares[dropped] = 0

    ours = sampling_distribution(found, temperature=0.6, top_p=0.95)

    assert list(ours.values()) == pytest.approx(list(shares / shares.sum()))


def test_temperature_zero_is_the_likeliest_and_five_votes_are_one():
    votes = [draw(logs(A=0.4, B=0.6), temperature=0, top_p=1, seed=seed) for seed in range(5)]

    assert votes == ["B"] * 5


def test_a_label_without_probability_is_never_drawn():
    votes = {draw(logs(A=0.0, B=1.0), temperature=2, top_p=1, seed=seed) for seed in range(50)}

    assert votes == {"B"}


def test_a_seed_draws_the_same_label_and_seeds_differ():
    found = logs(A=0.5, B=0.5)

    assert draw(found, temperature=0.6, top_p=0.95, seed=7) == draw(
        found, temperature=0.6, top_p=0.95, seed=7
    )
    assert {draw(found, temperature=0.6, top_p=0.95, seed=seed) for seed in range(20)} == {"A", "B"}


def test_many_draws_have_the_distributions_frequencies():
    found = logs(A=0.6, B=0.4)
    drawn = [draw(found, temperature=0.6, top_p=0.95, seed=seed) for seed in range(4000)]

    # 0.6628 as above; four standard errors of 4,000 draws are 0.030.
    assert drawn.count("A") / 4000 == pytest.approx(0.6628, abs=0.03)


def test_log_probabilities_of_tiny_mass_do_not_vanish():
    shares = sampling_distribution({"A": -800.0, "B": -801.0}, temperature=1, top_p=1)

    assert shares["A"] == pytest.approx(1 / (1 + math.exp(-1)))


@pytest.mark.parametrize("found", [{}, {"A": -math.inf}, {"A": math.nan, "B": -1.0}])
def test_nothing_to_draw_from_is_an_error(found):
    with pytest.raises(ValueError, match="log probability"):
        draw(found, temperature=1, top_p=1, seed=0)


@pytest.mark.parametrize(("temperature", "top_p"), [(-1, 1), (1, 0), (1, 1.1)])
def test_settings_out_of_range_are_an_error(temperature, top_p):
    with pytest.raises(ValueError, match="top_p"):
        draw({"A": 0.0}, temperature=temperature, top_p=top_p, seed=0)


@given(
    st.dictionaries(st.sampled_from("ABCDE"), st.floats(-50, 0), min_size=1),
    st.floats(0, 3),
    st.floats(0.01, 1),
)
def test_the_likeliest_label_is_always_kept_and_shares_sum_to_one(found, temperature, top_p):
    shares = sampling_distribution(found, temperature=temperature, top_p=top_p)

    assert shares[max(found, key=found.__getitem__)] == max(shares.values()) > 0
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("votes", "winner"),
    [
        (["YES", "NO", "YES", "NO", "YES"], "YES"),
        (["NO"] * 5, "NO"),
        (["YES", "NO"], None),
        (["YES", "NO", None], None),
        (["YES", None, None], "YES"),
        ([None, None], None),
        ([], None),
        (["a", "b", "b", "c"], "b"),
        (["a", "a", "b", "b", "c"], None),
    ],
)
def test_the_majority_is_the_value_that_leads_alone(votes, winner):
    assert majority(votes) == winner
