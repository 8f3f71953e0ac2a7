"""What a model writes, and the level it states, if it states one."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.parsing import rating

STATED = [
    # the number alone
    ("4", 4),
    (" 4", 4),
    ("4\n", 4),
    ("4.", 4),
    ("(4)", 4),
    ("[3]", 3),
    ('"5"', 5),
    ("'2'", 2),
    ("1", 1),
    ("04", 4),
    ("4.0", 4),
    ("4.00", 4),
    ("Four", 4),
    ("four.", 4),
    ("ONE", 1),
    ("#4", 4),
    ("4!", 4),
    # markup
    ("**4**", 4),
    ("*4*", 4),
    ("`4`", 4),
    ("__4__", 4),
    ("### 4", 4),
    ("> 4", 4),
    ("- 4", 4),
    ("* 4", 4),
    ("$4$", 4),
    ("\\boxed{4}", 4),
    ("**Rating:** 4", 4),
    ("**Rating: 4**", 4),
    ("```\n4\n```", 4),
    ("<answer>4</answer>", 4),
    ("4<|im_end|>", 4),
    ("<|assistant|>4</s>", 4),
    ("4️⃣", 4),
    ("\ufeff4", 4),
    ("| Rating | 4 |", 4),
    # other digits
    ("４", 4),
    ("３/５", 3),
    ("④", 4),
    ("٤", 4),
    ("४", 4),
    # shares of five
    ("3/5", 3),
    ("3 / 5", 3),
    ("3 out of 5", 3),
    ("I'd rate 3 out of 5", 3),
    ("four out of five", 4),
    ("4.0/5.0", 4),
    ("I would give this a 4/5.", 4),
    ("The voice trembles, so 4/5", 4),
    ("Rating: 2 of 5", 2),
    ("4/5 because of the tremor.", 4),
    # sentences
    ("On a scale of 1-5, I would say 4", 4),
    ("On a scale of 1 to 5, I'd rate this a 3.", 3),
    ("Level: four", 4),
    ("Level 4", 4),
    ("Level-4", 4),
    ("On a scale from one to five: two", 2),
    ("Rating: 4", 4),
    ("Rating:\n4", 4),
    ("Rating = 4", 4),
    ("rating - 3", 3),
    ("Score: 2/5", 2),
    ("The answer is 5.", 5),
    ("My answer: 3", 3),
    ("The patient's emotional intensity is 4.", 4),
    ("I would rate the patient’s emotional intensity as a 4.", 4),
    ("Emotional intensity: 3", 3),
    ("Distress level: 5", 5),
    ("The rating would be 2.", 2),
    ("It's a 3.", 3),
    ("This is a 2.", 2),
    ("Definitely a 4.", 4),
    ("The patient is a 4", 4),
    ("I'd give it a 4", 4),
    ("I choose 2", 2),
    ("Overall: 4", 4),
    ("Therefore, 3.", 3),
    ("Probably 3", 3),
    ("About 3", 3),
    ("Answer -> 4", 4),
    ("Answer → 4", 4),
    ("Final rating (1-5): 4", 4),
    ("4 on a scale of 1-5", 4),
    ("4 (significantly distressed)", 4),
    ("I rate 4, because her voice shakes.", 4),
    ("4, not 5.", 4),
    ("A 4 rather than a 5.", 4),
    ("I'd rate it a four (4).", 4),
    ("I would rate this a 4 with clear distress", 4),
    ("1/5", 1),
    ("Her voice is trembling throughout. 4", 4),
    ("Rating: one", 1),
    ("I'd go with 3.", 3),
    ("I rate the patient's distress as moderate, around 3.", 3),
    ('She says "my anxiety is a 9". Rating: 2', 2),
    ('"Rating: 4"', 4),
    ("Maybe 4", 4),
    # a number and more behind it
    ("4\n\nThe patient speaks for 2 minutes and sighs 3 times.", 4),
    ("4. The patient sounds tense.", 4),
    ("4 - the voice trembles", 4),
    ("4: her voice trembles", 4),
    ("4 = Significantly distressed, struggling to maintain composure", 4),
    ("1 = Calm, at ease, with no emotional distress", 1),
    ("1. Calm, at ease", 1),
    ("4: Significantly distressed", 4),
    ("Moderately distressed.\nRating: 3", 3),
    ("The pitch rises.\n\n4", 4),
    ("3 = Moderately distressed.\n\nHe says 9 of 10.", 3),
    # other numbers around
    ("She waited 2 minutes in 2019. Rating: 4", 4),
    ("In the 2 minutes of audio, the voice shakes. I'd say 5.", 5),
    ("1. The voice shakes.\n2. The pace is fast.\nOverall: 4", 4),
    ("Rating: 3 (80% sure)", 3),
    ("The clip from 12/05/2023 gets a rating of 2.", 2),
    ("Rating: 4. Confidence: high (at 0:35).", 4),
    ("The 3rd sigh says it all: rating 5", 5),
    ("As an AI I cannot feel, but I would rate it 4.", 4),
    ("I'm sorry she suffers. Rating: 4", 4),
    ("On a scale of 1 (calm) to 5 (overwhelmed), I'd say 4", 4),
    ("On the 5-point scale this is a 2.", 2),
    ("On a scale where 1 is calm and 5 is overwhelmed, I'd say 2.", 2),
    (
        "1 = Calm\n2 = Slightly uneasy\n3 = Moderately distressed\n4 = Significantly distressed\n5 = Overwhelmed\n\nRating: 2",
        2,
    ),
    # thinking
    ("<think>Maybe 2, or 3.</think>4", 4),
    ("<think>\n2\n</think>\n\n4", 4),
    ("maybe 2 or 5\n</think>\n3", 3),
    ("<thinking>2</thinking>Rating: 4", 4),
    ("[THINK]5[/THINK]2", 2),
    ("<think></think>4", 4),
    ("<THINK>1</THINK> 4", 4),
    ("<think>a</think><think>1</think>4", 4),
    ("4<think>was it 5?</think>", 4),
    # JSON
    ('{"rating": 4}', 4),
    ('{"rating": "4"}', 4),
    ('{"rating": 4.0}', 4),
    ('```json\n{"rating": 4}\n```', 4),
    ('{"emotional_intensity": 3, "reason": "2 sighs"}', 3),
    ('{"distressLevel": 5}', 5),
    ('{"rating": 4, "confidence_score": 0.9}', 4),
    ('{"result": {"rating": 2}}', 2),
    ("[4]", 4),
    ("{'rating': 4}", 4),
    ('Here it is: {"rating": 4}', 4),
    ('{"rating": "4/5"}', 4),
    ('{"rating": "four"}', 4),
    ('{"score": 3, "max_score": 5}', 3),
]

UNPARSED = [
    # nothing
    "",
    " ",
    "\n",
    "...",
    "The patient is upset.",
    "Significantly distressed",
    "None",
    "null",
    "n/a",
    "?",
    "IV",
    "high",
    "<|im_end|>",
    # not on the scale
    "0",
    "6",
    "10",
    "-3",
    "-1",
    "99",
    "44",
    "100",
    "3.5",
    "4,5",
    ".5",
    "4½",
    "3 and a half",
    "three and a half",
    "3.999",
    "9/10",
    "4/10",
    "7 out of 10",
    "4 out of 10",
    "I'd rate it 8",
    "Rating: 0",
    "Rating: -3",
    "rating -3",
    "Rating: 10",
    "Level: ten",
    "zero",
    "1e3",
    "4e0",
    "0x4",
    "9" * 5000,
    "4" * 20,
    '{"rating": 3.5}',
    '{"rating": 40}',
    '{"rating": null}',
    '{"rating": true}',
    # two answers
    "Between 2 and 3",
    "between two and three",
    "2-3",
    "2–3",
    "3 to 4",
    "3 or 4",
    "3/4",
    "2 or 3?",
    "4 (or 5)",
    "4 (maybe 5)",
    "4, maybe 5",
    "2, 3",
    "2, 3 and 4 all fit",
    "3 4",
    "4\n5",
    "Rating: 3. It could also be a 4.",
    "First I say 3. Final answer: 4",
    "I'd say 3 - 4",
    "four or five",
    "3 but it could be 4.",
    "Between 3 and 4, so I'd go with 4",
    "3~4",
    "Rating: 4 (5)",
    '{"rating": 4, "score": 2}',
    "[3, 4]",
    '{"rating": "2-3"}',
    "I would rate the first half 2, the second 4.",
    "Either 1 or 5.",
    "1 and 2",
    "5-1",
    # the scale, repeated
    "1-5",
    "(1-5)",
    "1 to 5",
    "Respond with ONLY a single number (1-5).",
    "On a scale of 1 to 5",
    "a number between 1 and 5",
    "from one to five",
    "1 = Calm 2 = Slightly uneasy 3 = Moderately distressed 4 = Significantly distressed 5 = Overwhelmed",
    "1 = Calm, at ease, with no emotional distress\n2 = Slightly uneasy, with mild emotional activation\n3 = Moderately distressed, with clear emotional activation\n4 = Significantly distressed, struggling to maintain composure\n5 = Overwhelmed with intense emotional distress",
    "Calm (1), Slightly uneasy (2), Moderately distressed (3), Significantly distressed (4), Overwhelmed (5)",
    "On the 5-point scale she is upset.",
    # numbers that are no answer
    "The patient has 3 children.",
    "In the 2 minutes of audio the voice shakes",
    "2 minutes in, she sighs.",
    "4 of the signs are there",
    "3 out of 5 sessions were hard",
    "She missed 3/5 sessions.",
    "3 January 2021",
    "12/05/2023",
    "2024-03-04",
    "at 3:30",
    "3%",
    "3 percent",
    "the 3rd time",
    "3rd",
    "4th",
    "$4",
    "€5",
    "v4",
    "4x",
    "4kg",
    "Room 4.",
    "see p. 4",
    "At 3, he woke up.",
    "No. 3 child",
    "1. The patient's voice is shaky",
    "1) First, the pitch rises",
    "Her distress rose in session 3.",
    "The number of sighs was 3.",
    "Patient: I gave 3 talks",
    "this one",
    "I'd rate this one",
    "No one is calm.",
    "one of the hardest clips",
    "a 3-year-old",
    "Turn 3: she cries.",
    "Speaker 2.",
    "Confidence: 5",
    "4+",
    ">4",
    "at least 4",
    "more than 3",
    "less than 2",
    "not a 4",
    "I would not rate this a 4.",
    "It isn't a 5.",
    "4?",
    "Is it a 4?",
    "Let me rate: 3... no, 4.",
    "3... 4",
    "3. Actually, 4.",
    "3 -> 4",
    'The patient says "I\'d rate my anxiety 4."',
    'She told him "the answer is 2".',
    # errors and thinking
    "Error 429: too many requests, retry after 5 seconds",
    "Error: 4",
    "HTTP 500",
    "HTTP/1.1 502 Bad Gateway",
    "ValueError: 3",
    "openai.RateLimitError: 4",
    '{"error": {"code": 4, "message": "no"}}',
    '{"error": 4}',
    '{"status": 3}',
    "Rate limit reached. Retry in 3 s.",
    "Traceback (most recent call last): line 3",
    "<html><h1>503 Service Unavailable</h1></html>",
    "<think>4",
    "<think>The rating is 4",
    "4 <think> or",
    "<think>4</think>",
    "<think>1</think><think>4",
    "[THINK]4",
    "{",
    '{"rating":',
    "[]",
    "{}",
    "[" * 3000,
    '{"note": 4}',
]

REFUSED = [
    "I can't help with that.",
    "I cannot rate emotional distress.",
    "I'm sorry, but I can't assist with that request.",
    "As an AI, I do not have feelings.",
    "As an AI language model, I cannot listen to audio.",
    "I'm unable to listen to audio clips.",
    "I am not able to assess the patient on a scale of 1 to 5.",
    "Sorry, I can’t rate this.",
    "I won't provide a rating of 1-5.",
    "I can't rate this a 4.",
    "I'm just an AI model.",
    "Please provide the audio clip.",
    "No audio was provided.",
    "Unable to process the audio.",
    "I'm not comfortable rating a person's distress.",
    "I can't help with that. If you are in crisis, call 988 or text 4 friends.",
    "I cannot rate this one.",
    "I must decline.",
    "<think>rate 4?</think>I can't help with that.",
]


@pytest.mark.parametrize(("text", "level"), STATED)
def test_a_stated_level_is_read(text, level):
    parsed = rating(text)

    assert (parsed.value, parsed.status, parsed.reason) == (level, "ok", None)


@pytest.mark.parametrize("text", UNPARSED)
def test_anything_else_is_unparsed_with_a_reason(text):
    parsed = rating(text)

    assert (parsed.value, parsed.status) == (None, "unparsed")
    assert parsed.reason


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_is_told_from_a_bad_answer(text):
    assert rating(text).status == "refused"


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
    start = time.perf_counter()

    rating(text)

    assert time.perf_counter() - start < 1
