"""What a model writes when asked to choose, and the choice it states, if it states one."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.parsing import letter, verdict, yes_no

LETTERS = {"A": "YES", "B": "NO"}

REFUSED = [
    "I can't help with that.",
    "As an AI, I cannot judge people.",
    "I'm sorry, but I cannot listen to audio.",
    "I am unable to determine A or B.",
    "Please provide the audio.",
    "No audio was provided.",
    "Sorry, I can't answer yes or no.",
]


def cases(name):
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


@pytest.mark.parametrize(("expected", "text"), cases("letters.tsv"))
def test_a_letter_is_read_where_it_is_stated_and_never_where_it_is_an_article(expected, text):
    parsed = letter(json.loads(text))

    assert (parsed.value or parsed.status) == expected
    assert (parsed.reason is None) == (parsed.status == "ok")


@pytest.mark.parametrize(("expected", "text"), cases("yes_no.tsv"))
def test_a_yes_or_no_is_read_where_it_answers_and_never_where_it_denies_something_else(
    expected, text
):
    parsed = yes_no(json.loads(text))

    assert (parsed.value or parsed.status) == expected
    assert (parsed.reason is None) == (parsed.status == "ok")


@pytest.mark.parametrize("read", [letter, yes_no, lambda text: verdict(text, LETTERS)])
@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_is_told_from_a_bad_answer(text, read):
    assert read(text).status == "refused"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A", "YES"),
        ("B. No", "NO"),
        ("Yes", "YES"),
        ("A Yes", "YES"),
        ("No, so B.", "NO"),
        ("The answer is B (no).", "NO"),
    ],
)
def test_a_verdict_takes_a_letter_or_a_word(text, value):
    assert verdict(text, LETTERS).value == value


@pytest.mark.parametrize("text", ["A. No", "B (yes)", "Yes, so B.", "A. Yes\nB. No", "No. A"])
def test_a_letter_and_a_word_that_disagree_are_no_verdict(text):
    assert verdict(text, LETTERS).status == "unparsed"


def test_swapped_options_are_read_by_what_they_stand_for():
    assert verdict("A. No", {"A": "NO", "B": "YES"}).value == "NO"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("A", "truncated"),
        ("The answer is A", "truncated"),
        ("B. The", "ok"),
        ("B\n", "ok"),
        ("", "truncated"),
    ],
)
def test_a_letter_at_the_end_of_a_cut_text_may_have_been_an_article(text, status):
    assert letter(text, cut=True).status == status


PIECES = st.sampled_from(
    [
        "A",
        "B",
        "a",
        "yes",
        "no",
        "No",
        " ",
        "\n",
        ".",
        ",",
        "/",
        "or",
        "answer",
        "is",
        "not",
        "(",
        ")",
        "<think>",
        "</think>",
        "manipulative",
        "\x1a",
        "Ｂ",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=20).map("".join),
    st.lists(PIECES, max_size=20).map(" ".join),
)


@given(TEXTS, st.booleans())
@settings(max_examples=1500, deadline=None)
def test_no_text_makes_it_raise_or_answer_something_else(text, cut):
    for parsed, values in (
        (letter(text, cut=cut), ("A", "B")),
        (yes_no(text, cut=cut), ("YES", "NO")),
        (verdict(text, LETTERS, cut=cut), ("YES", "NO")),
    ):
        assert (parsed.value in values) == (parsed.status == "ok")
        assert (parsed.value is None) == bool(parsed.reason)


@pytest.mark.parametrize(
    "unit", ["A ", "A", "A or ", "yes no ", "(a)", "answer ", "A. yes B. no ", "no,", "A\n"]
)
@pytest.mark.parametrize("length", [9_990, 1_000_000])
def test_a_long_text_takes_no_long_time(unit, length):
    text = unit * (length // len(unit))
    # Computing time, which a busy machine does not lengthen.
    start = time.process_time()

    verdict(text, LETTERS)

    assert time.process_time() - start < 1
