"""Runs side by side: every model in every condition, over the same items in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics.ordinal import share
from core.modality import CONDITIONS
from core.rating_tables import FEW_SESSIONS
from core.stats.paired import Aligned, align

Float = NDArray[np.float64]
Key = tuple[str, str]

SEPARATOR = " · "


@dataclass(frozen=True)
class Cells:
    """C cells over n items.

    Attributes:
        keys: (model, condition) of each cell, models best first, conditions in their order.
        aligned: predictions, gold and sessions; its names are `name(key)`.
        frames: rows of each cell, in the order of the items.
        errors: (C, n) loss of each answered item, NaN for no answer.
        charged: (C, n) the same with no answer charged the worst loss.
        seconds: (n,) length of each item's clip; NaN where unknown.
        loss: what `errors` are, with its unit, as an axis says it.
    """

    keys: tuple[Key, ...]
    aligned: Aligned
    frames: Mapping[Key, pd.DataFrame]
    errors: Float
    charged: Float
    seconds: Float
    loss: str

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(model for model, _ in self.keys))

    @property
    def conditions(self) -> tuple[str, ...]:
        had = {condition for _, condition in self.keys}
        return tuple(condition for condition in CONDITIONS if condition in had)

    @property
    def sessions(self) -> NDArray[np.str_] | None:
        """The session of each item, where that is another thing than the item."""
        names = self.aligned.sessions
        if names is None or len(np.unique(names)) == len(names):
            return None
        return names

    @property
    def units(self) -> NDArray[np.str_] | None:
        """What intervals are drawn over: sessions where there are enough, else items (None)."""
        names = self.sessions
        if names is None or len(np.unique(names)) < FEW_SESSIONS:
            return None
        return names

    def of_condition(self, condition: str) -> list[int]:
        """Places of the condition's cells, models in their order."""
        return [place for place, key in enumerate(self.keys) if key[1] == condition]

    def in_both(self, first: str, second: str) -> list[str]:
        """Models that were run in both conditions, in their order."""
        return [m for m in self.models if (m, first) in self.keys and (m, second) in self.keys]

    def place(self, model: str, condition: str) -> int | None:
        """Where a cell is; None where the model was not run so."""
        key = (model, condition)
        return self.keys.index(key) if key in self.keys else None


def name(key: Key) -> str:
    """A cell's name in `Aligned`."""
    return SEPARATOR.join(key)


def side_by_side(
    predictions: Mapping[Key, pd.DataFrame],
    errors: Callable[[Aligned, str], NDArray[Any]],
    loss: str,
) -> Cells:
    """Align the runs and order the models by their mean loss, in AT first, as study 1 sorts.

    Args:
        errors: of an alignment, over "answered" (-1 for no answer) or "all".

    Raises:
        core.stats.paired.UnequalItemsError: cells that do not hold the same items.
    """
    aligned = align({name(key): rows for key, rows in predictions.items()})
    found = np.asarray(errors(aligned, "answered"), dtype=np.float64)
    found[found < 0] = np.nan
    mean = dict(
        zip(
            predictions,
            share(np.nansum(found, axis=1), (~np.isnan(found)).sum(1)).tolist(),
            strict=True,
        )
    )
    order = _order(mean)
    places = [list(predictions).index(key) for key in order]
    sorted_rows = {key: rows.sort_values("item_id") for key, rows in predictions.items()}
    return Cells(
        keys=tuple(order),
        aligned=Aligned(
            names=tuple(name(key) for key in order),
            item_ids=aligned.item_ids,
            gold=aligned.gold,
            predicted=aligned.predicted[places],
            sessions=aligned.sessions,
        ),
        frames={key: sorted_rows[key] for key in order},
        errors=found[places],
        charged=np.asarray(errors(aligned, "all"), dtype=np.float64)[places],
        seconds=_seconds(sorted_rows.values(), len(aligned.item_ids)),
        loss=loss,
    )


def _order(mean: Mapping[Key, float]) -> list[Key]:
    """Keys sorted by the model's loss in the first of AT, AO, TO it was run in."""
    models = list(dict.fromkeys(model for model, _ in mean))

    def rank(model: str) -> tuple[int, float, str]:
        for number, condition in enumerate(("AT", "AO", "TO")):
            value = mean.get((model, condition), np.nan)
            if not np.isnan(value):
                return number, value, model
        return 3, 0.0, model

    ordered = sorted(models, key=rank)
    return [(m, c) for m in ordered for c in CONDITIONS if (m, c) in mean]


def _seconds(frames: Any, n: int) -> Float:
    longest = np.full(n, np.nan)
    for rows in frames:
        given = rows["seconds_given"].to_numpy(dtype=np.float64)
        longest = np.fmax(longest, np.where(given > 0, given, np.nan))
    return longest
