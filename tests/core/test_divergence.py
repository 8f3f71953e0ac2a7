"""The study's cases as rules, and the turns furthest apart."""

from itertools import product

import pandas as pd
import pytest

from core.divergence import CASES, case, case_turns, cases_table, divergence, furthest
from tests.core.variants.ratings import rated


@pytest.mark.parametrize(
    ("gold", "audio", "both", "words", "like"),
    [
        # A: she cannot find the motivation to keep trying; the words alone sound milder.
        (4, 4, 4, 2, "A"),
        # B and C: sweating and worrying, told steadily; a laugh.
        (2, 2, 3, 4, "B, C"),
        # D: "nine", said with laughter; whoever reads it rates high.
        (2, 2, 4, 4, "D"),
        # E: "I feel proud".
        (1, 3, 2, 1, "E"),
        # F: mutual respect, told flatly; each alone is too high.
        (1, 2, 1, 2, "F"),
        # G: the words say it all.
        (4, 3, 4, 4, "G"),
        # None of them: audio makes it worse.
        (2, 5, 4, 3, None),
        (4, 2, 2, 2, None),
        (3, 1, 1, 3, None),
    ],
)
def test_each_case_of_the_study_is_found_by_its_rule(gold, audio, both, words, like):
    assert case(gold, audio, both, words) == like


def test_every_turn_is_one_known_case_or_none():
    found = {case(*levels) for levels in product(range(1, 6), repeat=4)}

    assert found == {*CASES, None}


def turns(audio, both, words, gold, expected=None, **columns):
    n = len(gold)
    items = pd.DataFrame(
        {
            "item_id": [f"t{number:03d}" for number in range(n)],
            "session_id": "s",
            "turn_index": range(n),
            "audio": [f"audio/{number}.flac" for number in range(n)],
            "transcript": "I could not find the motivation\nto keep on trying, and then I stopped it.",
            "label": gold,
            **columns,
        }
    )
    cells = {
        "AO": rated(audio, gold, expected=expected),
        "AT": rated(both, gold),
        "TO": rated(words, gold),
    }
    return divergence(cells, items)


def test_turns_come_in_the_order_of_how_far_their_ratings_lie_apart():
    found = turns([4, 1, 2, None], [4, 3, 2, 2], [2, 4, 2, 2], [4, 2, 2, 2])

    assert list(found["item_id"]) == ["t001", "t000", "t002", "t003"]
    assert list(found["levels"][:3]) == [-3, 2, 0]
    assert list(found["case"][:3]) == ["B, C", "A", "G"]
    assert pd.isna(found["levels"][3])
    assert pd.isna(found["case"][3])


def test_the_distributions_mean_decides_before_the_stated_level():
    found = turns([3, 3], [3, 3], [3, 2], [3, 3], expected=[4.9, 3.1])

    assert list(found["item_id"]) == ["t000", "t001"]
    assert list(found["expected"]) == pytest.approx([1.9, 1.1])


def test_a_row_shows_what_was_rated_and_where_to_listen():
    found = turns([4, 2], [4, 2], [2, 2], [4, 2], start_s=[12.5, 0.0], end_s=[31.25, 2.0])
    shown = furthest(found, 5)

    assert len(shown) == 1
    row = shown.iloc[0]
    assert (row["turn"], row["gold"], row["AO"], row["TO"]) == ("t000", "4", "4", "2")
    assert (row["AO - TO, levels"], row["AO - TO, expected"]) == ("+2", "+2.00")
    assert row["audio"] == "audio/0.flac 12.5-31.2 s"
    assert row["transcript"] == "I could not find the motivation to keep on trying, and th..."


def test_cases_are_counted_among_turns_answered_three_times():
    table = cases_table(turns([4, 1, 2, None], [4, 3, 2, 2], [2, 4, 2, 2], [4, 2, 2, 2]))
    by_case = table.set_index("case")

    assert by_case.loc["A", "turns"] == "1/3"
    assert list(by_case.loc["A", ["example", "gold", "AO", "AT", "TO", "audio"]]) == [
        *("t000", "4", "4", "4", "2", "audio/0.flac"),
    ]
    assert by_case.loc["D", "example"] is None
    assert by_case.loc["none", "turns"] == "0/3"
    assert by_case["share"].sum() == pytest.approx(1)


def test_the_turns_of_each_case_come_together_with_their_words():
    found = case_turns(turns([4, 1, 2, None], [4, 3, 2, 2], [2, 4, 2, 2], [4, 2, 2, 2]))

    assert list(found["case"]) == ["A", "B, C", "G"]
    assert list(found["item_id"]) == ["t000", "t001", "t002"]
    assert found["transcript"][0].startswith("I could not find the motivation\nto keep")


def test_without_an_answer_to_all_three_nothing_is_counted():
    table = cases_table(turns([None], [1], [1], [1]))

    assert set(table["turns"]) == {"0/0"}
    assert table["share"].isna().all()
    assert furthest(turns([None], [1], [1], [1]), 5).empty
