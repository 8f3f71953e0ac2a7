"""Descriptions to labels: the tables, the summary of the runs, the dataset. See `cbt_labels`."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core import ssr
from core.dataset import Dataset, check_inside, write_dataset
from core.datasets.cutting import Finding
from core.datasets.turns_card import said, turns_card
from core.embedding import Embedder, embedder
from core.faults import Fault
from core.replacing import replace_text, replacing
from experiments import label_report
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
    model = embedder(asked.embedder, asked.revision)
    rated = rate(described, model)
    labels = voted(rated)
    asked.output.mkdir(parents=True, exist_ok=True)
    write_table(
        asked.output / "similarities.csv",
        validated(rated, spoken.rated_descriptions(), "similarities.csv"),
    )
    write_table(asked.output / "labels.csv", validated(labels, spoken.ssr_labels(), "labels.csv"))
    report = label_report.report(rated, runs_of(rated), labels, model, _scores(asked))
    # Nothing of an earlier labelling stays beside this one.
    for name in label_report.TABLES:
        (asked.output / f"{name}.csv").unlink(missing_ok=True)
    for name, table in report.tables.items():
        write_table(asked.output / f"{name}.csv", table)
    about = _about(asked, model, report)
    parts, dataset_hash = [report.text], None
    if asked.turns:
        dataset, text = _dataset(asked, labels, about)
        parts.append(text)
        dataset_hash = dataset.hash
    ended = {**about, "dataset_hash": dataset_hash, "figures": report.figures}
    _write_json(asked.output / "labels.json", ended)
    return "\n".join(parts)


def _scores(asked: Asked) -> pd.DataFrame | None:
    if asked.scores is None:
        return None
    return validated(read_table(asked.scores), spoken.scores(), str(asked.scores))


def _about(asked: Asked, model: Embedder, report: label_report.LabelReport) -> dict[str, Any]:
    """Everything that decides a label, for whoever reads the dataset later."""
    sidecar = asked.descriptions.with_suffix(".json")
    described: dict[str, Any] | None = None
    if sidecar.is_file():
        try:
            told = dict(json.loads(sidecar.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise OptionError(f"{sidecar}: not as cbt_describe writes it ({error}).") from error
        names = ("model", "host", "decides", "images", "runs", "temperature", "top_p", "seed")
        described = {name: told.get(name) for name in (*names, "prompt", "prompt_sha256")}
    return {
        "labels_by": "ssr",
        "described_by": described,
        "descriptions_sha256": sha256(asked.descriptions.read_bytes()).hexdigest(),
        "embedder": model.name,
        "soft_label_temperature": model.temperature,
        "anchors_sha256": sha256("\n".join(ssr.ANCHORS).encode()).hexdigest(),
        "runs": report.runs,
        "runs_within_one": report.figures["within_one_all_runs"],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as stream:
        stream.write((json.dumps(content, indent=1) + "\n").encode())


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
    runs = runs_of(rated)
    labels = ssr.vote(runs.to_numpy(float))
    shares = rated.groupby("item_id", sort=False)[SHARES].mean()
    table = pd.DataFrame({"item_id": list(runs.index), "label": pd.Series(labels).astype("Int64")})
    table["votes"] = ["|".join(_vote(v) for v in row) for row in runs.to_numpy(float)]
    table["runs"] = runs.notna().sum(axis=1).to_numpy(int)
    table[SHARES] = shares.loc[runs.index].to_numpy(float)
    return table


def _dataset(asked: Asked, labels: pd.DataFrame, about: dict[str, Any]) -> tuple[Dataset, str]:
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
    check_inside(path, list(items["audio"]))
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
        about={**about, "turns_without_a_label": len(turns) - len(items)},
    )
    return dataset, _said(dataset, turns)


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


def runs_of(rated: pd.DataFrame) -> pd.DataFrame:
    """(turns, runs) labels as float, NaN where a run has none; turns as they first appear."""
    table = rated.pivot(index="item_id", columns="run", values="label").astype("Float64")
    return table.loc[list(dict.fromkeys(rated["item_id"]))].astype(float)


def _vote(label: float) -> str:
    return "-" if np.isnan(label) else str(int(label))
