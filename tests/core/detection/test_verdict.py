"""Five votes, the path of each, and what happens where letters cannot be used."""

import math
from dataclasses import replace

import pytest

from core.detection.questions import WORD_FORMS
from core.detection.verdict import MASS_FLOOR, judge, needs_words
from core.protocol import Request, Response
from core.seeds import seed_of
from core.tasks import PlannedRequest


def entry(purpose="answer", vote=0, item="d1"):
    request = Request(f"{item} {purpose} {vote}", None, (), None, seed=seed_of(0, item, purpose))
    return PlannedRequest(request, item, "TO", purpose, vote)


def shares(of, yes, mass=1.0, **more):
    logs = {"YES": math.log(yes), "NO": math.log(1 - yes)}
    return Response(of.request.id, "ok", "A", choice_logprobs=logs, choice_mass=mass, **more)


def judged(*answers, swapped=False):
    """Answers are (purpose, response maker) pairs."""
    entries = [entry(purpose, vote) for purpose, vote, _ in answers]
    found = {}
    for each, (_, _, make) in zip(entries, answers, strict=True):
        response = make(each)
        if response is not None:
            found[each.request.id] = response
    return judge(entries, found, swapped=swapped), needs_words(entries, found)


def letters(yes, mass=1.0):
    return ("answer", 0, lambda of: shares(of, yes, mass))


def said(text, purpose="answer", vote=0, **more):
    return (purpose, vote, lambda of: Response(of.request.id, "ok", text, **more))


def test_five_votes_are_drawn_from_one_exact_distribution():
    found, more = judged(letters(0.97))

    assert found.prediction == "YES"
    assert (len(found.votes), found.paths) == (5, ("letters",) * 5)
    assert found.expected == pytest.approx(0.97)
    assert not more


def test_votes_do_not_collapse_into_one():
    # 0.5: all five alike in one clip of sixteen; in sixty clips four or fewer do so by chance.
    mixed = 0
    for number in range(60):
        one = entry(item=f"d{number}")
        found = judge([one], {one.request.id: shares(one, 0.5)}, swapped=False)
        mixed += len(set(found.votes)) == 2
    assert mixed > 45


def test_a_vote_is_its_own_draw_and_the_same_on_every_reading():
    first, _ = judged(letters(0.55))
    again, _ = judged(letters(0.55))
    one = replace(entry(), request=replace(entry().request, seed=seed_of(1, "d1", "answer")))
    drawn = {
        judge(
            [replace(one, request=replace(one.request, seed=seed))],
            {one.request.id: shares(one, 0.55)},
            swapped=False,
        ).votes
        for seed in range(20)
    }

    assert first.votes == again.votes
    assert len(drawn) > 5


def test_many_votes_have_the_frequency_of_the_tempered_distribution():
    # 0.6 at temperature 0.6 is 0.6628; four standard errors of 2,000 votes are 0.042.
    votes = []
    for number in range(400):
        one = entry(item=f"d{number}")
        votes += judge([one], {one.request.id: shares(one, 0.6)}, swapped=False).votes

    assert votes.count("YES") / len(votes) == pytest.approx(0.6628, abs=0.042)


@pytest.mark.parametrize(("mass", "asks"), [(MASS_FLOOR + 0.01, False), (MASS_FLOOR - 0.01, True)])
def test_under_the_floor_of_mass_the_words_are_asked(mass, asks):
    assert judged(letters(0.9, mass))[1] == asks


def test_without_probabilities_the_words_are_asked():
    assert judged(said("A"))[1]


def test_the_words_decide_by_the_larger_probability_without_a_draw():
    found, more = judged(letters(0.9, 0.01), ("words", 0, lambda of: shares(of, 0.51, 0.8)))

    assert (found.prediction, set(found.votes), set(found.paths)) == ("YES", {"YES"}, {"words"})
    assert found.expected == pytest.approx(0.51)
    assert not more
    tie, _ = judged(letters(0.9, 0.01), ("words", 0, lambda of: shares(of, 0.5)))
    assert tie.prediction == "NO"


def test_words_without_probabilities_are_read_as_text():
    found, _ = judged(said("A"), said("No.", "words"))

    assert (found.prediction, set(found.paths)) == ("NO", {"text"})
    assert math.isnan(found.expected)


def test_no_mass_on_letters_nor_words_is_no_answer():
    found, _ = judged(letters(0.5, 0.0), ("words", 0, lambda of: shares(of, 0.5, 0.0)))

    assert (found.prediction, found.status, found.votes) == (None, "unparsed", ())


@pytest.mark.parametrize("status", ["model_error", "audio_error", "timeout", "refused"])
def test_a_failure_is_no_vote_and_asks_nothing_more(status):
    failed = ("answer", 0, lambda of: Response(of.request.id, status, "A", reason="why"))
    found, more = judged(failed)

    assert (found.prediction, found.status, found.reason, more) == (None, status, "why", False)


def test_a_clip_not_heard_to_its_end_is_no_vote():
    def cut(of):
        return replace(
            shares(of, 0.9), status="truncated", audio_seconds=60.0, audio_seconds_used=30.0
        )

    assert judged(("answer", 0, cut))[0].status == "truncated"


def test_in_both_orders_the_mean_decides_and_the_difference_is_the_position_bias():
    found, _ = judged(letters(0.9), ("swapped", 0, lambda of: shares(of, 0.3)))

    assert found.expected == pytest.approx(0.6)
    assert found.position_bias == pytest.approx(0.6)


def test_a_chain_of_thought_votes_by_its_last_line():
    texts = [
        "He asks, she answers. Answer: B is not it.\nAnswer: A",
        "Answer: A",
        "Answer: B",
        "Hm.",
        "A\nAnswer: A",
    ]
    found, _ = judged(*[said(text, "vote", n) for n, text in enumerate(texts)])

    assert found.votes == ("YES", "YES", "NO", None, "YES")
    assert (found.prediction, found.expected) == ("YES", 0.75)


def test_swapped_letters_stand_for_the_other_answer():
    found, _ = judged(*[said("Answer: A", "vote", n) for n in range(5)], swapped=True)

    assert found.prediction == "NO"


def test_as_many_votes_for_yes_as_for_no_are_no_answer():
    texts = ["Answer: A", "Answer: B", "?", "?", "?"]
    found, _ = judged(*[said(text, "vote", n) for n, text in enumerate(texts)])

    assert (found.prediction, found.status) == (None, "unparsed")
    assert found.reason == "as many votes for YES as for NO: 1"


def test_the_verbalizers_have_both_spacings_and_three_cases():
    assert set(WORD_FORMS["YES"]) == {"YES", " YES", "Yes", " Yes", "yes", " yes"}
