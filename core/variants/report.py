"""The sections of a run's report that come of its variants, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from core.scoring import by_condition
from core.tasks import Beyond, Table
from core.variants import Variant
from core.variants.tables import (
    Comparison,
    Measure,
    comparison,
    drops,
    hearing_notes,
    hearing_table,
    prompts_notes,
    variants_table,
)

COLUMNS = (
    "both: items it and its condition answered, under drop to shift; drop: how much worse; "
    "changed: share of other answers; shift: of the expected value"
)
TITLES = {
    "hearing": f"does it hear? AT with another clip ({COLUMNS})",
    "robustness": f"robustness: the same clips made worse ({COLUMNS})",
    "prompts": f"prompt sensitivity: asked in other words ({COLUMNS})",
}


def sections(
    asked: Sequence[Variant],
    conditions: Mapping[str, pd.DataFrame],
    variants: pd.DataFrame,
    measure: Measure,
    *,
    resamples: int,
    seed: int,
) -> Beyond:
    """A table for each flag, and one figure for each variant.

    Args:
        asked: all variants of the run.
        conditions: predictions by condition.
        variants: predictions of the variants.
    """
    found = Beyond()
    if not asked:
        return found
    cells = {**conditions, **by_condition(variants, [variant.name for variant in asked])}
    compared = comparison(cells, measure, resamples=resamples, seed=seed)
    for flag, title in TITLES.items():
        if of_flag := [variant for variant in asked if variant.flag == flag]:
            table = hearing_table if flag == "hearing" else variants_table
            found.tables.append(Table(flag, title, table(compared, of_flag)))
            found.notes += _NOTES[flag](compared, of_flag)
            found.estimates += drops(compared, of_flag)
    return found


_NOTES: Mapping[str, Callable[[Comparison, Sequence[Variant]], list[str]]] = {
    "hearing": hearing_notes,
    "robustness": lambda compared, variants: [],
    "prompts": prompts_notes,
}
