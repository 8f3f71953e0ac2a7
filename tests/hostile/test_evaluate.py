"""evaluate on everything that can be wrong at once, with secrets all around it.

One run over a folder with every broken file and every odd text, as a user starts it, in an
environment full of keys: each row ends in a status, and no key is in anything it leaves.
"""

import json
import os

import pandas as pd
import pytest

from core.protocol import STATUSES
from tests.hostile.hostile_run import CORPUS, SECRETS, TEXTS, evaluate, planted, row


def found(folder, words):
    """Files below a folder that hold one of these words."""
    every = [path for path in folder.rglob("*") if path.is_file()]
    held = [(path, word) for path in every for word in words if word.encode() in path.read_bytes()]
    return [(str(path.relative_to(folder)), word) for path, word in held]


def test_every_row_ends_in_a_status_and_a_failure_in_its_reason(run):
    (path,) = run.glob("out/*/*/baseline/predictions.parquet")
    table = pd.read_parquet(path)
    broken = table["item_id"].isin(CORPUS["broken"]())
    heard = table["condition"].isin(["AO", "AT"])

    assert len(table) == 3 * (len(CORPUS["broken"]()) + len(TEXTS))
    assert set(table["status"]) <= set(STATUSES)
    assert set(table[broken & heard]["status"]) == {"audio_error"}
    assert set(table[~broken | ~heard]["status"]) == {"ok"}
    reasons = table[broken & heard]
    assert all(
        name in said for name, said in zip(reasons["item_id"], reasons["reason"], strict=True)
    )


def test_no_file_outside_the_run_was_written(run):
    beside = {path.name for path in run.iterdir()}

    assert beside <= {
        "data",
        "out",
        "mlflow.db",
        "mlflow.db.lock",
        "mlruns",
        "mlartifacts",
        "terminal.txt",
    }


def test_no_secret_is_in_what_a_run_leaves(run):
    assert (run / "mlflow.db").stat().st_size > 0
    assert found(run, SECRETS.values()) == []


@pytest.mark.parametrize(
    ("audio", "said"),
    [
        ("/etc/passwd", 'audio: expected a path relative to the folder, found "/etc/passwd"'),
        ("../secret.wav", "audio: expected a path inside the folder"),
        ("audio/../../secret.wav", "audio: expected a path inside the folder"),
        ("audio/link.wav", "audio: expected a file inside the folder, not a link out of it"),
        ("linked/secret.wav", "audio: expected a file inside the folder, not a link out of it"),
        ("audio/loop.wav", "audio: expected a"),
        ("audio/a\0.wav", "audio: expected"),
        ("audio/\ud800.wav", "audio: expected"),
        ("audio/pipe.wav", "audio: expected a regular file"),
        ("audio", "audio: expected a regular file"),
        ("C:\\secret.wav", "audio: expected a path inside the folder"),
        ("x" * 5000, "audio: expected a"),
    ],
    ids=range(12),
)
def test_a_path_out_of_the_folder_is_refused_by_file_and_row(tmp_path, audio, said):
    from core.dataset import DatasetError
    from experiments.evaluation import prepare
    from experiments.settings import settings_from

    data = tmp_path / "data"
    (data / "audio").mkdir(parents=True)
    (tmp_path / "secret.wav").write_bytes(CORPUS["whole"]()["stereo.wav"])
    (data / "audio" / "link.wav").symlink_to(tmp_path / "secret.wav")
    (data / "audio" / "loop.wav").symlink_to("loop.wav")
    (data / "linked").symlink_to(tmp_path)
    os.mkfifo(data / "audio" / "pipe.wav")
    rows = [row("whole", 0), row("faulty", 1, audio=audio)]
    (data / "manifest.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))

    with pytest.raises(DatasetError) as refused:
        prepare(settings_from({"data": str(data), "output": str(tmp_path / "out")}))

    assert f"{data}/manifest.jsonl, row 2, {said}" in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ("--runner", "server", "--endpoint", "http://user:planted-password@127.0.0.1:9/v1"),
        ("--runner", "server", "--endpoint", "http://127.0.0.1:9/v1?api_key=planted-password"),
        ("--runner", "server", "--endpoint", "http://127.0.0.1:9/v1"),
    ],
)
def test_no_secret_is_in_what_a_failed_start_says(tmp_path, words):
    ended = evaluate(tmp_path, planted(), *words)
    (tmp_path / "terminal.txt").write_text(ended.stdout + ended.stderr)

    assert ended.returncode in (1, 2)
    assert found(tmp_path, SECRETS.values()) == []
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("scheme", ["http", "postgresql"])
def test_no_secret_is_in_what_is_said_of_a_store_that_is_away(tmp_path, scheme):
    uri = f"{scheme}://user:planted-password@127.0.0.1:9/db"

    ended = evaluate(tmp_path, planted(MLFLOW_TRACKING_URI=uri), "--limit", "1")
    (tmp_path / "terminal.txt").write_text(ended.stdout + ended.stderr)

    assert ended.returncode == 1
    assert "127.0.0.1" in ended.stderr
    assert found(tmp_path, SECRETS.values()) == []
    assert "Traceback" not in ended.stderr
