"""evaluate as a user runs it: a process with arguments, in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from experiments.settings import ROOT

# Enough for three batches of the null model, so that a kill can fall between two.
TURNS = 1100


@pytest.fixture
def transcripts(tmp_path):
    """A dataset without audio: many short turns."""
    folder = tmp_path / "turns"
    folder.mkdir()
    rows = [
        {
            "item_id": f"turn {number}",
            "session_id": f"session {number // 50}",
            "turn_index": number,
            "audio": None,
            "transcript": f"I slept {number % 9} hours.",
            "context": "Therapist: How was the night?",
            "label": 1 + number % 5,
        }
        for number in range(TURNS)
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def environment(tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    return kept | {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": uri}


def command(output, *words):
    return [
        sys.executable,
        "-m",
        "experiments.evaluate",
        "--model",
        "null",
        "--output",
        str(output),
        *words,
    ]


def evaluate(output, environment, *words):
    return subprocess.run(
        command(output, *words), cwd=output.parent, env=environment, capture_output=True, text=True
    )


def found(output):
    """Metrics and predictions a run left, without what depends on the clock."""
    (metrics,) = output.glob("*/*/null/**/metrics.json")
    predictions = pd.read_parquet(metrics.with_name("predictions.parquet"))
    return metrics.read_text(), predictions.drop(columns="latency_s").to_json()


def demo(name):
    return str(ROOT / "demo" / name)


def test_a_run_ends_with_a_table_and_how_to_look_at_it(tmp_path, environment):
    ended = evaluate(tmp_path / "out", environment, "--limit", "4", "--resamples", "50")

    assert ended.returncode == 0, ended.stderr
    assert "null on distress" in ended.stdout
    assert "synthetic" in ended.stdout
    assert "4/4" in ended.stdout
    assert "mlflow ui --backend-store-uri" in ended.stdout


def test_a_second_run_asks_nothing_and_finds_the_same(tmp_path, environment):
    words = ("--limit", "4", "--resamples", "50")
    evaluate(tmp_path / "out", environment, *words)
    first = found(tmp_path / "out")
    ended = evaluate(tmp_path / "out", environment, *words)

    (spent,) = [line for line in ended.stdout.splitlines() if "answers reused" in line]
    assert spent.startswith("12 answers reused")
    assert "model " not in spent
    assert "in MLflow since an earlier run" in spent
    assert found(tmp_path / "out") == first


def test_a_model_that_writes_nothing_is_not_asked_to_reason(tmp_path, environment):
    words = ("--model", "baseline", "--task", "manipulation", "--prompt", "cot")
    ended = evaluate(tmp_path / "out", environment, *words, "--data", demo("manipulation"))

    assert ended.returncode == 2
    assert ended.stderr.startswith("prompt: cot has a model answer in words of its own, and")


def test_an_answer_that_another_model_gave_is_refused(tmp_path, environment):
    words = ("--limit", "2", "--resamples", "50")
    evaluate(tmp_path / "out", environment, *words)
    (path,) = tmp_path.glob("out/*/*/null/responses.jsonl")
    first, *others = path.read_text().splitlines(keepends=True)
    stamped = {**json.loads(first), "card": "deadbeef"}
    path.write_text("".join([json.dumps(stamped) + "\n", *others]))
    after = evaluate(tmp_path / "out", environment, *words)

    assert after.returncode == 1
    assert f"the answer to {stamped['id']} has another card than this run" in after.stderr


def test_a_larger_limit_asks_only_for_what_is_new(tmp_path, environment):
    evaluate(tmp_path / "out", environment, "--limit", "2", "--conditions", "TO")
    ended = evaluate(tmp_path / "out", environment, "--limit", "5", "--conditions", "TO")

    assert "2 answers reused" in ended.stdout


def test_a_missing_file_and_a_wrong_label_are_told_together(tmp_path, environment):
    folder = tmp_path / "turns"
    folder.mkdir()
    row = {"item_id": "t1", "session_id": "s", "turn_index": 0, "audio": "none.wav"}
    row |= {"transcript": "I am fine.", "context": "", "label": 7}
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")

    ended = evaluate(tmp_path / "out", environment, "--data", str(folder))

    assert ended.returncode == 2
    assert "row 1, audio: expected a file that is there" in ended.stderr
    assert "row 1, label: expected an integer 1-5, found 7" in ended.stderr


def test_audio_that_cannot_be_decoded_is_a_row_with_its_reason(tmp_path, environment):
    folder = tmp_path / "turns"
    (folder / "audio").mkdir(parents=True)
    (folder / "audio" / "broken.wav").write_bytes(b"<html>not found</html>")
    row = {"item_id": "t1", "session_id": "s", "turn_index": 0, "audio": "audio/broken.wav"}
    row |= {"transcript": "I am fine.", "context": "", "label": 2}
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")

    ended = evaluate(tmp_path / "out", environment, "--data", str(folder))
    (table,) = (tmp_path / "out").glob("*/*/null/predictions.parquet")
    rows = pd.read_parquet(table).set_index("condition")

    assert ended.returncode == 0, ended.stderr
    assert list(rows["status"]) == ["audio_error", "audio_error", "ok"]
    assert "broken.wav" in rows.loc["AO", "reason"]
    sent = table.with_name("requests.jsonl").read_text()
    assert sent.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--precision", "fp8"), "precision: null has no 'fp8'"),
        (("--data", "/nowhere"), "there is no folder /nowhere"),
        (("--task", "manipulation", "--data", demo("distress")), "manipulation, as asked for"),
    ],
)
def test_a_wrong_value_is_code_2_and_opens_no_run(tmp_path, environment, words, said):
    ended = evaluate(tmp_path / "out", environment, *words)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "mlflow.db").exists()


def test_a_folder_that_cannot_be_made_is_a_sentence_and_code_1(tmp_path, environment):
    ended = evaluate(tmp_path / "out", environment, "--output", "/proc/no/such", "--limit", "2")

    assert ended.returncode == 1
    assert "/proc/no" in ended.stderr
    assert "the same command goes on" in ended.stderr
    assert "Traceback" not in ended.stderr


def answering(output):
    """Wait until the model's process has opened the response file."""
    deadline = time.monotonic() + 30
    while not list(output.glob("*/*/null/responses.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_sigterm_ends_the_model_too_and_marks_the_run(tmp_path, environment, transcripts):
    slow = environment | {"UNDERTONE_NULL_LATENCY_S": "0.1"}
    output = tmp_path / "out"
    words = ("--data", str(transcripts), "--conditions", "TO")
    run = subprocess.Popen(
        command(output, *words), cwd=tmp_path, env=slow, stderr=subprocess.PIPE, text=True
    )
    answering(output)
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate(timeout=20)

    assert run.returncode == 143
    assert "the same command goes on where it stopped" in said
    assert "Traceback" not in said
    assert status_of_runs(environment) == ["KILLED"]


def test_a_folder_in_use_is_refused_with_its_owner(tmp_path, environment, transcripts):
    slow = environment | {"UNDERTONE_NULL_LATENCY_S": "0.1"}
    output = tmp_path / "out"
    words = ("--data", str(transcripts), "--conditions", "TO")
    run = subprocess.Popen(
        command(output, *words), cwd=tmp_path, env=slow, stderr=subprocess.DEVNULL
    )
    try:
        answering(output)
        ended = evaluate(output, environment, *words)
    finally:
        run.kill()
        run.wait()

    assert ended.returncode == 1
    assert f"Another process (pid {run.pid}) is using" in ended.stderr


def test_offline_a_run_goes_through_as_nothing_leaves_the_machine(tmp_path, environment):
    ended = evaluate(tmp_path / "out", environment, "--limit", "2", "--offline", "true")

    assert ended.returncode == 0, ended.stderr


def status_of_runs(environment):
    code = (
        "import mlflow; print(*[r.info.status for r in "
        "mlflow.search_runs(search_all_experiments=True, output_format='list')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return shown.stdout.split()
