"""What the page of `browse` is given: an index of a set of runs, and one item in full.

The index holds a label and a status an item, run and condition, as columns of small
numbers, so that a page can filter and sort 1,802 items with 30 predictions each without
asking again. Words and distributions come an item at a time. Undefined is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from core.manifest import is_nothing
from core.protocol import STATUSES
from core.speech.true_turns import SIDECAR, TruthError, read_sidecar

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from experiments.run_sets import RunSet

# No answer, or not asked about.
NONE = -1
# Columns of predictions that the index or the item has under a name of its own.
_ELSEWHERE = ("item_id", "gold", "condition", "group_id", "request_id", "gold_tactics", "voices")


@dataclass
class Shown:
    """A set of runs made ready to be asked about.

    Attributes:
        place: item id -> its number in the index.
        rows: for each run, item id -> positions of its rows.
        items: manifest rows by item id; empty where the dataset cannot be read.
    """

    runs: RunSet
    dataset: Dataset | None
    notes: list[str]
    place: dict[str, int] = field(default_factory=dict)
    rows: list[dict[str, list[int]]] = field(default_factory=list)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)


def made_ready(runs: RunSet, dataset: Dataset | None, notes: list[str]) -> Shown:
    """Items in the manifest's order, those the manifest does not name behind them."""
    shown = Shown(runs, dataset, notes)
    if dataset is not None:
        records = dataset.items.astype(object).to_dict("records")
        shown.items = {str(row["item_id"]): {str(k): v for k, v in row.items()} for row in records}
    asked = dict.fromkeys(str(i) for run in runs.runs for i in run.predictions["item_id"])
    ordered = [i for i in shown.items if i in asked] + [i for i in asked if i not in shown.items]
    shown.place = {item_id: number for number, item_id in enumerate(ordered)}
    for run in runs.runs:
        places: dict[str, list[int]] = {}
        for position, item_id in enumerate(run.predictions["item_id"]):
            places.setdefault(str(item_id), []).append(position)
        shown.rows.append(places)
    return shown


def index(shown: Shown) -> dict[str, Any]:
    """Everything the page filters and sorts by.

    Labels and statuses are numbers into their lists, `NONE` where there is none.
    """
    runs = shown.runs
    about = runs.about.dataset
    return {
        "key": runs.key,
        "task": runs.task,
        "dataset": runs.dataset,
        "synthetic": bool(about["synthetic"]),
        "licence": str(about["licence"]),
        "labels": list(runs.labels),
        "ordinal": runs.ordinal,
        "conditions": list(runs.conditions),
        "statuses": list(STATUSES),
        "notes": shown.notes,
        "runs": [
            {
                "name": run.name,
                "verified": run.description.tags.get("verified", ""),
                "written": run.description.written,
                "runner": run.description.tags.get("runner", ""),
            }
            for run in runs.runs
        ],
        "items": _items(shown),
        "cells": [
            _cell(shown, number, condition, rows)
            for number, run in enumerate(runs.runs)
            for condition, rows in run.predictions.groupby("condition", sort=False)
        ],
    }


def _items(shown: Shown) -> dict[str, list[Any]]:
    labels = {label: number for number, label in enumerate(shown.runs.labels)}
    gold: list[int] = [NONE] * len(shown.place)
    group: list[str] = [""] * len(shown.place)
    for run in shown.runs.runs:
        for item_id, label, group_id in zip(
            run.predictions["item_id"],
            run.predictions["gold"],
            run.predictions["group_id"],
            strict=True,
        ):
            number = shown.place[str(item_id)]
            gold[number] = labels.get(str(label), NONE)
            group[number] = str(group_id)
    return {"id": list(shown.place), "group": group, "gold": gold}


def _cell(shown: Shown, run: int, condition: Any, rows: pd.DataFrame) -> dict[str, Any]:
    labels = {label: number for number, label in enumerate(shown.runs.labels)}
    statuses = {status: number for number, status in enumerate(STATUSES)}
    places = [shown.place[str(item_id)] for item_id in rows["item_id"]]
    prediction = np.full(len(shown.place), NONE)
    status = np.full(len(shown.place), NONE)
    prediction[places] = [
        NONE if is_nothing(said) else labels.get(str(said), NONE) for said in rows["prediction"]
    ]
    status[places] = [statuses.get(str(said), NONE) for said in rows["status"]]
    return {
        "run": run,
        "condition": str(condition),
        "prediction": prediction.tolist(),
        "status": status.tolist(),
    }


def item(shown: Shown, item_id: str) -> dict[str, Any] | None:
    """All that is known of one item; None where there is no such item."""
    if item_id not in shown.place:
        return None
    row = shown.items.get(item_id, {})
    return {
        "id": item_id,
        "transcript": _plain(row.get("transcript")),
        "context": _plain(row.get("context")),
        "audio": isinstance(row.get("audio"), str),
        "facts": _facts(row),
        "turns": _turns(shown, row),
        "predictions": [
            {"run": number, **_prediction(record, shown.runs.labels)}
            for number, (run, places) in enumerate(zip(shown.runs.runs, shown.rows, strict=True))
            for record in run.predictions.iloc[places.get(item_id, [])]
            .astype(object)
            .to_dict("records")
        ],
    }


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("session_id", "turn_index", "speaker", "voice", "voices", "techniques", "seconds")
    return {name: said for name in names if (said := _plain(row.get(name))) not in (None, "")}


def _turns(shown: Shown, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """When each line of a dialogue is said; nothing where no sidecar tells, or tells another."""
    if shown.dataset is None or not isinstance(row.get("audio"), str):
        return []
    path = (shown.dataset.folder / row["audio"]).with_suffix(SIDECAR)
    try:
        if not path.resolve().is_relative_to(shown.dataset.folder) or not path.is_file():
            return []
        turns = read_sidecar(path)
    except (OSError, TruthError):
        return []
    lines = [line for line in str(row.get("transcript") or "").splitlines() if line.strip()]
    if len(lines) != len(turns):
        return []
    return [
        {"line": line, "start_s": _plain(turn.start_s), "end_s": _plain(turn.end_s)}
        for line, turn in zip(lines, turns, strict=True)
    ]


def _prediction(record: Mapping[Any, Any], labels: tuple[str, ...]) -> dict[str, Any]:
    of_labels = [f"p_{label}" for label in labels]
    elsewhere = {*_ELSEWHERE, *of_labels}
    shares = [_plain(record.get(name)) for name in of_labels]
    rest = {
        str(name): said
        for name, value in record.items()
        if name not in elsewhere and (said := _plain(value)) not in (None, "")
    }
    said = None if is_nothing(record["prediction"]) else str(record["prediction"])
    return {
        **rest,
        "condition": str(record["condition"]),
        "prediction": said,
        "shares": None if None in shares else shares,
    }


def found(shown: Shown, words: str) -> list[int]:
    """Numbers of the items whose id, transcript or context holds these words, in any case."""
    sought = words.casefold()
    return [
        number
        for item_id, number in shown.place.items()
        if any(
            sought in text.casefold() for text in (item_id, *_texts(shown.items.get(item_id, {})))
        )
    ]


def _texts(row: Mapping[str, Any]) -> list[str]:
    return [row[name] for name in ("transcript", "context") if isinstance(row.get(name), str)]


def _plain(value: Any) -> Any:
    """A cell as JSON has it; None for nothing and for what is not a finite number."""
    if is_nothing(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) else str(value)
