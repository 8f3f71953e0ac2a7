"""A dataset folder read and its values checked in one pass: whoever mends it sees all faults."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from core.dataset import Dataset, read_dataset
from core.faults import Fault
from validation import schemas


def checked_dataset(folder: Path, task: str, schema: pa.DataFrameSchema) -> Dataset:
    """The dataset, its items as `schemas.validated` gives them.

    Args:
        task: as in dataset.json.
        schema: what the manifest's values must keep to.

    Raises:
        core.dataset.DatasetError: with every faulty row, be it a cell's type, its
            value or its audio file; or saying what else is wrong with the folder.
    """

    def judge(items: pd.DataFrame, told: Set[tuple[int | None, str | None]]) -> list[Fault]:
        return schemas.faults(items, schema, told)

    dataset = read_dataset(folder, task, judge=judge)
    items = schemas.validated(dataset.items, schema, str(dataset.manifest))
    return replace(dataset, items=items)
