"""Quotes: tidied as the study does, and looked up in what was said."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.detection.quote import (
    LEAST_RATIO,
    given_quote,
    is_empty,
    tidied,
    token_sort_ratio,
    where_said,
)
from core.protocol import Response

TRANSCRIPT = (
    "Person1: Don't you walk away from me!\n"
    "Person2: \n"
    "Person2: I'm only going home, Fred.\n"
    "Person1: After all I have done for you, this is how you treat me."
)


def said(text):
    return Response("q", "ok", text)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("  “Don’t  you walk\naway”  ", "Don't you walk away"),
        ('"You owe me."', "You owe me."),
        ("He said 'no' twice", "He said 'no' twice"),
        (
            "one two three four five six seven eight nine ten eleven twelve thirteen",
            "one two three four five six seven eight nine ten eleven twelve",
        ),
        ("   ", ""),
        ('""', ""),
    ],
)
def test_whitespace_and_quotation_marks_are_tidied_and_no_more_than_twelve_words_kept(text, quote):
    assert tidied(text) == quote


@pytest.mark.parametrize(
    ("quote", "match", "turn", "speaker"),
    [
        ("don't you WALK away", "exact", 1, "Person1"),
        ("Person1: Don’t you walk away from me", "exact", 1, "Person1"),
        # over the end of a turn, the empty one between passed over
        ("home, Fred. After all", "exact", 3, "Person2"),
        # one word left out, and one changed
        ("After all I have done for you, this is how you treat", "exact", 4, "Person1"),
        ("After all I did for you, this is how you treat me", "fuzzy", 4, "Person1"),
        ("this is how you treat me, after all I have done for you", "fuzzy", 4, "Person1"),
        ("You are worthless and everybody knows it", "absent", None, None),
        ("...", "absent", None, None),
    ],
)
def test_a_quote_is_found_in_the_turn_it_comes_from_or_called_absent(quote, match, turn, speaker):
    found = where_said(quote, TRANSCRIPT)

    assert (found.match, found.turn, found.speaker) == (match, turn, speaker)
    assert (found.ratio == 1.0) if match == "exact" else (found.ratio < 1.0 or match == "fuzzy")


def test_words_scattered_over_the_dialogue_are_no_quote():
    assert where_said("Fred, walk home after me, treat you", TRANSCRIPT).match == "absent"


def test_a_word_inside_another_is_not_that_word():
    assert where_said("for", "Person1: Before that, forward.").match == "absent"


def test_an_empty_quote_is_asked_for_once_more_and_then_has_both_reasons():
    assert is_empty(said(" "))
    assert given_quote(said(""), said("You owe me"), retried=True).text == "You owe me"
    still = given_quote(said(""), said("..."), retried=True)
    assert (still.text, still.retried) == ("", True)
    assert still.reason == "the answer is empty; asked again: the answer is empty"


def test_a_failed_request_is_not_an_empty_quote():
    failed = Response("q", "model_error", reason="out of memory")

    assert not is_empty(failed)
    assert not is_empty(None)
    assert given_quote(failed, None, retried=False).reason == "out of memory"


@given(
    st.lists(
        st.sampled_from(["you", "owe", "me", "money", "ma'am", "élan"]), min_size=1, max_size=8
    )
)
def test_a_fuzzy_quote_is_the_best_stretch_that_holds_half_of_its_words(sought):
    words = [
        "i",
        "owe",
        "you",
        "money",
        "and",
        "you",
        "know",
        "that",
        "you",
        "owe",
        "me",
        "élan",
        "ma'am",
    ]
    lengths = {max(1, min(len(words), len(sought) + by)) for by in (-1, 0, 1)}
    stretches = [words[at : at + n] for n in lengths for at in range(len(words) - n + 1)]
    eligible = [s for s in stretches if 2 * (Counter(s) & Counter(sought)).total() >= len(sought)]
    best = max((token_sort_ratio(stretch, sought) for stretch in eligible), default=0.0)
    found = where_said(" ".join(sought), "Person1: " + " ".join(words))

    assert (found.match == "absent") == (best < LEAST_RATIO)
    if found.match == "fuzzy":
        assert found.ratio == best
