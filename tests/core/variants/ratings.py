"""Predictions tables as a run has them, from levels alone."""

import numpy as np
import pandas as pd


def rated(predicted, gold, sessions=None, expected=None):
    """One row an item; None is no answer."""
    ids = [f"t{number:03d}" for number in range(len(gold))]
    stated = pd.array(predicted, dtype="Int64")
    means = np.array([np.nan if level is None else level for level in predicted], float)
    return pd.DataFrame(
        {
            "item_id": ids,
            "prediction": stated,
            "gold": pd.array(gold, dtype="Int64"),
            "expected": means if expected is None else expected,
            "group_id": sessions or [f"s{number // 5}" for number in range(len(gold))],
        }
    )
