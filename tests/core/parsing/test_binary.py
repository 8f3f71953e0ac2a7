"""What a model writes when asked to choose, and the choice it states, if it states one."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.parsing import letter, verdict, yes_no

LETTERS = {"A": "YES", "B": "NO"}

LETTER = [
    ("A", "A"),
    ("B", "B"),
    (" B", "B"),
    ("B\n", "B"),
    ("a", "A"),
    ("b.", "B"),
    ("A.", "A"),
    ("(A)", "A"),
    ("(b)", "B"),
    ("[B]", "B"),
    ('"A"', "A"),
    ("**B**", "B"),
    ("`A`", "A"),
    ("B)", "B"),
    ("B:", "B"),
    ("A. Yes", "A"),
    ("A. Yes, there is manipulation.", "A"),
    ("B. No", "B"),
    ("A: Yes", "A"),
    ("B) No", "B"),
    ("A - Yes", "A"),
    ("A (Yes)", "A"),
    ("Ａ", "A"),
    ("A<|im_end|>", "A"),
    ("<answer>B</answer>", "B"),
    ("Answer: B", "B"),
    ("Answer: (A)", "A"),
    ("The answer is B.", "B"),
    ("The answer is **B**.", "B"),
    ("The answer is B. Note that A is common.", "B"),
    ("The correct answer is A", "A"),
    ("My answer: A", "A"),
    ("Option B", "B"),
    ("I choose A.", "A"),
    ("I would choose option B.", "B"),
    ("B is correct.", "B"),
    ("B is my answer.", "B"),
    ("Therefore, B.", "B"),
    ("So the answer is A", "A"),
    ("A, because he threatens her.", "A"),
    ("B because nobody is pressed.", "B"),
    ("B\n\nA manipulative speaker would insist.", "B"),
    ("\\boxed{A}", "A"),
    ("<think>A or B? B is likely.</think>A", "A"),
    ("could be A</think>B", "B"),
    ("A or B: A", "A"),
    ("A or B? B", "B"),
    ("A. Yes\nB. No\n\nAnswer: A", "A"),
    ('{"answer": "A"}', "A"),
    ("Final answer: B", "B"),
    ("Definitely A.", "A"),
    ("Verdict: B", "B"),
]
NO_LETTER = [
    "",
    " ",
    "A or B?",
    "A or B",
    "A/B",
    "A and B",
    "Both A and B.",
    "A, B",
    "A\nB",
    "A. Yes\nB. No",
    "Either A or B.",
    "Answer: A or B",
    "A, maybe B.",
    "A (or B)",
    "C",
    "AB",
    "BA",
    "I",
    "1",
    "A manipulative speaker would insist.",
    "A conversation between two people",
    "A lot of pressure is put on her.",
    "A man asks a woman out. A woman declines.",
    "Speaker B pressures speaker A.",
    "Person A is calm",
    "Plan B.",
    "Grade A work",
    "This is a dialogue.",
    "Note that A is common.",
    "not B",
    "The answer is not B.",
    "It isn't A.",
    "A?",
    "B?",
    "Is it B?",
    "Error: A",
    "HTTP 500 B",
    "<think>A",
    "А",
    "В",
    "Hepatitis B is mentioned",
    "vitamin B",
    "a b",
    "B's answer",
    "B-movie",
    "The answer is A or B",
    "yes",
    "no",
    "neither",
]
YES_NO = [
    ("Yes", "YES"),
    ("No", "NO"),
    ("YES", "YES"),
    ("no", "NO"),
    ("yes.", "YES"),
    ("No!", "NO"),
    ("**Yes**", "YES"),
    ("Yes, he threatens her.", "YES"),
    ("No, they only talk.", "NO"),
    ("Answer: yes", "YES"),
    ("The answer is no.", "NO"),
    ("Yes. There is no doubt.", "YES"),
    ("No, not at all.", "NO"),
    ("I would say yes.", "YES"),
    ("Yes - he insists", "YES"),
    ("Verdict: NO", "NO"),
    ("Yeah.", "YES"),
    ("Nope", "NO"),
    ("(Yes)", "YES"),
    ("Yes or no? Yes.", "YES"),
    ("<think>yes or no</think>No", "NO"),
    ('{"answer": "yes"}', "YES"),
    ("ＹＥＳ", "YES"),
    ("Yes\n\nNo one else is in the room.", "YES"),
]
NO_YES_NO = [
    "",
    "Yes and no",
    "Yes and no.",
    "yes or no",
    "Yes/No",
    "Yes, no",
    "No, wait, yes.",
    "Yes... no.",
    "yes?",
    "No one is there",
    "No manipulation is worse than this.",
    "No doubt it is.",
    "Not yes.",
    "The answer is not yes.",
    "maybe",
    "Yesterday",
    "nobody",
    "North",
    "She says yes to him.",
    'No. When she says "yes" she means it.',
    "There is no doubt.",
    "Error: no",
    "<think>yes",
    "A",
    "B",
    "Y",
    "N",
    "true",
    "Oui",
]
REFUSED = [
    "I can't help with that.",
    "As an AI, I cannot judge people.",
    "I'm sorry, but I cannot listen to audio.",
    "I am unable to determine A or B.",
    "Please provide the audio.",
    "No audio was provided.",
    "Sorry, I can't answer yes or no.",
]


@pytest.mark.parametrize(("text", "value"), LETTER)
def test_a_stated_letter_is_read(text, value):
    assert (letter(text).value, letter(text).status) == (value, "ok")


@pytest.mark.parametrize("text", NO_LETTER)
def test_an_article_or_two_letters_are_no_answer(text):
    parsed = letter(text)

    assert (parsed.value, parsed.status) == (None, "unparsed")
    assert parsed.reason


@pytest.mark.parametrize(("text", "value"), YES_NO)
def test_a_stated_yes_or_no_is_read(text, value):
    assert (yes_no(text).value, yes_no(text).status) == (value, "ok")


@pytest.mark.parametrize("text", NO_YES_NO)
def test_a_no_that_denies_something_else_is_no_answer(text):
    parsed = yes_no(text)

    assert (parsed.value, parsed.status) == (None, "unparsed")
    assert parsed.reason


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
    start = time.perf_counter()

    verdict(text, LETTERS)

    assert time.perf_counter() - start < 1
