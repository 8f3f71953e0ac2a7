"""What each stage from recordings to labels left in its folder, as figures for MLflow.

Read from the folders alone, so that a stage run by itself and one run by build_cbt say the
same. Files that hold words of the recordings are listed apart from those that do not: a
tracking store on another machine is not sent them without leave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from core.ssr import LEVELS
from experiments.label_report import TABLES
from experiments.options import OptionError


@dataclass(frozen=True)
class Stage:
    """One stage's part of a run.

    Attributes:
        name: words, turns, descriptions, scores or labels; begins each metric's name.
        headline: one line.
        metrics: name -> value, without the stage's name.
        parameters: what decided it.
        files: artifact name -> file without words of the recordings.
        spoken: artifact name -> file or folder with words of the recordings.
        tables: artifact name -> table without words of the recordings.
        dataset: name, digest, source and profile, or None.
    """

    name: str
    headline: str
    metrics: Mapping[str, float]
    parameters: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    spoken: Mapping[str, Path] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    dataset: Mapping[str, str] | None = None
    synthetic: bool = False


def words_stage(folder: Path) -> Stage:
    """What cbt_words left: every recording that was transcribed."""
    rows = []
    for path in sorted((folder / "speech").glob("*.json")):
        note = _json(path)
        cut = str(note.get("over_silence") or "")
        rows.append(
            {
                "session_id": path.stem,
                **{name: note.get(name) for name in ("words", "speakers", "seconds")},
                "words_over_silence": len(cut.split()),
                "by": note.get("version"),
            }
        )
    columns = ["session_id", "words", "speakers", "seconds", "words_over_silence", "by"]
    table = pd.DataFrame(rows, columns=columns)
    seconds, words = float(table["seconds"].sum()), int(table["words"].sum())
    cut_words = int(table["words_over_silence"].sum())
    return Stage(
        name="words",
        headline=f"{len(table):,} recordings, {seconds / 3600:.2f} h, {words:,} words",
        metrics={
            "recordings": len(table),
            "hours": seconds / 3600,
            "kept": words,
            "before_silence_rule": words + cut_words,
            "recordings_without_two_speakers": int((table["speakers"] != 2).sum()),
        },
        parameters={"by": ", ".join(sorted({str(by) for by in table["by"]}))},
        tables={"recordings.json": table},
        spoken={"words": folder},
    )


def turns_stage(folder: Path) -> Stage:
    """What cbt_turns left: counts before and after each rule, roles, findings, clips."""
    rules, roles = pd.read_csv(folder / "rules.csv"), pd.read_csv(folder / "roles.csv", dtype=str)
    report = pd.read_csv(folder / "data_report.csv", dtype={"item_id": str, "session_id": str})
    counts = rules.groupby("name", sort=False)[["before", "after"]].sum()
    metrics: dict[str, float] = {"recordings": rules["session_id"].nunique()}
    for place, (name, row) in enumerate(counts.iterrows(), start=1):
        label = f"rule_{place}_{'_'.join(str(name).replace('.', '').split())}"
        metrics |= {f"{label}.before": int(row["before"]), f"{label}.after": int(row["after"])}
    path = folder / "unlabelled.parquet"
    clips = pd.read_parquet(path) if path.is_file() else pd.DataFrame({"seconds": []})
    metrics |= {
        "clips": len(clips),
        "hours": float(clips["seconds"].sum() / 3600),
        "clip_seconds.mean": float(clips["seconds"].mean()),
        "clip_seconds.median": float(clips["seconds"].median()),
        "recordings_left_out": report.loc[report["kept"] == "no", "session_id"].nunique(),
    }
    return Stage(
        name="turns",
        headline=f"{len(clips):,} patient turns of {int(metrics['recordings']):,} recordings",
        metrics=metrics,
        parameters={"roles_by": ", ".join(sorted(set(roles["by"].dropna())))},
        files={name: folder / name for name in ("rules.csv", "roles.csv", "data_report.csv")},
        spoken={"turns": folder / "turns", **({path.name: path} if path.is_file() else {})},
        tables={"rules.json": counts.reset_index()},
    )


def described_stage(folder: Path, kind: str) -> Stage:
    """What cbt_describe left: how much was asked of whom, how it ended, at what cost."""
    about = _json(folder / f"{kind}.json")
    answers = dict(about["answers"])
    return Stage(
        name=kind,
        headline=f"{about['requests']:,} answers of {about['model']}",
        metrics={
            "turns": about["turns"],
            "requests": about["requests"],
            "asked_in_this_run": about["asked"],
            "minutes_asked": about["minutes"],
            "dollars_estimated": about["dollars"],
            "prompt_tokens": about["prompt_tokens"],
            **{f"status_{status}": count for status, count in answers.items()},
        },
        parameters={
            name: str(about[name])
            for name in ("model", "host", "runs", "temperature", "top_p", "seed", "prompt_sha256")
        },
        files={f"{kind}.json": folder / f"{kind}.json"},
        spoken={
            f"{kind}.csv": folder / f"{kind}.csv",
            f"{kind}-responses.jsonl": folder / f"{kind}-responses.jsonl",
        },
    )


def labels_stage(folder: Path) -> Stage:
    """What cbt_labels left: the labels, their stability, the embedding's own bias."""
    about = _json(folder / "labels.json")
    labels = pd.read_csv(folder / "labels.csv", dtype={"item_id": str})
    dataset = _json(folder / "dataset.json") if about["dataset_hash"] else None
    tables = TABLES
    return Stage(
        name="labels",
        headline=f"{int(labels['label'].notna().sum()):,} of {len(labels):,} turns labelled",
        metrics={
            "turns": len(labels),
            "labelled": int(labels["label"].notna().sum()),
            **{f"label_{level}": int((labels["label"] == level).sum()) for level in LEVELS},
            **{name: value for name, value in about["figures"].items() if value is not None},
        },
        parameters={
            "embedder": str(about["embedder"]),
            "described_by": str((about.get("described_by") or {}).get("model", "not known")),
            "descriptions_sha256": str(about["descriptions_sha256"]),
        },
        files={
            name: folder / name
            for name in ("labels.json", "card.md", *(f"{table}.csv" for table in tables))
            if (folder / name).is_file() and (dataset or name != "card.md")
        },
        spoken={name: folder / name for name in ("similarities.csv", "labels.csv")},
        tables={
            f"{name}.json": pd.read_csv(path)
            for name in tables
            if (path := folder / f"{name}.csv").is_file()
        },
        dataset=None if dataset is None else _dataset(dataset, folder),
        synthetic=bool(dataset and dataset.get("synthetic")),
    )


def _dataset(about: Mapping[str, Any], folder: Path) -> dict[str, str]:
    return {
        "name": str(about["name"]),
        # MLflow takes 36 characters of a digest.
        "digest": str(about["hash"])[:32],
        "source": str(folder),
        "profile": json.dumps({"items": about.get("counts", {}).get("items")}),
    }


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{path}: not readable ({error}); run its stage again.") from error
    return found
