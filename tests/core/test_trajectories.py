"""Changes from turn to turn, by hand."""

import numpy as np
import pandas as pd
import pytest

from core.trajectories import changes, changes_table, trajectory
from tests.core.variants.ratings import rated

GOLD = [1, 2, 4, 3, 5, 1]
ITEMS = pd.DataFrame(
    {
        "item_id": [f"t{number:03d}" for number in range(6)],
        "session_id": ["a", "a", "a", "b", "b", "b"],
        # Rows need not stand in the order of a session.
        "turn_index": [1, 3, 7, 9, 5, 2],
        "label": GOLD,
    }
)


def table(predicted, items=ITEMS, **fields):
    gold = list(items["label"])
    cells = {"AO": rated(predicted, gold, list(items["session_id"]), **fields)}
    turns = trajectory(cells, items)
    return turns, changes_table(cells, turns, resamples=200, seed=0).iloc[0]


def test_a_session_is_followed_in_the_order_of_its_turns():
    turns, _ = table([1, 2, 3, 4, 5, 5])

    assert list(turns["item_id"]) == ["t000", "t001", "t002", "t005", "t004", "t003"]
    found = changes(turns, "AO")
    # a: 1 2 4; b, by turn_index: 1 5 3
    assert list(found["gold"]) == [1, 2, 4, -2]
    assert list(found["predicted"]) == [1, 1, 0, -1]
    assert list(found["session_id"]) == ["a", "a", "b", "b"]


def test_a_model_a_level_off_throughout_follows_every_change():
    _, row = table([g - 1 if g > 1 else 2 for g in GOLD], expected=np.array(GOLD) + 0.5)

    assert row["spearman, expected"] == 1.0
    assert (row["changes"], row["sessions"]) == ("4/4", "2")


def test_an_unanswered_turn_breaks_the_chain_and_is_not_bridged():
    turns, row = table([1, None, 4, 3, 5, 1])

    assert list(changes(turns, "AO")["session_id"]) == ["b", "b"]
    assert row["changes"] == "2/4"
    assert row["reason"] == "one session has no interval"
    assert np.isnan(row["spearman low"])


def test_a_turn_without_an_answer_has_no_change_whatever_its_probabilities():
    # The refused turn of a is the one whose distribution goes the wrong way.
    _, row = table([1, None, 4, 3, 5, 1], expected=np.array([1.5, 1, 4.5, 3.5, 5, 1.5]))

    # b alone is left: 1 5 3, changes 4 and -2.
    assert row["spearman, expected"] == 1.0
    assert np.isnan(row["spearman, expected low"])


def test_the_same_direction_counts_standing_still_as_a_miss():
    # changes of gold 1, 2, 4, -2; predicted 1, 0, 1, 1
    _, row = table([1, 2, 2, 5, 4, 3])

    assert row["same direction"] == 2 / 4
    assert row["same direction low"] <= 0.5 <= row["same direction high"]


@pytest.mark.parametrize(
    ("predicted", "items", "reason"),
    [
        ([3] * 6, ITEMS, "stated: the change of predicted is 0 everywhere"),
        (GOLD, ITEMS.assign(session_id=list("abcdef")), "stated: no two turns of a session"),
        ([1, 2, 4, 3, 5, 1], ITEMS.assign(label=3), "stated: the change of gold is 0 everywhere"),
        ([None] * 6, ITEMS, "stated: no two turns of a session in a row were answered"),
    ],
)
def test_what_is_undefined_has_a_reason(predicted, items, reason):
    _, row = table(predicted, items)

    assert np.isnan(row["spearman"])
    assert row["reason"].startswith(reason)


def test_equal_seeds_give_equal_intervals():
    assert str(table([1, 3, 4, 3, 4, 1])[1]) == str(table([1, 3, 4, 3, 4, 1])[1])
