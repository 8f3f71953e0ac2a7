"""Run folders as `evaluate` leaves them, written in a moment: no model is asked."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import soundfile

from core.dataset import write_dataset

LABELS = {"distress": ("1", "2", "3", "4", "5"), "manipulation": ("YES", "NO")}


def tone(path: Path, seconds: float = 1.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(int(16_000 * seconds)) / 16_000
    soundfile.write(path, 0.1 * np.sin(2 * np.pi * 220 * time), 16_000)


def turns(folder: Path, transcripts: dict[str, str], context: str = "Therapist: And then?"):
    """A dataset of turns by item id, all with the same clip; labels go round 1 to 5."""
    tone(folder / "audio" / "clip.wav")
    rows = [
        {
            "item_id": item_id,
            "session_id": f"session {number // 20}",
            "turn_index": number,
            "audio": "audio/clip.wav",
            "transcript": transcript,
            "context": context,
            "label": number % 5 + 1,
        }
        for number, (item_id, transcript) in enumerate(transcripts.items())
    ]
    return write_dataset(
        folder,
        pd.DataFrame(rows),
        name="turns",
        task="distress",
        licence="CC-BY-NC-4.0",
        source="made for a test",
        synthetic=True,
    )


def answers(dataset, condition: str, offset: int = 0, **columns) -> pd.DataFrame:
    """Predictions that are the label plus an offset, and wrap; see `validation.schemas`."""
    gold = dataset.items["label"].to_numpy()
    predicted = (gold - 1 + offset) % 5 + 1
    shares = {f"p_{label}": np.where(predicted == label, 0.6, 0.1) for label in range(1, 6)}
    frame = pd.DataFrame(
        {
            "item_id": dataset.items["item_id"],
            "prediction": pd.array(predicted, dtype="Int64"),
            "gold": pd.array(gold, dtype="Int64"),
            "condition": condition,
            "status": "ok",
            "reason": None,
            "expected": predicted.astype(float),
            "choice_mass": 0.9,
            **shares,
            "text": predicted.astype(str),
            "group_id": dataset.items["session_id"],
            "seconds_given": 1.0,
            "seconds_used": 1.0,
            "latency_s": 0.1,
            "request_id": [f"{condition}{number}" for number in range(len(gold))],
        }
    )
    return frame.assign(**columns)


def keep(output: Path, dataset, model: str, *frames: pd.DataFrame) -> Path:
    """A run folder of a model with these predictions; gives the folder."""
    place = f"{dataset.name}-{dataset.hash[:8]}"
    folder = output / dataset.task / place / model
    folder.mkdir(parents=True)
    predictions = pd.concat(frames, ignore_index=True)
    predictions.to_parquet(folder / "predictions.parquet", index=False)
    conditions = list(predictions["condition"].unique())
    estimates = [
        {"metric": "mae", "condition": c, "value": 1.0, "low": 0.5, "high": None, "n": 2}
        | {"n_total": 3, "reason": None}
        for c in conditions
    ]
    (folder / "metrics.json").write_text(json.dumps(estimates))
    said = {
        "schema": 1,
        "written": "2026-01-02T03:04:05+00:00",
        "parameters": {
            "model": model,
            "task": dataset.task,
            "dataset_hash": dataset.hash,
            "conditions": ",".join(conditions),
            "revision": "abc",
            "seed": "0",
            "data": str(dataset.folder),
            "prompts": "distress/ao:123456789abc",
        },
        "tags": {"family": "test", "verified": "weights", "runner": "process", "revision": "abc"},
        "dataset": {
            "name": dataset.name,
            "hash": dataset.hash,
            "folder": str(dataset.folder),
            "licence": dataset.licence,
            "source": dataset.source,
            "synthetic": dataset.synthetic,
            "items": len(dataset.items),
        },
    }
    (folder / "run.json").write_text(json.dumps(said))
    return folder
