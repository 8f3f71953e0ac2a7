"""The study's tables for each condition, and accuracy by voice and accent, with intervals.

Tables 3 to 5 keep the paper's layout; a column names the condition, and every share has its
95 % interval: bootstrap where a figure is made of several counts, Wilson's where it is one share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.metrics import binary
from core.metrics.tactics import tactic_distribution
from core.scoring import by_condition
from core.speech.voices import voice_pool
from core.stats.bootstrap import bootstrap
from core.stats.proportion import wilson
from core.tasks import Table

NOT_NAMED = "(not named)"
_REPORT = {
    "GT=YES": ("precision_yes", "recall_yes", "f1_yes"),
    "GT=NO": ("precision_no", "recall_no", "f1_no"),
    "Macro avg": ("macro_precision", "macro_recall", "macro_f1"),
    "Weighted avg": ("weighted_precision", "weighted_recall", "weighted_f1"),
}
_FLOATS = ("expected", "choice_mass", "seconds_given", "seconds_used", "latency_s")


def typed(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Rows as a predictions table: the columns of every task, then those of this one."""
    names = [
        *("item_id", "prediction", "gold", "condition", "status", "reason", "expected"),
        *("choice_mass", *(f"p_{label}" for label in labels), "text", "group_id"),
        *("seconds_given", "seconds_used", "latency_s", "request_id", *columns),
    ]
    numbers = {*_FLOATS, *(f"p_{label}" for label in labels)}
    numbers |= {"position_bias", "quote_turn", "quote_ratio"} & set(columns)
    # A column at a time: a frame made of rows is made again for the type of each column.
    return pd.DataFrame(
        {
            name: pd.Series(
                [row.get(name) for row in rows], dtype="float64" if name in numbers else "object"
            )
            for name in names
        }
    )


def report(
    predictions: pd.DataFrame, conditions: Sequence[str], *, resamples: int, seed: int
) -> list[Table]:
    """Tables 3 to 5, and the breakdown where the manifest names voices.

    Source: SpeechMentalManip, tables 3, 4 and 5.
    """
    cells = by_condition(predictions, conditions)
    tables = []
    for condition, rows in cells.items():
        counts = binary.counts(rows["gold"], rows["prediction"])
        tables += [
            Table(
                f"table_3_classification_{condition}",
                f"Table 3, {condition}: classification report",
                _classification(counts, resamples=resamples, seed=seed),
            ),
            Table(
                f"table_3_per_set_{condition}",
                f"Table 3, {condition}: per-set accuracy",
                per_set(counts),
            ),
        ]
        for number, gold in ((4, "YES"), (5, "NO")):
            of_set = rows[rows["gold"] == gold]
            said = of_set["prediction"].value_counts(dropna=False)
            title = (
                f"Table {number}, {condition}: tactics within clips predicted YES, GT={gold} "
                f"(N={len(of_set)}; predicted YES={said.get('YES', 0)}, NO={said.get('NO', 0)}, "
                f"no answer={int(of_set['prediction'].isna().sum())})"
            )
            name = f"table_{number}_tactics_of_{gold}_{condition}"
            tables.append(Table(name, title, _tactics(of_set)))
    voices = [by_voice(condition, rows) for condition, rows in cells.items()]
    if voiced := pd.concat([frame for frame in voices if len(frame)] or [pd.DataFrame()]).to_dict(
        "list"
    ):
        title = "Accuracy by voice and accent: a clip counts for each of its speakers"
        tables.append(Table("by_voice", title, pd.DataFrame(voiced), shown=False))
    return tables


def _classification(counts: binary.Counts, *, resamples: int, seed: int) -> pd.DataFrame:
    names = [name for of_class in _REPORT.values() for name in of_class]
    metrics = {name: binary.METRICS[name] for name in names}
    found = bootstrap(counts, metrics, resamples=resamples, seed=seed)
    size = binary.report(counts)["N"]
    rows = []
    for of_class, cells in _REPORT.items():
        row: dict[str, Any] = {"Class": of_class}
        for column, name in zip(("Precision", "Recall", "F1"), cells, strict=True):
            row[column] = float(found[name].value)
            row[f"{column} low"] = float(found[name].low)
            row[f"{column} high"] = float(found[name].high)
        rows.append(row | {"N": int(size[of_class])})
    return pd.DataFrame(rows)


def per_set(counts: binary.Counts) -> pd.DataFrame:
    """Table 3, bottom, of one (2, 3) table: a row a gold set, Wilson's interval beside Acc."""
    table = binary.per_set(counts).rename(columns={"Low": "Acc low", "High": "Acc high"})
    table.insert(0, "Set", table.index)
    return table.reset_index(drop=True)


def _tactics(rows: pd.DataFrame) -> pd.DataFrame:
    named = rows.loc[rows["prediction"] == "YES", "tactic"].fillna(NOT_NAMED)
    table = tactic_distribution(named)
    low, high = wilson(table["Count"].to_numpy(), np.full(len(table), len(named)))
    return table.assign(**{"% low": 100 * low, "% high": 100 * high})


def by_voice(condition: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of one cell by voice and by accent, Wilson's intervals beside; empty for no voices.

    Returns:
        Columns Condition, By ("voice" or "accent"), Value, Acc, Acc YES and Acc NO each with low
        and high, Answered, N.
    """
    found = []
    groups = dict(_groups(rows))
    for (kind, value), members in sorted(groups.items(), key=lambda entry: entry[0]):
        of_group = rows.loc[members]
        counts = binary.counts(of_group["gold"], of_group["prediction"])
        hits, size = np.array([counts[0, 0], counts[1, 1]]), binary.support(counts)
        row: dict[str, Any] = {"Condition": condition, "By": kind, "Value": value}
        for name, right, answered in (
            ("Acc", hits.sum(), size.sum()),
            ("Acc YES", hits[0], size[0]),
            ("Acc NO", hits[1], size[1]),
        ):
            low, high = wilson(right, answered)
            row[name] = float(right / answered) if answered else np.nan
            row |= {f"{name} low": float(low), f"{name} high": float(high)}
        found.append(row | {"Answered": int(size.sum()), "N": len(of_group)})
    return pd.DataFrame(found)


def _groups(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], list[Any]]]:
    """Index labels of the rows of each voice and each accent."""
    accents = {
        voice.name: voice.accent for pool in ("kokoro", "elevenlabs") for voice in voice_pool(pool)
    }
    members: dict[tuple[str, str], list[Any]] = {}
    for label, voices in rows["voices"].items():
        names = {name.strip() for name in voices.split(",")} if isinstance(voices, str) else set()
        of_row = {("voice", name) for name in names if name}
        of_row |= {("accent", accents[name]) for name in names if name in accents}
        for key in of_row:
            members.setdefault(key, []).append(label)
    yield from members.items()
