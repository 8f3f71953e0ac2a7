import numpy as np
import pandas as pd
import pytest

from core.rating_tables import comparisons_table, metrics_table

LEVELS = [f"p_{level}" for level in range(1, 6)]


def answers(predicted, sessions=None, shares=None):
    """Gold is 1 to 5 in turn; one row an item."""
    gold = [1 + number % 5 for number in range(len(predicted))]
    rows = pd.DataFrame(
        {
            "item_id": [f"t{number}" for number in range(len(predicted))],
            "prediction": pd.array(predicted, dtype="Int64"),
            "gold": gold,
            "group_id": sessions or [f"s{number}" for number in range(len(predicted))],
        }
    )
    rows[LEVELS] = np.nan if shares is None else shares
    return rows


def row(table, metric):
    return table[table["metric"] == metric].iloc[0]


def test_an_unanswered_turn_is_charged_its_worst_error_over_all_turns():
    # gold 1, 2, 3, 4, 5; the last is not answered: its worst error is 4
    table = metrics_table({"AO": answers([1, 2, 3, 3, None])}, resamples=50, seed=0)

    assert row(table, "mae")["value"] == 1 / 4
    assert row(table, "mae")["n"] == 4
    assert row(table, "mae_all")["value"] == (1 + 4) / 5
    assert row(table, "mae_all")["n"] == 5


def test_turns_of_one_session_widen_the_interval_over_sessions():
    # every session is either all right or all four levels off
    predicted = [1 + n % 5 if n // 5 % 2 else 5 - n % 5 for n in range(200)]
    sessions = [f"s{number // 5}" for number in range(200)]

    found = row(metrics_table({"AO": answers(predicted, sessions)}, resamples=500, seed=0), "bias")
    mae = row(metrics_table({"AO": answers(predicted, sessions)}, resamples=500, seed=0), "mae")

    assert found["caution"] is None
    assert mae["session_high"] - mae["session_low"] > mae["high"] - mae["low"]


def test_few_sessions_are_said():
    table = metrics_table({"AO": answers([1, 2, 3, 4, 5])}, resamples=50, seed=0)

    assert row(table, "mae")["caution"].startswith("5 sessions are too few")


def test_without_a_distribution_its_metrics_are_undefined_with_a_reason():
    table = metrics_table({"AO": answers([1, 2, 3, 4, 5])}, resamples=50, seed=0)

    found = row(table, "ranked_probability_score")
    assert np.isnan(found["value"])
    assert found["reason"] == "no answered turn has a distribution"


def test_answers_of_one_session_have_no_interval_over_sessions_and_say_so():
    sessions = ["a", "a", "a", "b", "b"]
    table = metrics_table({"AO": answers([1, 3, 3, None, None], sessions)}, resamples=50, seed=0)

    mae, over_all = row(table, "mae"), row(table, "mae_all")
    assert mae["sessions"] == 1
    assert np.isnan([mae["session_low"], mae["session_high"]]).all()
    assert mae["caution"] == "its answers lie in one session: no interval over sessions"
    assert over_all["sessions"] == 2
    assert over_all["session_low"] < over_all["session_high"]


def test_what_a_refusal_might_have_said_is_no_part_of_the_distributions_metrics():
    # Certain and right of the four answered; certain and four levels off of the refused.
    shares = np.eye(5)[[0, 1, 2, 3, 0]]
    table = metrics_table({"AO": answers([1, 2, 3, 4, None], shares=shares)}, resamples=50, seed=0)

    for metric in ("expected_mae", "ranked_probability_score", "expected_calibration_error"):
        assert (row(table, metric)["value"], row(table, metric)["n"]) == (0, 4)


def test_a_certain_and_right_distribution_scores_nought():
    shares = np.eye(5)
    table = metrics_table({"AO": answers([1, 2, 3, 4, 5], shares=shares)}, resamples=50, seed=0)

    for metric in ("expected_mae", "ranked_probability_score", "expected_calibration_error"):
        assert row(table, metric)["value"] == 0


def test_pairs_are_adjusted_as_one_family():
    # ten of ten turns one level off against none: each of 10 signs the same way, p = 2 / 2**10
    right = [1 + number % 5 for number in range(10)]
    off = [level + 1 if level < 5 else 4 for level in right]
    cells = {"AO": answers(off), "AT": answers(right), "TO": answers(right)}

    table = comparisons_table(
        cells, [("AT", "TO"), ("AO", "TO"), ("AT", "AO")], resamples=50, seed=0
    )

    assert table["p"].tolist() == pytest.approx([1, 2 / 2**10, 2 / 2**10])
    assert table["p_holm"].tolist() == pytest.approx([1, 3 * 2 / 2**10, 3 * 2 / 2**10])
    assert table["p_flip"].tolist() == pytest.approx([1, 2 / 2**10, 2 / 2**10])
