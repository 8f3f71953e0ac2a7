"""Descriptions to labels: the tables, the summary of the runs, the dataset. See `cbt_labels`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import ssr
from core.dataset import Dataset, write_dataset
from core.datasets.cutting import Finding
from core.datasets.turns_card import said, turns_card
from core.embedding import Embedder, embedder
from core.faults import Fault
from core.replacing import replace_text, replacing
from experiments.options import OptionError
from experiments.spoken_files import read_table, write_table
from validation import spoken
from validation.schemas import TableError, validated

if TYPE_CHECKING:
    from experiments.cbt_labels import Asked


COSINES = [f"cosine_{level}" for level in ssr.LEVELS]
SHARES = [f"p_{level}" for level in ssr.LEVELS]


def label(asked: Asked) -> str:
    """Write the tables, and the dataset where turns are given; returns what to print.

    Raises:
        TableError: a table that is not as described.
        EmbeddingError: the embedding model cannot be loaded.
    """
    source = str(asked.descriptions)
    described = validated(read_table(asked.descriptions), spoken.descriptions(), source)
    model = embedder(asked.embedder)
    rated = rate(described, model)
    labels = voted(rated)
    asked.output.mkdir(parents=True, exist_ok=True)
    write_table(
        asked.output / "similarities.csv",
        validated(rated, spoken.rated_descriptions(), "similarities.csv"),
    )
    write_table(asked.output / "labels.csv", validated(labels, spoken.ssr_labels(), "labels.csv"))
    parts = [summary(rated, labels, model)]
    if asked.scores:
        parts.append(compared(labels, asked.scores))
    if asked.turns:
        parts.append(_dataset(asked, labels, model.name))
    return "\n".join(parts)


def rate(described: pd.DataFrame, model: Embedder) -> pd.DataFrame:
    """Each description with its cosines, label and soft label; a blank one has none."""
    rated = described[["item_id", "run", "description"]].reset_index(drop=True)
    words = [
        text if isinstance(text, str) and text.strip() else None for text in rated["description"]
    ]
    there = np.array([text is not None for text in words], dtype=bool)
    cosines = ssr.similarities(model, [text for text in words if text is not None])
    values = np.full((len(rated), len(ssr.LEVELS)), np.nan)
    shares, found = values.copy(), np.full(len(rated), np.nan)
    if there.any():
        values[there] = cosines
        shares[there] = ssr.soft_label(cosines, model.temperature)
        found[there] = ssr.nearest(cosines)
    rated[COSINES] = values
    rated["label"] = pd.Series(found).astype("Int64")
    rated[SHARES] = shares
    return rated


def voted(rated: pd.DataFrame) -> pd.DataFrame:
    """A row a turn, in the order the turns first appear."""
    runs = _runs(rated)
    labels = ssr.vote(runs.to_numpy(float))
    shares = rated.groupby("item_id", sort=False)[SHARES].mean()
    table = pd.DataFrame({"item_id": list(runs.index), "label": pd.Series(labels).astype("Int64")})
    table["votes"] = ["|".join(_vote(v) for v in row) for row in runs.to_numpy(float)]
    table["runs"] = runs.notna().sum(axis=1).to_numpy(int)
    table[SHARES] = shares.loc[runs.index].to_numpy(float)
    return table


def summary(rated: pd.DataFrame, labels: pd.DataFrame, model: Embedder) -> str:
    """What a reader needs to trust or doubt these labels."""
    runs = _runs(rated)
    unlabelled = int(labels["label"].isna().sum())
    blank = int(rated["label"].isna().sum())
    lines = [
        f"{len(labels):,} turns, {runs.shape[1]} runs, embedded by {model.name}",
        f"- without a label: {unlabelled:,} turns; descriptions without words: {blank:,}",
    ]
    for run in runs.columns:
        lines.append(f"- run {run}: {_spread(runs[run].to_numpy(float))}")
    lines.append(f"- voted: {_spread(labels['label'].astype('Float64').astype(float).to_numpy())}")
    if runs.shape[1] > 1:
        share = ssr.within_one(runs.to_numpy(float))
        lines.append(f"- all runs within one level: {share:.1%} of turns (the study: 94.3 %)")
    shown = ssr.bias(model)
    right = sum(one.level == found for one, found in shown)
    lines.append(
        f"- {right} of {len(shown)} example descriptions get the level they were written for:"
    )
    for level in ssr.LEVELS:
        got = ", ".join(str(found) for one, found in shown if one.level == level)
        lines.append(f"  - written for {level}: {got}")
    return "\n".join(lines)


def compared(labels: pd.DataFrame, path: Path) -> str:
    """Numbers asked for directly beside the labels (appendix B.3)."""
    scores = validated(read_table(path), spoken.scores(), str(path))
    runs = scores.pivot(index="item_id", columns="run", values="score").astype(float)
    direct = pd.Series(ssr.vote(runs.to_numpy(float)), index=runs.index)
    both = (
        labels.set_index("item_id")["label"]
        .astype(float)
        .to_frame("ssr")
        .join(direct.rename("direct"), how="inner")
        .dropna()
    )
    if both.empty:
        return f"- scores: no turn of {path} has a label"
    apart = (both["ssr"] - both["direct"]).abs()
    return "\n".join(
        [
            f"- asked for directly: {_spread(direct.to_numpy(float))}",
            f"- labels and direct scores on {len(both):,} turns: equal {np.mean(apart == 0):.1%}, "
            f"within one level {np.mean(apart <= 1):.1%}",
        ]
    )


def _dataset(asked: Asked, labels: pd.DataFrame, model: str) -> str:
    assert asked.turns is not None
    path = asked.turns / "unlabelled.parquet"
    turns = validated(read_table(path), spoken.unlabelled(), str(path))
    unknown = sorted(set(labels["item_id"]) - set(turns["item_id"]))
    if unknown:
        faults = [Fault(None, "item_id", f"a turn of {path}", name) for name in unknown]
        raise TableError(str(asked.descriptions), faults, "Describe the turns of this folder.")
    items = turns.merge(labels.dropna(subset="label"), on="item_id", validate="one_to_one")
    if items.empty:
        raise OptionError(f"descriptions: {asked.descriptions} gives no turn a label.")
    for name in items["audio"]:
        _link(asked.turns / name, asked.output / name)
    columns = ["item_id", "session_id", "turn_index", "audio", "transcript", "context", "label"]
    dataset = write_dataset(
        asked.output,
        items[[*columns, "speaker", "seconds"]],
        name=asked.name,
        task="distress",
        manifest="turns",
        licence=asked.licence,
        source="own recordings, labelled by semantic similarity rating",
        synthetic=asked.synthetic,
        about={
            "labels_by": "ssr",
            "embedder": model,
            "runs": int(labels["runs"].max()),
            "turns_without_a_label": len(turns) - len(items),
        },
    )
    return _said(dataset, turns)


def _said(dataset: Dataset, turns: pd.DataFrame) -> str:
    labelled = set(dataset.items["item_id"])
    lost = [
        Finding(name, session, "no_label", "no run has words", 1, kept=False)
        for name, session in zip(turns["item_id"], turns["session_id"], strict=True)
        if name not in labelled
    ]
    sessions = turns["session_id"].nunique()
    card = turns_card(dataset.name, dataset.items, len(turns), sessions, lost)
    text = said(card)
    replace_text(dataset.folder / "card.md", text + "\n")
    return f"{text}\n{dataset.folder}: hash {dataset.hash}"


def _link(source: Path, target: Path) -> None:
    """The clip in the dataset, without a second copy on the disk where that can be."""
    if target.exists() and target.samefile(source):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        with source.open("rb") as original, replacing(target) as stream:
            shutil.copyfileobj(original, stream)


def _runs(rated: pd.DataFrame) -> pd.DataFrame:
    """(turns, runs) labels as float, NaN where a run has none; turns as they first appear."""
    table = rated.pivot(index="item_id", columns="run", values="label").astype("Float64")
    return table.loc[list(dict.fromkeys(rated["item_id"]))].astype(float)


def _vote(label: float) -> str:
    return "-" if np.isnan(label) else str(int(label))


def _spread(labels: NDArray[Any]) -> str:
    counts = ssr.distribution(labels)
    total = max(sum(counts.values()), 1)
    return ", ".join(f"{level}: {count:,} ({count / total:.0%})" for level, count in counts.items())
