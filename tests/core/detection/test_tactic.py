"""The study's rules for the tactic, each on a case worked out by hand."""

import math

import pytest

from core.detection.questions import SERVANT_OR_VICTIM, tactic_forms
from core.detection.tactic import decided, name_tactic, orders, vote_of
from core.metrics.tactics import TACTICS
from core.protocol import Response

ACCUSATION, DENIAL, NONE = "Accusation", "Denial", "none"


def answer(mass=1.0, text="", **shares):
    logs = {label.replace("_", " "): math.log(p) for label, p in shares.items()} or None
    return Response("q", "ok", text, choice_logprobs=logs, choice_mass=mass if logs else None)


@pytest.mark.parametrize(
    ("order", "shares", "vote"),
    [
        # A clear lead: the top option.
        ([ACCUSATION, DENIAL, NONE], {ACCUSATION: 0.5, DENIAL: 0.3, NONE: 0.2}, ACCUSATION),
        # none on top, however far ahead: the second best.
        ([NONE, DENIAL, ACCUSATION], {NONE: 0.9, DENIAL: 0.08, ACCUSATION: 0.02}, DENIAL),
        # A lead of 0.02 is under 0.03: the second best, also where that is none.
        ([ACCUSATION, DENIAL, NONE], {ACCUSATION: 0.41, DENIAL: 0.39, NONE: 0.2}, DENIAL),
        ([ACCUSATION, NONE, DENIAL], {ACCUSATION: 0.41, NONE: 0.39, DENIAL: 0.2}, NONE),
        # A lead of 0.04 is not.
        ([ACCUSATION, NONE, DENIAL], {ACCUSATION: 0.42, NONE: 0.38, DENIAL: 0.2}, ACCUSATION),
    ],
)
def test_a_pass_takes_the_second_best_where_none_leads_or_the_margin_is_small(order, shares, vote):
    assert vote_of(order, shares) == vote


@pytest.mark.parametrize(
    ("votes", "shares", "tactic"),
    [
        ([DENIAL] * 3 + [NONE] * 2, {DENIAL: 0.1, NONE: 0.9}, DENIAL),
        # Tied with none: 0.45 - 0.42 = 0.03 is enough, 0.44 - 0.43 = 0.01 is not.
        (
            [DENIAL] * 2 + [NONE] * 2 + [ACCUSATION],
            {ACCUSATION: 0.13, DENIAL: 0.45, NONE: 0.42},
            DENIAL,
        ),
        (
            [DENIAL] * 2 + [NONE] * 2 + [ACCUSATION],
            {ACCUSATION: 0.13, DENIAL: 0.44, NONE: 0.43},
            NONE,
        ),
        # Tied without none: the likelier, though none is likelier still.
        (
            [DENIAL] * 2 + [ACCUSATION] * 2 + [NONE],
            {ACCUSATION: 0.2, DENIAL: 0.3, NONE: 0.5},
            DENIAL,
        ),
        # Equally likely: the earlier of the list.
        (
            [DENIAL] * 2 + [ACCUSATION] * 2 + [NONE],
            {ACCUSATION: 0.25, DENIAL: 0.25, NONE: 0.5},
            ACCUSATION,
        ),
    ],
)
def test_the_majority_names_the_tactic_and_a_tie_with_none_needs_a_lead(votes, shares, tactic):
    assert decided(votes, [shares] * 5) == tactic


def test_the_mean_over_passes_decides_a_tie_not_any_one_pass():
    # Denial's mean is (0.5 + 0.3) / 2 = 0.40 and none's (0.3 + 0.44) / 2 = 0.37: ahead by 0.03.
    passes = [{DENIAL: 0.5, NONE: 0.3}, {DENIAL: 0.3, NONE: 0.44}]

    assert decided([DENIAL, NONE], passes) == DENIAL


def test_passes_differ_by_their_seed_and_agree_at_temperature_zero():
    shares = {ACCUSATION: 0.4, DENIAL: 0.35, NONE: 0.25}

    drawn = {tuple(order) for order in orders(shares, seeds=range(40))}
    cold = {tuple(order) for order in orders(shares, seeds=range(40), temperature=0)}

    assert len(drawn) > 1
    assert cold == {(ACCUSATION, DENIAL, NONE)}


def test_the_top_of_a_pass_is_drawn_as_a_sampler_draws_it():
    # (0.6 / 0.4) ** (1 / 0.6) = 1.9656, so 0.6628; four standard errors of 4,000 are 0.030.
    tops = [order[0] for order in orders({ACCUSATION: 0.6, DENIAL: 0.4}, seeds=range(4000))]

    assert tops.count(ACCUSATION) / 4000 == pytest.approx(0.6628, abs=0.03)


def test_a_certain_model_names_its_tactic_with_five_votes():
    found = name_tactic(
        answer(Accusation=0.98, Denial=0.01, none=0.01), [ACCUSATION, DENIAL, NONE], seed=1
    )

    assert (found.named, found.votes, found.path) == (
        ACCUSATION,
        (ACCUSATION,) * 5,
        "probabilities",
    )


def test_without_any_probability_nothing_is_named():
    found = name_tactic(answer(mass=0.0, Accusation=0.5, Denial=0.5), [ACCUSATION, DENIAL], seed=1)

    assert (found.named, found.reason) == (None, "no probability on any tactic")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("**Denial**.", DENIAL),
        ("It is denial, none of the others.", DENIAL),
        ("none", NONE),
        ("Accusation or Denial", None),
        ("I cannot tell", None),
    ],
)
def test_an_endpoint_without_probabilities_is_read_by_its_text(text, named):
    found = name_tactic(answer(text=text), [ACCUSATION, DENIAL, NONE], seed=1)

    assert found.named == named
    assert (found.reason is None) == (named is not None)


def test_by_the_first_token_two_tactics_are_one_and_by_the_whole_label_twelve_are_twelve():
    by_word, whole = tactic_forms("first_token"), tactic_forms("whole_label")

    assert list(whole) == [*TACTICS, NONE]
    assert len(by_word) == 11
    assert by_word[SERVANT_OR_VICTIM] == ("Playing", " Playing")
    assert whole["Playing Victim Role"] == ("Playing Victim Role", " Playing Victim Role")
