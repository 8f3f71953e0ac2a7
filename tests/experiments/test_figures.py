import math

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from core.metrics.estimate import Estimate
from experiments.figures import save_confusion, save_forest

PREDICTIONS = pd.DataFrame(
    {
        "condition": ["AO", "AO", "TO", "TO"],
        "gold": ["1", "2", "1", "2"],
        "prediction": ["1", None, "2", "2"],
        "p_1": 0.5,
        "p_2": 0.5,
        "p_3": 0.0,
    }
)


def shown(path):
    picture = matplotlib.image.imread(path)
    assert picture.shape[1] > 200
    return picture[..., :3]


def test_a_confusion_has_every_label_and_darkens_with_the_count(tmp_path):
    save_confusion(PREDICTIONS, "null", tmp_path / "few.png")

    assert shown(tmp_path / "few.png").min() < 0.2


@pytest.mark.parametrize("value", [0.8, math.nan])
def test_a_forest_is_drawn_also_where_a_figure_is_undefined(tmp_path, value):
    estimates = [
        Estimate("mae", "AO", value, value, value, 3, 4),
        Estimate("mae", "AO-TO", 0.1, -0.2, 0.4, 3, 4),
        Estimate("wilcoxon_p", "AO-TO", 0.03, math.nan, math.nan, 3, 4),
    ]
    save_forest(estimates, ("AO", "TO"), "null", tmp_path / "forest.png")

    assert np.ptp(shown(tmp_path / "forest.png")) > 0.5


def test_more_intervals_are_more_ink(tmp_path):
    one = [Estimate("mae", "AO", 0.5, 0.2, 0.8, 3, 4)]
    none = [Estimate("mae", "AO", math.nan, math.nan, math.nan, 3, 4)]
    save_forest(one, ("AO",), "null", tmp_path / "one.png")
    save_forest(none, ("AO",), "null", tmp_path / "none.png")

    assert (shown(tmp_path / "one.png") < 0.5).sum() > (shown(tmp_path / "none.png") < 0.5).sum()
