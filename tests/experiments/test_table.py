import io
import math

import pandas as pd

from core.metrics.estimate import Estimate
from experiments.table import (
    comparisons_grid,
    coverage,
    frame_grid,
    markdown,
    metrics_grid,
    narrower_bases,
    print_grid,
    undefined_reasons,
    with_interval,
)

PREDICTIONS = pd.DataFrame(
    {
        "condition": ["AO"] * 4 + ["TO"] * 2,
        "prediction": pd.array([3, None, None, 4, 5, 1], dtype="Int64"),
        "status": ["ok", "refused", "audio_error", "truncated", "ok", "ok"],
    }
)
ESTIMATES = [
    Estimate("mae", "AO", 0.831, 0.7, 0.95, 2, 4),
    Estimate("mae", "TO", math.nan, math.nan, math.nan, 2, 2, "one level only"),
    Estimate("wilcoxon_p", "AO-TO", 0.0004, math.nan, math.nan, 2, 4),
]


def test_what_was_not_answered_stands_beside_the_metric():
    grid = metrics_grid(ESTIMATES, coverage(PREDICTIONS))

    assert grid.header == ("", "AO", "TO")
    assert grid.rows == (
        ("mae", "0.83 [0.70,\N{NO-BREAK SPACE}0.95]", "undefined"),
        ("answered", "2/4", "2/2"),
        ("coverage", "50%", "100%"),
        ("refused", "1", "0"),
        ("unparsed", "0", "0"),
        ("truncated", "1", "0"),
        ("failed", "1", "0"),
    )


def test_pairs_of_conditions_have_a_table_of_their_own():
    grid = comparisons_grid(ESTIMATES, coverage(PREDICTIONS))

    assert grid.rows == (("AO-TO", "0.0004", "2/4"),)


def test_a_small_p_value_does_not_read_as_zero():
    assert with_interval(Estimate("p", "AO-TO", 3.2e-5, math.nan, math.nan, 9, 9)) == "3e-05"
    assert with_interval(Estimate("p", "AO-TO", 0.0, math.nan, math.nan, 9, 9)) == "0.00"


def test_an_undefined_figure_has_its_reason():
    assert undefined_reasons(ESTIMATES) == ["mae/TO is undefined: one level only"]


def test_a_metric_over_a_part_of_the_answers_says_over_how_many():
    tactic = Estimate("tactic_hit", "AO", 0.5, 0.1, 0.9, 1, 4)

    assert narrower_bases([*ESTIMATES, tactic], coverage(PREDICTIONS)) == [
        "tactic_hit rests on 1 of 4 in AO"
    ]


def test_a_bar_in_a_cell_does_not_split_it():
    grid = metrics_grid([Estimate("a|b", "TO", 1, 1, 1, 2, 2)], coverage(PREDICTIONS))

    assert "| a\\|b | - | 1.00" in markdown(grid)


def test_a_log_shows_every_column_unfolded():
    stream = io.StringIO()
    print_grid(metrics_grid(ESTIMATES, coverage(PREDICTIONS)), "null", stream)

    assert "0.83 [0.70,\N{NO-BREAK SPACE}0.95]" in stream.getvalue()


def test_a_title_longer_than_its_table_stays_one_line():
    stream = io.StringIO()
    title = "null on distress, demo-distress, synthetic: 30 of 30 items, " + "95 % intervals " * 20
    print_grid(metrics_grid(ESTIMATES, coverage(PREDICTIONS)), title, stream)

    assert stream.getvalue().splitlines()[0] == title


def test_the_interval_of_a_studys_table_stands_beside_its_figure():
    frame = pd.DataFrame(
        {
            "Class": ["GT=YES", "GT=NO"],
            "Acc": [0.348, math.nan],
            "Acc low": [0.29, math.nan],
            "Acc high": [0.41, math.nan],
            "N": [250, 90],
        }
    )

    grid = frame_grid(frame)

    assert grid.header == ("Class", "Acc", "N")
    assert grid.rows[0] == ("GT=YES", "0.348 [0.290,\N{NO-BREAK SPACE}0.410]", "250")
    assert grid.rows[1] == ("GT=NO", "undefined", "90")


def test_a_terminal_of_few_letters_shows_it_all_the_same():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_grid(metrics_grid(ESTIMATES, coverage(PREDICTIONS)), "null", stream)
    stream.flush()

    assert b"0.83 [0.70, 0.95]" in stream.buffer.getvalue()
