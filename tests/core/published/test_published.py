import numpy as np
import pytest

from core.metrics import binary
from core.published import published


def test_the_figures_of_table_3_are_those_of_its_counts():
    # Table 3, bottom: 87 and 163 of 250 GT=YES, 16 and 74 of 90 GT=NO.
    table = [[87, 163], [16, 74]]
    paper = published("manipulation")

    for figure in paper.figures:
        found = float(binary.METRICS[figure.metric](np.array(table)))
        assert figure.value == pytest.approx(found, abs=0.0006), figure.metric


def test_the_tactics_of_tables_4_and_5_add_up_to_the_clips_predicted_yes():
    totals = {
        entry.where: sum(entry.counts.values()) for entry in published("manipulation").tactics
    }

    assert totals == {"Table 4": 87, "Table 5": 16}


def test_the_best_configuration_of_study_1_is_the_one_the_paper_names():
    figures = [figure for figure in published("distress").figures if figure.metric == "mae"]

    best = min(figures, key=lambda figure: figure.value)
    assert (best.model, best.condition, best.value) == ("gemma4", "AT", 0.720)


def test_a_task_without_a_paper_has_none():
    assert published("sarcasm") is None
