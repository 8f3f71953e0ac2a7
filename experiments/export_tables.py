"""Runs as tidy tables that may be handed on: what the models answered, and none of the material.

One row an observation, one table a task. The words of the dataset (transcript, context) and
what may repeat them (an answer that is more than a label, a quote) are left out unless asked
for; paths, addresses and reasons in words that are not ours are always left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.run_description import RunDescriptionError
from experiments.run_sets import KeptRun, RunSet, dataset_of

if TYPE_CHECKING:
    import pandas as pd

# "The answer is 3." states a label; any other word, of any length, may be one that was rated.
LONGEST_ANSWER = 60
_MARKS = r"[\s.,:;!*\"'`(){}\[\]<>/=-]*"
_STATES = (
    rf"{_MARKS}(?:(?:the|my)\b{_MARKS})?"
    r"(?:(?:(?:final )?answer|rating|score|option|(?:distress )?level)\b"
    rf"{_MARKS}(?:is\b{_MARKS})?)?"
    rf"(?:LABEL)(?:{_MARKS}(?:out of 5|LABEL))?{_MARKS}"
)
# What stands for a label in the study's questions.
_LETTERS = {"YES": ("YES", "A", "B"), "NO": ("NO", "A", "B")}
# All reasons of core/parsing, core/detection, core/predictions.py and the runners that hold no
# word of an answer. A server that refuses may say anything, in a field of the same name.
_OWN_REASON = re.compile(
    r"""the\ model\ declined\ to\ answer
    | the\ answer\ is\ empty
    | a\ thinking\ block\ is\ never\ closed
    | \d{1,9}\ characters\ are\ no\ answer\ to\ this\ question
    | an\ error\ message,\ not\ an\ answer
    | the\ text\ was\ cut\ (?:before\ its\ answer\ was\ complete|in\ what\ may\ be\ the\ scale)
    | (?:a\ level\ from\ 1\ to\ 5|yes\ or\ no|A\ or\ B,\ yes\ or\ no)\ is\ not\ stated
    | more\ than\ one\ answer:\ (?:[1-5AB,\ -]|yes|no|or|to){1,30}
    | as\ many\ votes\ for\ YES\ as\ for\ NO:\ \d{1,3}
    | no\ probability\ on\ (?:any\ tactic|a\ letter,\ nor\ on\ yes\ or\ no)
    | (?:no\ tactic|\d{1,2}\ tactics)\ in\ its\ text
    | no\ response | no\ reason\ given
    | the\ clip\ was\ not\ heard\ to\ its\ end
    | used\ \d{1,6}\.\d\ s\ of\ \d{1,6}\.\d\ s\ of\ audio\.
    | the\ text\ ended\ at\ its\ limit\ of\ \d{1,6}\ tokens\.""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
# Parameters that say where on somebody's machine things were, or whom it asked.
PRIVATE = ("data", "output", "endpoint", "offline", "device_map")
_LOCAL_PATH = re.compile(r"(?<!\S)(/|~|[A-Za-z]:\\)\S+")
_MACHINES = ("audio_error", "model_error", "timeout")
_OF_RUN = ("model", "family", "revision")
_REASONS = ("reason", "quote_reason", "tactic_reason")
# The name before a line's colon is the transcript's word too.
_WORDS = ("quote", "quote_speaker", "transcript", "context")
RUN_COLUMNS = {
    "run": "names the run in all tables",
    "model": "a folder of Undertone's containers/",
    "family": "the model's family",
    "revision": "of the weights, as pinned; none where there are none",
    "image": "digest of the container the model ran in, or process",
    "precision": "what the weights were computed in",
    "runner": "how the model was reached",
    "verified": "how far the adapter was proven: weights, tiny or layout",
    "task": "distress or manipulation",
    "dataset": "the dataset's name",
    "dataset_hash": "sha256 over its rows and audio",
    "dataset_licence": "what the dataset is under; these tables hold none of its material",
    "dataset_source": "where it comes from",
    "synthetic": "whether the dataset was made and not recorded from life",
    "items": "items evaluated",
    "settings": "everything else that was asked for, as JSON",
    "written": "when, UTC",
}
METRIC_COLUMNS = {
    "run": "as in runs",
    "model": "as in runs",
    "task": "as in runs",
    "dataset": "as in runs",
    "condition": "AO audio, AT audio and transcript, TO transcript; AT-TO a difference of two",
    "metric": "as Undertone names it; `_all` counts an item without an answer as wrong as can be",
    "value": "null where undefined, and then reason says why",
    "low": "lower end of the 95 % percentile bootstrap interval",
    "high": "upper end",
    "n": "items the value rests on",
    "n_total": "items asked",
    "reason": "why undefined, or what was left out",
}
PREDICTION_COLUMNS = {
    "run": "as in runs",
    "model": "as in runs",
    "family": "as in runs",
    "revision": "as in runs",
    "item_id": "as in the dataset, to join with it",
    "group_id": "the session, or the item itself",
    "condition": "AO audio, AT audio and transcript, TO transcript",
    "gold": "the dataset's label",
    "prediction": "the answer; null where there is none",
    "status": "ok, refused, unparsed, truncated, audio_error, model_error, timeout",
    "reason": "why there is no answer; null also where it is not in Undertone's own words",
    "expected": "mean of the distribution (distress), or p(YES)",
    "choice_mass": "probability of all labels together at the first answer position",
    "p_*": "probability of the label among the labels",
    "text": "what the model wrote; null where that is more than a label and may repeat the dataset",
    "text_withheld": "whether it is null for that reason",
    "seconds_given, seconds_used": "of audio, and what reached the encoder",
    "latency_s": "wall time of the answer",
    "request_id": "digest of everything that decided the answer",
    "votes, paths, position_bias": "manipulation: five votes, how each was read, bias to A",
    "tactic, tactic_votes, tactic_path, tactic_reason, tactic_shares": "manipulation: the tactic",
    "gold_tactics": "manipulation: the dataset's",
    "quote, quote_speaker": "manipulation: only where transcripts were asked for",
    "quote_match, quote_turn, quote_ratio": "manipulation: whether it was said",
    "quote_reason, quote_retried": "manipulation: why there is none, whether asked twice",
    "voices, exemplar, fallbacks": "manipulation: voices, whether shown, departures",
    "transcript, context": "only where transcripts were asked for",
}


def run_name(run: KeptRun) -> str:
    """The run's name in all tables: model, task and dataset, in one word each."""
    said = run.description
    return f"{run.name}/{said.parameters['task']}/{said.dataset['hash'][:8]}"


def run_row(run: KeptRun) -> dict[str, Any]:
    """A row of the table of runs; see `RUN_COLUMNS`."""
    said, dataset = run.description, run.description.dataset
    row: dict[str, Any] = {"run": run_name(run)}
    for name in RUN_COLUMNS:
        row.setdefault(name, said.parameters.get(name, said.tags.get(name)))
    told = {
        "dataset": dataset["name"],
        "dataset_hash": dataset["hash"],
        "dataset_licence": dataset["licence"],
        "dataset_source": _LOCAL_PATH.sub("(a local path)", str(dataset["source"])),
        "synthetic": bool(dataset["synthetic"]),
        "items": int(run.predictions["item_id"].nunique()),
        "written": said.written,
    }
    rest = {
        name: value
        for name, value in said.parameters.items()
        if name not in (*RUN_COLUMNS, *PRIVATE)
    }
    return {**row, **told, "settings": json.dumps(rest, ensure_ascii=False, sort_keys=True)}


def metric_rows(run: KeptRun) -> list[dict[str, Any]]:
    """Rows of the table of metrics; see `METRIC_COLUMNS`.

    Raises:
        RunDescriptionError: a metrics.json that is not one.
    """
    path = run.folder / "metrics.json"
    try:
        estimates = json.loads(path.read_bytes())
        said = run.description
        return [
            {
                "run": run_name(run),
                "model": said.parameters["model"],
                "task": said.parameters["task"],
                "dataset": said.dataset["name"],
                **{name: e[name] for name in ("condition", "metric", "value", "low", "high")},
                **{name: e[name] for name in ("n", "n_total", "reason")},
            }
            for e in estimates
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunDescriptionError(
            f"{path}: expected a run's metrics, found {error!r}. Run the same `evaluate` again."
        ) from error


def prediction_table(runs: RunSet, *, transcripts: bool, data: Path | None = None) -> pd.DataFrame:
    """Predictions of all runs of a set; see `PREDICTION_COLUMNS`.

    Args:
        transcripts: whether the dataset's words are in it.
        data: where the dataset lies now; goes before where the run had it.

    Raises:
        RunDescriptionError: words are wanted, and the dataset is not the one that was rated.
    """
    import pandas as pd

    tables = [_tidy(run, runs.labels, transcripts=transcripts) for run in runs.runs]
    table = pd.concat(tables, ignore_index=True)
    if not transcripts:
        return table
    dataset, notes = dataset_of(runs, data)
    if dataset is None or notes:
        raise RunDescriptionError(f"transcripts: {notes[0]}")
    words = dataset.items[[c for c in ("item_id", "transcript", "context") if c in dataset.items]]
    return table.merge(words, on="item_id", how="left", validate="many_to_one")


def _tidy(run: KeptRun, labels: Sequence[str], *, transcripts: bool) -> pd.DataFrame:
    table = run.predictions.copy()
    for name in reversed(_OF_RUN):
        table.insert(0, name, str(run.description.tags.get(name, "")))
    table.insert(0, "run", run_name(run))
    for name in _REASONS:
        if name in table:
            table[name] = [shareable_reason(said) for said in table[name]]
    table.loc[table["status"].isin(_MACHINES), "reason"] = None
    if transcripts:
        return table
    kept = [shareable_text(said, labels) for said in table["text"]]
    held_back = [k is None and bool(t) for k, t in zip(kept, table["text"], strict=True)]
    table.insert(list(table.columns).index("text") + 1, "text_withheld", held_back)
    table["text"] = kept
    # A column that is not explained is one nobody looked at for words.
    known = {name for names in PREDICTION_COLUMNS for name in names.split(", ")} - set(_WORDS)
    known |= {f"p_{label}" for label in labels}
    return table[[name for name in table.columns if name in known]]


def shareable_text(said: Any, labels: Sequence[str]) -> str | None:
    """An answer that states a label and nothing else; None for any other.

    Args:
        labels: of the task, as in its columns `p_<label>`.
    """
    if not isinstance(said, str) or len(said) > LONGEST_ANSWER:
        return None
    forms = [form for label in labels for form in _LETTERS.get(label, (label,))]
    label = "|".join(rf"\b{re.escape(form)}\b" for form in dict.fromkeys(forms))
    pattern = _STATES.replace("LABEL", label)
    return said if re.fullmatch(pattern, said, re.IGNORECASE | re.ASCII) else None


def shareable_reason(said: Any) -> str | None:
    """A reason that is one of ours, word by word; None for what a machine or a model said."""
    if not isinstance(said, str):
        return None
    parts = said.split("; asked again: ")
    return said if all(_OWN_REASON.fullmatch(part) for part in parts) else None


def chosen(runs: Sequence[KeptRun], *, task: str, dataset: str) -> list[KeptRun]:
    """The runs of this task and dataset ("" for any) that cover their dataset's whole selection."""
    return [
        run
        for run in runs
        if run.description.parameters["task"] == (task or run.description.parameters["task"])
        and run.description.dataset["name"] == (dataset or run.description.dataset["name"])
        and run.name == run.description.parameters["model"]
    ]
