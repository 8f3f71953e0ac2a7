"""How distress moves over a session, as labelled and as predicted.

A turn's change is its level less that of the turn of the patient before it in the session.
A model may be off by a level throughout and still follow every rise, or have a small error
and follow none: the correlation of changes tells the two apart. A turn without an answer
breaks the chain; no change is made up over it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics.correlation import weighted_spearman
from core.metrics.ordinal import share
from core.rating_tables import FEW_SESSIONS
from core.scoring import by_item
from core.stats.bootstrap import over_several, weight_bootstrap

Float = NDArray[np.float64]
READINGS = ("prediction", "expected")
"""The level the text states, and the mean of the distribution over levels."""


def trajectory(cells: Mapping[str, pd.DataFrame], items: pd.DataFrame) -> pd.DataFrame:
    """Every turn in the order of its session, with what each condition made of it.

    Args:
        cells: predictions by condition.
        items: with item_id, session_id and turn_index.

    Returns:
        Columns session_id, turn_index, item_id, gold, then for each condition its prediction
        under the condition's name and its expected level as "<condition> expected"; NaN where
        there is none.
    """
    frame = items[["session_id", "turn_index", "item_id", "label"]].copy()
    frame = frame.rename(columns={"label": "gold"}).astype({"item_id": str, "session_id": str})
    for condition, cell in cells.items():
        known = by_item(cell)
        for reading in READINGS:
            name = condition if reading == "prediction" else f"{condition} {reading}"
            frame[name] = frame["item_id"].map(known[reading].astype("float64"))
    ordered = frame.sort_values(["session_id", "turn_index"], kind="stable")
    return ordered.reset_index(drop=True)


def changes(turns: pd.DataFrame, name: str) -> pd.DataFrame:
    """Change of the gold and of one column from each turn to the next of its session.

    Returns:
        Columns session_id, gold, predicted; pairs with a turn that has no answer are left out.
    """
    session = turns["session_id"]
    found = pd.DataFrame(
        {
            "session_id": session,
            "gold": turns["gold"].astype("float64").groupby(session).diff(),
            "predicted": turns[name].groupby(session).diff(),
        }
    )
    return found.dropna().reset_index(drop=True)


def changes_table(
    cells: Mapping[str, pd.DataFrame], turns: pd.DataFrame, *, resamples: int, seed: int
) -> pd.DataFrame:
    """How well each condition follows the changes of the reference.

    Returns:
        A row a condition: changes ("rested on / there are"), sessions, "spearman" of the stated
        levels' changes, "spearman, expected" of the distributions', "same direction" (share of
        changes of the gold in which the stated level moves the same way; standing still is a
        miss), each with " low" and " high" over sessions, and reason.
    """
    every = len(turns) - turns["session_id"].nunique()
    rows = [_followed(condition, turns, every, resamples, seed) for condition in cells]
    return pd.DataFrame(rows)


def few_sessions(turns: pd.DataFrame) -> list[str]:
    """What is to be said of the intervals, where it is."""
    sessions = turns["session_id"].nunique()
    if sessions >= FEW_SESSIONS:
        return []
    if sessions == 1:
        return ["trajectories: there is one session, and so no interval over sessions."]
    return [
        f"trajectories: {sessions} sessions are too few: intervals over sessions are too short."
    ]


def _followed(
    condition: str, turns: pd.DataFrame, every: int, resamples: int, seed: int
) -> dict[str, Any]:
    stated = changes(turns, condition)
    # A turn without an answer has no change, whatever its probabilities were.
    spread = changes(
        turns.assign(read=turns[f"{condition} expected"].where(turns[condition].notna())), "read"
    )
    moved = stated[stated["gold"] != 0]
    reasons = [_why_undefined(stated, "stated"), _why_undefined(spread, "expected")]
    if not len(moved):
        reasons.append("the reference never changes" if len(stated) else None)
    if len(stated) and stated["session_id"].nunique() == 1:
        reasons.append("one session has no interval")
    drawn = {"resamples": resamples, "seed": seed}
    return {
        "condition": condition,
        "changes": f"{len(stated)}/{every}",
        "sessions": str(stated["session_id"].nunique()),
        **_over_sessions("spearman", stated, _spearman, drawn),
        **_over_sessions("spearman, expected", spread, _spearman, drawn),
        **_over_sessions("same direction", moved, _same_direction, drawn),
        "reason": "; ".join(dict.fromkeys(filter(None, reasons))) or None,
    }


def _over_sessions(
    name: str, found: pd.DataFrame, statistic: Any, drawn: Mapping[str, int]
) -> dict[str, float]:
    if not len(found):
        return dict.fromkeys((name, f"{name} low", f"{name} high"), math.nan)
    interval = weight_bootstrap(
        len(found),
        {"value": lambda weights: statistic(found, weights)},
        sessions=found["session_id"].to_numpy(),
        **drawn,
    )["value"]
    interval = over_several(interval, found["session_id"].nunique())
    return {
        name: float(interval.value),
        f"{name} low": float(interval.low),
        f"{name} high": float(interval.high),
    }


def _spearman(found: pd.DataFrame, weights: NDArray[Any]) -> Float:
    return weighted_spearman(found["gold"], found["predicted"], weights)


def _same_direction(found: pd.DataFrame, weights: NDArray[Any]) -> Float:
    same = np.sign(found["gold"].to_numpy()) == np.sign(found["predicted"].to_numpy())
    return share(np.asarray(weights, dtype=np.float64) @ same, np.sum(weights, axis=-1))


def _why_undefined(found: pd.DataFrame, reading: str) -> str | None:
    if not len(found):
        return f"{reading}: no two turns of a session in a row were answered"
    for side in ("gold", "predicted"):
        if found[side].nunique() == 1:
            return f"{reading}: the change of {side} is {found[side].iloc[0]:g} everywhere"
    return None
