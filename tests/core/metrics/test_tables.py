"""Ratings become a table of counts, or an error that says which one is wrong."""

import numpy as np
import pandas as pd
import pytest

from core.metrics.tables import counts, counts_by_session, joint_counts


def test_a_missing_answer_goes_to_the_last_column():
    table = counts([1, 2, 3], [1, None, float("nan")])
    assert table.shape == (5, 6)
    assert table[0, 0] == table[1, 5] == table[2, 5] == 1
    assert table.sum() == 3


def test_nullable_and_float_columns_count_alike():
    whole = pd.Series([3, None], dtype="Int64")
    floats = pd.Series([3.0, np.nan])
    assert (counts([1, 2], whole) == counts([1, 2], floats)).all()


@pytest.mark.parametrize("rating", [0, 6, 2.5, "3.7", float("inf"), True])
def test_a_rating_that_is_no_level_is_refused_with_its_position(rating):
    with pytest.raises(ValueError, match=r"predicted, position 1: expected an integer 1-5 or None"):
        counts([1, 1], [1, rating])


def test_gold_may_not_be_missing():
    with pytest.raises(ValueError, match="gold, position 0: expected an integer 1-5, found None"):
        counts([None], [1])


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="'gold': 2, 'predicted': 1"):
        counts([1, 2], [1])


def test_sessions_and_joint_tables_add_up_to_the_table():
    gold, first, second = [1, 2, 2, 5], [1, None, 3, 4], [2, 2, None, 5]
    assert (counts_by_session(gold, first, list("abab")).sum(0) == counts(gold, first)).all()
    joint = joint_counts(gold, first, second)
    assert (joint.sum(-1) == counts(gold, first)).all()
    assert (joint.sum(-2) == counts(gold, second)).all()
