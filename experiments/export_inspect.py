"""Runs as logs of Inspect (inspect_ai), so that its viewer and its data frames open them.

One log a run and condition, in Inspect's JSON log format (version 2): a sample an item, its
answer as the model's message, a score with the distribution beside it, and our metrics with
their intervals. An item without an answer is a sample without one, with its reason.

Source: inspect.aisi.org.uk/eval-logs.html and `inspect_ai.log.EvalLog` of inspect_ai 0.3.285.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.manifest import is_nothing
from core.protocol import digest
from core.replacing import replace_text
from experiments.export_tables import metric_rows, prediction_table, run_row

if TYPE_CHECKING:
    import pandas as pd

    from experiments.run_sets import KeptRun, RunSet

VERSION = 2
WITHHELD = "(words left out, as transcripts were not asked for; the dataset is under {licence})"
_OURS = re.compile(r"\d{4}-\d\d-\d\dT[\d+-]+_[a-z]+-[\w+-]+_[0-9a-f]{22}\.json")
# Inspect's words for why there is no score.
_WHY = {"refused": "refusal", "unparsed": "invalid_response_format", "truncated": "no_response"}


def write_inspect(
    sets: Sequence[RunSet], folder: Path, *, transcripts: bool, data: Path | None
) -> list[str]:
    """Write the logs; gives a line on each.

    Raises:
        RunDescriptionError: a run's files, or words asked for, are not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in folder.iterdir():
        # A log of an earlier export may hold words that were not asked for this time.
        if _OURS.fullmatch(earlier.name):
            earlier.unlink()
    told = []
    for found in sets:
        table = prediction_table(found, transcripts=transcripts, data=data)
        names = table["run"].unique()
        for run, name in zip(found.runs, names, strict=True):
            metrics = metric_rows(run)
            for condition, rows in table[table["run"] == name].groupby("condition", sort=False):
                log = eval_log(found, run, str(condition), rows, metrics)
                path = folder / file_name(log)
                replace_text(path, json.dumps(log, ensure_ascii=True, allow_nan=False))
                told.append(f"{path.name}: {len(rows):,} samples")
    return told


def file_name(log: Mapping[str, Any]) -> str:
    """As Inspect names its logs, which is how its viewer knows them: time, task and id."""
    said = log["eval"]
    task = said["task"].replace("_", "-").replace("/", "-")
    return f"{said['created'].replace(':', '-')}_{task}_{said['task_id'][:22]}.json"


def eval_log(
    runs: RunSet,
    run: KeptRun,
    condition: str,
    rows: pd.DataFrame,
    metrics: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The log of one run in one condition.

    Args:
        rows: of `export_tables.prediction_table`.
        metrics: of `export_tables.metric_rows`, of all conditions.
    """
    row = run_row(run)
    model = f"undertone/{row['model']}"
    key = digest({"run": row["run"], "condition": condition, "written": row["written"]})
    settings = json.loads(row["settings"])
    samples = [
        _sample(record, runs, model, row["dataset_licence"])
        for record in rows.astype(object).to_dict("records")
    ]
    known = ("revision", "precision", "image", "runner", "family", "verified")
    about = ("run", "dataset_hash", "dataset_licence", "dataset_source", "synthetic")
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": key[:22],
            "run_id": digest({"run": row["run"], "written": row["written"]})[:22],
            "created": row["written"],
            "task": f"{runs.task}_{condition}",
            "task_id": key[:22],
            "task_version": 0,
            "task_attribs": {},
            "task_args": {"condition": condition},
            "dataset": {
                "name": row["dataset"],
                "samples": len(samples),
                "sample_ids": [sample["id"] for sample in samples],
                "shuffled": False,
            },
            "model": model,
            "model_args": {name: row[name] for name in known},
            "config": {"epochs": 1},
            "packages": {"undertone": version("undertone")},
            "metadata": {
                "condition": condition,
                **{name: row[name] for name in about},
                "settings": settings,
            },
        },
        "plan": {
            "name": "undertone",
            "steps": [{"solver": "undertone/evaluate", "params": {"condition": condition}}],
            "config": {},
        },
        "results": _results(runs, condition, rows, metrics),
        "stats": {"started_at": row["written"], "completed_at": row["written"], "model_usage": {}},
        "samples": samples,
    }


def _scorer(runs: RunSet) -> str:
    return "absolute_error" if runs.ordinal else "correct"


def _results(
    runs: RunSet, condition: str, rows: pd.DataFrame, metrics: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    own = [each for each in metrics if each["condition"] == condition]
    answered = int(rows["prediction"].notna().sum())
    shown = {
        each["metric"]: {
            "name": each["metric"],
            "value": each["value"],
            "params": {},
            "metadata": {name: each[name] for name in ("low", "high", "n", "n_total")},
        }
        for each in own
        if each["value"] is not None
    }
    return {
        "total_samples": len(rows),
        "completed_samples": len(rows),
        "scores": [
            {
                "name": _scorer(runs),
                "scorer": _scorer(runs),
                "scored_samples": answered,
                "unscored_samples": len(rows) - answered,
                "params": {},
                "metrics": shown,
            }
        ],
        "metadata": {
            "statuses": {str(k): int(v) for k, v in rows["status"].value_counts().items()},
            # A number is asked for where Inspect has a metric; these are none.
            "undefined": {e["metric"]: e["reason"] for e in own if e["value"] is None},
        },
    }


def _sample(record: Mapping[Any, Any], runs: RunSet, model: str, licence: str) -> dict[str, Any]:
    text = record["text"] if isinstance(record["text"], str) else ""
    said = _words(record) or WITHHELD.format(licence=licence)
    stop = "stop" if record["status"] == "ok" else "unknown"
    answer = {"role": "assistant", "content": text, "source": "generate"}
    seen = ("item_id", "gold", "text", "transcript", "context", "family", "revision", "model")
    rest = {
        str(name): plain
        for name, value in record.items()
        if name not in (*seen, "run") and (plain := _plain(value)) is not None
    }
    return {
        "id": str(record["item_id"]),
        "epoch": 1,
        "input": said,
        "choices": list(runs.labels),
        "target": str(record["gold"]),
        "messages": [{"role": "user", "content": said, "source": "input"}, answer],
        "output": {"model": model, "choices": [{"message": answer, "stop_reason": stop}]},
        "scores": {_scorer(runs): _score(record, runs)},
        "metadata": rest,
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }


def _score(record: Mapping[Any, Any], runs: RunSet) -> dict[str, Any]:
    shares = {label: _plain(record[f"p_{label}"]) for label in runs.labels}
    if is_nothing(record["prediction"]):
        why = _plain(record["reason"]) or "no reason in words that may be handed on"
        return {
            # Inspect's sign for no answer: it is not counted as a wrong one.
            "value": "N",
            "explanation": f"{record['status']}: {why}",
            "reason": _WHY.get(str(record["status"]), "no_response"),
            "metadata": {"shares": shares},
        }
    said, gold = str(record["prediction"]), str(record["gold"])
    value = abs(int(said) - int(gold)) if runs.ordinal else ("C" if said == gold else "I")
    return {"value": value, "answer": said, "metadata": {"shares": shares}}


def _words(record: Mapping[Any, Any]) -> str:
    context, transcript = (record.get(name) for name in ("context", "transcript"))
    parts = [part for part in (context, transcript) if isinstance(part, str) and part.strip()]
    return "\n\n".join(parts)


def _plain(value: Any) -> Any:
    if is_nothing(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, str | int | float | bool) else str(plain)
