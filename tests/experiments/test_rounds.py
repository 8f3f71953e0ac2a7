"""Rounds of requests as a user runs them: what the second one rests on, and a kill between two."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import soundfile

from containers.runtime.response_log import read_responses
from core.exemplars import same_words
from core.protocol import read_requests
from experiments import build_manipulation
from experiments.evaluation import carry_out, prepare
from experiments.run_folder import held
from experiments.runners import RunnerError, process
from experiments.settings import ROOT, settings_from

EVALUATE = """
import sys
from pathlib import Path
from experiments.evaluation import carry_out, prepare
from experiments.run_folder import held
from experiments.settings import settings_from
from experiments.parent import end_with_parent

end_with_parent()
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
plan = prepare(settings_from(words))
with held(plan.folder):
    carry_out(plan)
"""


def words_for(output, **words):
    fixed = {"model": "null", "task": "manipulation", "resamples": "50", "runner": "process"}
    return fixed | {"output": str(output)} | words


def evaluate(output, **words):
    """A run without MLflow."""
    plan = prepare(settings_from(words_for(output, **words)))
    with held(plan.folder):
        return carry_out(plan, log=plan.folder.path / "model.log")


def folder_of(output):
    (metrics,) = output.glob("manipulation/*/*/**/metrics.json")
    return metrics.parent


def found(output):
    """What a run left, without what depends on the clock."""
    folder = folder_of(output)
    table = pd.read_parquet(folder / "predictions.parquet").drop(columns="latency_s")
    return (
        (folder / "metrics.json").read_text(),
        table.to_json(),
        sorted(request.id for request in read_requests(folder / "requests.jsonl")),
    )


def test_a_run_asks_for_a_tactic_and_a_quote_where_it_found_manipulation(tmp_path):
    evaluation = evaluate(tmp_path / "out", conditions="TO")

    folder = folder_of(tmp_path / "out")
    table = pd.read_parquet(folder / "predictions.parquet")
    yes = table["prediction"] == "YES"
    assert 0 < yes.sum() < len(table)
    assert table.loc[yes, "tactic"].notna().all()
    assert table.loc[~yes, "tactic"].isna().all()
    assert len(read_requests(folder / "requests.jsonl")) == len(table) + 2 * yes.sum()
    assert evaluation.notes[0].startswith("4 exemplars (2 YES, 2 NO): demo_")
    assert {p.stem for p in (folder / "tables").glob("*.csv")} == {
        p.stem for p in (folder / "tables").glob("*.md")
    }
    assert len(list((folder / "tables").glob("*.csv"))) == 5


def test_no_exemplar_and_no_twin_of_one_is_asked_about(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [
        {
            "item_id": f"d{number}",
            "audio": None,
            "transcript": f"Person1: Give me that, number {number // 2}!" + "  " * (number % 2),
            "label": ("YES", "NO")[number // 2 % 2],
        }
        for number in range(20)
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluate(tmp_path / "out", conditions="TO", data=str(folder), shots="4")

    table = pd.read_parquet(folder_of(tmp_path / "out") / "predictions.parquet")
    # Each dialogue is there twice but for spaces: four exemplars bar eight.
    assert len(table) == 12
    for request in read_requests(folder_of(tmp_path / "out") / "requests.jsonl"):
        shown = {same_words(p["text"]) for p in request.parts if p.get("slot") == "exemplar"}
        asked = [same_words(p["text"]) for p in request.parts if p.get("slot") == "transcript"]
        assert len(shown) == 4
        assert asked
        assert not shown & set(asked)


def versions(folder, *labels):
    """The dataset at `folder` with these labels, written over what was there."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "item_id": f"d{number}",
            "audio": None,
            "transcript": f"Person1: Give me that, number {number}!",
            "label": label,
        }
        for number, label in enumerate(labels)
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


def test_a_corrected_label_changes_the_figures_and_asks_nothing_again(tmp_path):
    words = {"conditions": "TO", "shots": "0"}
    before = versions(tmp_path / "set", "YES", "NO", "YES", "NO")
    first = evaluate(tmp_path / "out", data=before, **words)
    after = versions(tmp_path / "set", "NO", "NO", "YES", "NO")
    again = evaluate(tmp_path / "out", data=after, **words)

    assert again.plan.folder.path != first.plan.folder.path
    assert again.reused == again.requests == first.requests
    assert "model" not in again.seconds
    assert list(again.predictions["prediction"]) == list(first.predictions["prediction"])
    assert list(again.predictions["gold"]) == ["NO", "NO", "YES", "NO"]


def test_a_row_more_asks_for_that_row_alone(tmp_path):
    words = {"conditions": "TO", "shots": "0"}
    first = evaluate(tmp_path / "out", data=versions(tmp_path / "set", "YES", "NO"), **words)
    longer = versions(tmp_path / "set", "YES", "NO", "YES")
    again = evaluate(tmp_path / "out", data=longer, **words)

    assert again.reused == first.requests < again.requests


def test_items_with_nothing_to_rate_are_told(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    tone = 0.3 * np.sin(np.arange(16_000) / 20)
    soundfile.write(folder / "tone.wav", tone, 16_000)
    soundfile.write(folder / "silence.wav", np.zeros(16_000), 16_000)
    words = "Person1: Give me that!"
    rows = [
        {"item_id": "heard", "audio": "tone.wav", "transcript": words, "label": "YES"},
        {"item_id": "still", "audio": "silence.wav", "transcript": words, "label": "NO"},
        {"item_id": "blank", "audio": "tone.wav", "transcript": " ", "label": "NO"},
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    both = evaluate(tmp_path / "out", data=str(folder), conditions="AO,TO", shots="0").notes
    words_alone = evaluate(tmp_path / "to", data=str(folder), conditions="TO", shots="0").notes

    silent = "1 of 3 items silent throughout, and counted like any other: still"
    wordless = "1 of 3 items without a word in the transcript, and counted like any other: blank"
    assert both[-2:] == [silent, wordless]
    assert silent not in words_alone
    assert wordless in words_alone


def test_a_model_that_ends_without_a_word_fails_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "run", lambda job: None)

    with pytest.raises(RunnerError, match="null ended without an answer or a reason for 3 of 3"):
        evaluate(tmp_path / "out", conditions="TO", limit="3", shots="0")


def test_a_second_run_asks_nothing_in_any_round(tmp_path):
    words = {"conditions": "AO,TO", "limit": "6"}
    evaluate(tmp_path / "out", **words)
    first = found(tmp_path / "out")
    responses = folder_of(tmp_path / "out").parent / "responses.jsonl"
    answers = responses.read_bytes()
    again = evaluate(tmp_path / "out", **words)

    assert again.reused == len(first[2]) == again.requests
    assert "model" not in again.seconds
    assert found(tmp_path / "out") == first
    assert responses.read_bytes() == answers


def test_a_try_of_the_first_items_and_the_whole_run_keep_their_own_tables(tmp_path):
    def left(folder):
        # The answers and the log are shared.
        own = [p for p in folder.iterdir() if p.name in ("requests.jsonl", "metrics.json")]
        own += [folder / "predictions.parquet", *(folder / "tables").iterdir()]
        return {p.name: p.read_bytes() for p in own}

    words = {"conditions": "TO"}
    first = evaluate(tmp_path / "out", **words, limit="2").plan.folder
    tried = left(first.results)
    whole = evaluate(tmp_path / "out", **words)
    everything = left(whole.plan.folder.results)
    again = evaluate(tmp_path / "out", **words, limit="2")

    assert first.results == whole.plan.folder.results / "limit-2"
    assert whole.reused > 0
    assert again.reused == again.requests
    assert left(whole.plan.folder.results) == everything
    assert left(first.results) == tried
    assert len(list((tmp_path / "out").rglob("responses.jsonl"))) == 1


def test_a_limit_that_leaves_nothing_out_is_a_whole_run(tmp_path):
    few = evaluate(tmp_path / "out", conditions="TO", limit="1000")

    assert few.plan.folder.results == few.plan.folder.path


def test_killed_in_its_second_round_it_goes_on_there_and_ends_with_the_same(tmp_path):
    evaluate(tmp_path / "undisturbed", conditions="AO,TO")
    whole = found(tmp_path / "undisturbed")
    output = tmp_path / "killed"
    words = words_for(output, conditions="AO,TO")
    run = subprocess.Popen(
        [sys.executable, "-c", EVALUATE, *(word for pair in words.items() for word in pair)],
        cwd=ROOT,
        env=os.environ | {"UNDERTONE_NULL_LATENCY_S": "0.5"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not asks_for_tactics(output):
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.05)
    run.kill()
    run.wait()
    kept = len(read_responses(next(output.glob("manipulation/*/null/responses.jsonl"))))
    ended = evaluate(output, conditions="AO,TO")

    assert (kept, ended.reused) == (16, 16)
    assert found(output) == whole


def asks_for_tactics(output):
    paths = list(output.glob("manipulation/*/null/requests.jsonl"))
    return bool(paths) and "Which one of these tactics" in paths[0].read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shots", "3"), "shots: expected an even number"),
        (("--exemplars", "demo_01,demo_99"), "there is no dialogue demo_99"),
        (("--shot", "4"), "did you mean 'shots'"),
    ],
)
def test_a_wrong_option_of_the_task_is_code_2_and_opens_no_run(tmp_path, words, said):
    fixed = ("--task", "manipulation", "--model", "null", "--output", str(tmp_path / "out"))
    ended = subprocess.run(
        [sys.executable, "-m", "experiments.evaluate", *fixed, *words],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"},
        capture_output=True,
        text=True,
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.shared
def test_the_studys_own_clips_go_the_whole_way(tmp_path, shared, capsys):
    built = build_manipulation.main(
        [
            *("--source", str(shared / "data/mentalmanip/mentalmanip_con.csv")),
            *("--audio", str(shared / "data/speech_mentalmanip/audio")),
            *("--output", str(tmp_path / "clips")),
        ]
    )
    assert built == 0, capsys.readouterr().err
    evaluate(tmp_path / "out", data=str(tmp_path / "clips"), shots="4")

    table = pd.read_parquet(folder_of(tmp_path / "out") / "predictions.parquet")
    assert len(table) == 3 * 46
    assert (table["status"] == "ok").all()
    assert set(table["quote_match"].dropna()) <= {"exact", "fuzzy", "absent"}
    voices = pd.read_csv(folder_of(tmp_path / "out") / "tables" / "by_voice.csv")
    assert {"sassy", "African American", "mark"} <= set(voices["Value"])
