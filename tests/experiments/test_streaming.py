"""A run of any length: the same figures whatever is held at a time, and no more held of it."""

import json
import tracemalloc
from contextlib import closing

import pandas as pd
import pytest

from containers.runtime.answers import AnswerFile
from containers.runtime.request_file import RequestFile
from core.protocol import Response, read_requests
from experiments import rounds
from experiments.evaluation import carry_out, prepare
from experiments.run_folder import held
from experiments.runners import process
from experiments.settings import settings_from


def plan_for(output, **words):
    fixed = {"model": "null", "task": "manipulation", "resamples": "50", "runner": "process"}
    return prepare(settings_from(fixed | {"output": str(output)} | words))


def evaluate(output, **words):
    plan = plan_for(output, **words)
    with held(plan.folder):
        return carry_out(plan, log=plan.folder.path / "model.log")


def left(evaluation):
    folder = evaluation.plan.folder
    table = pd.read_parquet(folder.predictions).drop(columns="latency_s")
    asked = sorted(request.id for request in read_requests(folder.requests))
    return table.to_json(), folder.metrics.read_text(), asked


@pytest.mark.parametrize("task", ["manipulation", "distress"])
def test_what_is_held_at_a_time_changes_nothing(tmp_path, monkeypatch, task):
    words = {"conditions": "AO,TO", "task": task}
    whole = evaluate(tmp_path / "whole", **words)
    monkeypatch.setattr(rounds, "CHUNK", 3)
    in_threes = evaluate(tmp_path / "in_threes", **words)

    assert left(in_threes) == left(whole)
    assert in_threes.requests == whole.requests


def test_a_model_is_started_once_a_round_however_many_chunks_there_are(tmp_path, monkeypatch):
    runs = []
    run = process.run
    monkeypatch.setattr(process, "run", lambda job: runs.append(1) or run(job))
    monkeypatch.setattr(rounds, "CHUNK", 2)
    evaluate(tmp_path / "out", conditions="TO", shots="0", limit="7")

    # The answers, then tactic and quote of those found manipulative; no quote is empty.
    assert len(runs) == 2


def dialogues(folder, count):
    folder.mkdir()
    spoken = "\n".join(f"Person{n % 2 + 1}: I told you what I think of it, {n}." for n in range(40))
    rows = (
        {"item_id": f"d{n}", "audio": None, "transcript": f"{spoken} {n}", "label": "YES"}
        | ({"label": "NO"} if n % 2 else {})
        for n in range(count)
    )
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


def all_yes(folder):
    """Answers every request as a model that finds manipulation everywhere."""
    requests = RequestFile(folder.requests)
    with closing(AnswerFile(folder.responses)) as answers, closing(requests) as asked:
        for request, _ in answers.pending(asked.placed()):
            labels = request.choices or {}
            logs = {label: -0.1 if n == 0 else -5.0 for n, label in enumerate(labels)}
            said = Response(request.id, "ok", "you", choice_logprobs=logs or None, latency_s=0.0)
            answers.append([said])


def test_memory_does_not_grow_with_what_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(rounds, "CHUNK", 20)
    peaks = {}
    for count in (50, 250):
        data = dialogues(tmp_path / str(count), count)
        plan = plan_for(tmp_path / "out", conditions="TO", data=data)
        items = plan.selection.evaluated
        tracemalloc.start()
        asked = rounds.ask(
            plan,
            items,
            lambda plan=plan: all_yes(plan.folder),
            lambda chunk: len(chunk.responses),
        )
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(asked.taken()) == asked.requests == 3 * len(items)
    size = plan.folder.requests.stat().st_size / len(items)

    # Tens of kilobytes are asked about a dialogue. Held is where they are, and the words of
    # the newest thousand texts.
    assert size > 30_000
    assert (peaks[250] - peaks[50]) / 200 < size / 10
