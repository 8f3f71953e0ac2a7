"""Runs as a folder for the Hugging Face Hub: parquet tables, and a card that explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.replacing import replace_text, replacing
from experiments.export_tables import (
    METRIC_COLUMNS,
    PREDICTION_COLUMNS,
    RUN_COLUMNS,
    metric_rows,
    prediction_table,
    run_row,
)

if TYPE_CHECKING:
    import pandas as pd

    from experiments.run_sets import RunSet


def write_hf(
    sets: Sequence[RunSet], folder: Path, *, transcripts: bool, licence: str, data: Path | None
) -> list[str]:
    """Write the folder; gives a line on each file.

    Args:
        licence: of these tables, as the Hub names it; "" for none chosen yet.
        transcripts: whether the datasets' words are in the tables.

    Raises:
        RunDescriptionError: a run's files, or words asked for, are not there.
    """
    import pandas as pd

    runs = [run for found in sets for run in found.runs]
    metrics = [row for run in runs for row in metric_rows(run)]
    tables: dict[str, pd.DataFrame] = {
        "runs": pd.DataFrame([run_row(run) for run in runs], columns=list(RUN_COLUMNS)),
        "metrics": pd.DataFrame(metrics, columns=list(METRIC_COLUMNS)),
    }
    by_task: dict[str, list[pd.DataFrame]] = {}
    for found in sets:
        table = prediction_table(found, transcripts=transcripts, data=data)
        table.insert(1, "dataset", found.dataset)
        by_task.setdefault(found.task, []).append(table)
    for task, parts in by_task.items():
        tables[f"{task}_predictions"] = pd.concat(parts, ignore_index=True)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for earlier in (folder / "data").glob("*_predictions.parquet"):
        # A table of an earlier export may hold words that were not asked for this time.
        earlier.unlink()
    for name, table in tables.items():
        with replacing(folder / "data" / f"{name}.parquet") as stream:
            table.to_parquet(stream, index=False)
    replace_text(folder / "README.md", card(tables, transcripts=transcripts, licence=licence))
    return [f"data/{name}.parquet: {len(table):,} rows" for name, table in tables.items()]


def card(tables: Mapping[str, pd.DataFrame], *, transcripts: bool, licence: str) -> str:
    """The README.md: a YAML head the Hub reads, then what a reader has to know."""
    runs = tables["runs"]
    configs = "\n".join(
        f"- config_name: {name}\n  data_files: data/{name}.parquet"
        + ("\n  default: true" if name == "metrics" else "")
        for name in tables
    )
    chosen = licence or "other"
    unnamed = "" if licence else "license_name: none-chosen-yet\n"
    sources = runs[
        ["dataset", "task", "dataset_licence", "dataset_source", "synthetic"]
    ].drop_duplicates()
    lines = [
        f"---\nlicense: {chosen}\n{unnamed}pretty_name: Predictions of audio language models\n"
        f"tags:\n- undertone\n- audio-language-models\n- evaluation\nconfigs:\n{configs}\n---\n",
        "# Predictions of audio language models\n",
        "What models answered, item by item, and the metrics of each run, written by Undertone. "
        "Nothing here is a clinical instrument: labels are perceived distress or perceived "
        "manipulation, not a finding about a person.\n",
        _models(runs),
        "## Data the models were given\n",
        _pipes(
            ("dataset", "task", "licence", "source", "synthetic"),
            [[str(cell) for cell in row] for row in sources.itertuples(index=False)],
        ),
        _material(transcripts),
        *(
            f"## `{name}`: {len(table):,} rows\n\n{_pipes(('column', 'meaning'), described)}"
            for name, table, described in _described(tables)
        ),
        "## Reading it\n\n```python\nfrom datasets import load_dataset\n\n"
        'metrics = load_dataset("NAME/REPOSITORY", "metrics", split="train").to_pandas()\n```\n',
    ]
    return "\n".join(lines)


def _models(runs: pd.DataFrame) -> str:
    rows = [
        [str(run.model), str(run.task), f"{run.items:,}", str(run.verified), str(run.revision)]
        for run in runs.itertuples()
    ]
    table = _pipes(("model", "task", "items", "verified", "revision"), rows)
    untried = runs.loc[runs["verified"] != "weights", "model"].unique()
    if not len(untried):
        return table
    return f"{table}\nNot yet proven with its real weights: {', '.join(sorted(untried))}.\n"


def _material(transcripts: bool) -> str:
    if transcripts:
        return (
            "**These tables hold the datasets' words** (transcripts, contexts, quotes, answers in "
            "full), which are under the licences above. They hold no audio.\n"
        )
    return (
        "These tables hold none of it: no audio, no transcript, no context, no quote, and no "
        "answer in words but those that state a label. Join on `item_id` with the dataset itself.\n"
    )


def _described(
    tables: Mapping[str, pd.DataFrame],
) -> list[tuple[str, pd.DataFrame, list[list[str]]]]:
    of_kind = {"runs": RUN_COLUMNS, "metrics": METRIC_COLUMNS}
    told = []
    for name, table in tables.items():
        columns = of_kind.get(name, {"dataset": "as in runs", **PREDICTION_COLUMNS})
        there = set(table.columns) | {"p_*"}
        rows = [
            [f"`{key}`", meaning]
            for key, meaning in columns.items()
            if there & set(key.split(", "))
        ]
        told.append((name, table, rows))
    return told


def _pipes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(said: str) -> str:
    # A name of a dataset is anybody's text: no cell of it ends its row or becomes markup.
    flat = " ".join(said.split())
    for mark, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("[", "\\[")):
        flat = flat.replace(mark, shown)
    return flat
