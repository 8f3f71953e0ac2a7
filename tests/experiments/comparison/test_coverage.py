"""What a comparison says of models that left something out."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.compare import synthetic_predictions
from core.stats.paired import absolute_errors
from experiments.comparison import distress, ranking
from experiments.comparison.asked import Asked
from experiments.comparison.cells import side_by_side
from experiments.comparison.distress_figures import metric_frame, pair_frame
from experiments.comparison.report import _sure_of_level
from experiments.comparison.table_2 import table_2

ASKED = Asked(resamples=20)


@pytest.fixture
def answered():
    """Two models that answer ten items of two sessions in three conditions; `left_out` of the
    first model's rows are refused."""

    def cells(left_out=()):
        frame = synthetic_predictions(10, 0)
        frame["prediction"] = frame["gold"].astype("Int64")
        frame["status"] = "ok"
        place = frame["item_id"].str[-2:].astype(int)
        frame["group_id"] = np.where(place < 5, "a", "b")
        # Right but for one item; the second model errs on two.
        held = {}
        for model, wrong in (("gemma4", 1), ("voxtral", 2)):
            rows = frame.copy()
            off = (place < wrong) & (rows["gold"] < 5)
            rows.loc[off, "prediction"] = rows.loc[off, "gold"] + 1
            gone = place.isin(left_out) if model == "gemma4" else place < 0
            rows.loc[gone, "prediction"] = pd.NA
            rows.loc[gone, "status"] = "refused"
            held |= {(model, c): part for c, part in rows.groupby("condition")}
        return side_by_side(held, lambda a, over: absolute_errors(a, over=over), "levels")

    return cells


def shown(cells):
    exhibit = table_2(metric_frame(cells, ASKED), pair_frame(cells, ASKED), cells)
    return {row[0].text: row[1] for row in exhibit.layout.rows}, exhibit.caption


def test_a_model_that_left_items_out_says_so_and_is_not_the_best(answered):
    whole, _ = shown(answered())
    assert (whole["gemma4"].underline, whole["voxtral"].underline) == (True, False)

    part, caption = shown(answered(left_out=(0, 9)))

    assert part["gemma4"].text == "0.000 (8/10)"
    assert (part["gemma4"].underline, part["gemma4"].bold) == (False, False)
    assert part["voxtral"].text == "0.200"
    assert part["voxtral"].underline
    assert "answered/all" in caption


def test_figures_of_pairs_name_how_many_turns_they_rest_on(answered):
    pairs = pair_frame(answered(left_out=(0, 9)), ASKED)

    for exhibit in (distress.figure_2(pairs), distress._forest(pairs)):
        assert set(exhibit.numbers["row"]) == {"8/10 · gemma4", "voxtral"}


def test_answers_of_one_session_have_no_interval_over_sessions(answered):
    cells = answered(left_out=range(5, 10))
    metrics = metric_frame(cells, ASKED).set_index(["model", "condition", "metric"])
    pairs = pair_frame(cells, ASKED).set_index(["model", "pair"])

    mae = metrics.loc[("gemma4", "AO", "mae")]
    assert np.isnan([mae["session_low"], mae["session_high"]]).all()
    assert "one session" in mae["reason"]
    over_all = metrics.loc[("gemma4", "AO", "mae_all")]
    assert over_all["session_low"] < over_all["session_high"]
    apart = pairs.loc[("gemma4", "AT-TO")]
    assert np.isnan([apart["session_low"], apart["session_high"]]).all()
    assert apart["method_paper"] == "exact"


def test_a_refusal_is_no_part_of_the_distributions_figures(answered):
    cells = answered(left_out=(3,))
    metrics = metric_frame(cells, ASKED).set_index(["model", "condition", "metric"])
    sure, _ = _sure_of_level(cells.frames["gemma4", "AO"])

    assert metrics.loc[("gemma4", "AO", "expected_mae"), "n"] == 9
    assert np.isnan(sure).sum() == 1


def test_pairs_of_models_beyond_those_laid_out_are_in_the_csv(answered):
    tested = pd.DataFrame(
        [
            ("AO", f"model-{number}", "voxtral", 0.5, 0.001 * number, 0.002 * number, 10)
            for number in reversed(range(120))
        ],
        columns=["condition", "first", "second", "difference", "p", "p_holm", "n"],
    )

    pairs = ranking.section(answered(), tested, ASKED).exhibits[-1]

    assert "the first 100 of 120 by p. All are in the CSV." in pairs.caption
    assert len(pairs.layout.rows) == 100
    assert pairs.numbers["First"].tolist() == [f"model-{number}" for number in range(120)]
