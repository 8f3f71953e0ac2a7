"""What a model writes, and the level it states, if it states one."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.parsing import rating, reversed_rating

CASES = [
    line.split("\t")
    for line in (Path(__file__).parent / "ratings.tsv").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize(("expected", "text"), CASES)
def test_an_answer_is_its_stated_level_or_a_status_with_a_reason(expected, text):
    parsed = rating(json.loads(text))

    assert str(parsed.value or parsed.status) == expected
    assert (parsed.reason is None) == (parsed.status == "ok")


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 3000])
def test_numbers_and_brackets_beyond_reason_are_unparsed(text):
    assert rating(text).status == "unparsed"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("4\n", 4),
        ("4\n\nThe patient's voice", 4),
        ("4. The patient", 4),
        ("I'd rate this 4 because", 4),
        ('{"rating": 4}', 4),
    ],
)
def test_a_cut_text_counts_where_it_went_on_behind_its_number(text, level):
    assert rating(text, cut=True).value == level


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "I'd rate this 4",
        "3.",
        "On a scale of 1",
        "<think>She sounds",
        "1 = Calm, at ease, with no emotional",
        "The patient",
        "",
    ],
)
def test_a_cut_text_is_truncated_where_its_number_might_have_gone_on(text):
    parsed = rating(text, cut=True)

    assert (parsed.value, parsed.status) == (None, "truncated")


def test_a_cut_error_message_is_no_answer_however_it_goes_on():
    assert rating("Error 429: too many", cut=True).status == "unparsed"


def test_a_cut_refusal_is_a_refusal():
    assert rating("I'm sorry, but I can't rate the", cut=True).status == "refused"


PIECES = st.sampled_from(
    [
        "4",
        "3",
        "five",
        " ",
        "\n",
        ".",
        ",",
        "-",
        "/5",
        "rating",
        "a",
        "is",
        "not",
        "<think>",
        "</think>",
        "1-5",
        "{",
        "}",
        '"',
        ":",
        "I",
        "can't",
        "out of",
        "½",
        "４",
        "\x1a",
        "٤",
        "1 = Calm",
        "one",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=20).map("".join),
    st.lists(PIECES, max_size=20).map(" ".join),
)


@given(TEXTS, st.booleans())
@settings(max_examples=1500, deadline=None)
def test_no_text_makes_it_raise_or_leave_the_scale(text, cut):
    parsed = rating(text, cut=cut)

    assert parsed == rating(text, cut=cut)
    assert (parsed.value in (1, 2, 3, 4, 5)) == (parsed.status == "ok")
    assert (parsed.value is None) == bool(parsed.reason)


@given(st.text(st.characters(exclude_categories=["N"]), max_size=200))
@settings(max_examples=500, deadline=None)
def test_a_text_without_a_number_has_no_value(text):
    number_words = ("one", "two", "three", "four", "five")

    assert rating(text).value is None or any(word in text.lower() for word in number_words)


@given(st.integers(), st.sampled_from(["{}", "Rating: {}", "I'd say {}.", '{{"rating": {}}}']))
def test_an_integer_is_its_level_or_nothing(number, sentence):
    assert rating(sentence.format(number)).value == (number if number in (1, 2, 3, 4, 5) else None)


@pytest.mark.parametrize(
    "unit",
    [
        "4 ",
        "a",
        "rate ",
        "<think>",
        "</think>",
        "<think></think>",
        "1-5 ",
        "(",
        "[",
        '{"a":',
        "not ",
        ".",
        "\n",
        "4/5 ",
        "1 (",
        "rating: 4\n",
        "´",
        "\u0301\u0323",
        "sorry ",
        "I ",
        "<|",
        "1-",
        "****",
    ],
)
@pytest.mark.parametrize("length", [9_990, 1_000_000])
def test_a_long_text_takes_no_long_time(unit, length):
    text = unit * (length // len(unit))
    # Computing time, which a busy machine does not lengthen.
    start = time.process_time()

    rating(text)

    assert time.process_time() - start < 1


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5), st.sampled_from(["{}", "{}/5", "My rating is {}.", '{{"rating": {}}}']))
def test_on_a_scale_turned_round_a_stated_number_is_its_mirror(level, said):
    text = said.format(level)

    assert reversed_rating(text).value == 6 - rating(text).value


@pytest.mark.parametrize(
    ("text", "cut", "level"),
    [
        ("1 = Overwhelmed with intense emotional distress", False, 5),
        ("Looking at it: 4 (slightly uneasy)", False, 2),
        ("no idea", False, None),
        # May be the scale, about to be repeated from its first line.
        ("1 = Overwhelmed with intense", True, None),
        ("1 = Overwhelmed\n2 = Significantly distressed\n3 = Moderately\nI say 2", False, 4),
    ],
)
def test_the_scale_turned_round_is_known_by_its_own_anchors(text, cut, level):
    assert reversed_rating(text, cut=cut).value == level
