"""A full disk, a folder that may not be written, one that goes away: said, and gone on after."""

import json
import os
import resource
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from benchmarks.killable import answered, dialogues
from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import ProtocolError, Response
from experiments.settings import ROOT

pytestmark = pytest.mark.slow
TURNS = 300


@pytest.fixture
def turns(tmp_path):
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
            "context": "",
            "label": 1 + number % 5,
        }
        for number in range(TURNS)
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def ended(tmp_path, module, *words):
    return _ended(tmp_path, ["-m", f"experiments.{module}", *words])


def with_code(tmp_path, code, *words):
    """`evaluate`, to which something happens on its way."""
    return _ended(tmp_path, ["-c", code, *words])


def _ended(tmp_path, words):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    environment = {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/m.db"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=kept | environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 600 kB that is taken away again at the end."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(place)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def grown(place, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)


def file_size(folder, name):
    (path,) = folder.rglob(name)
    return path.stat().st_size


def test_a_full_disk_is_said_and_with_more_room_the_run_goes_on(tmp_path, turns, small_disk):
    words = ("--model", "null", "--conditions", "TO", "--data", str(turns), "--resamples", "20")
    ended(tmp_path, "evaluate", *words, "--output", str(tmp_path / "roomy"))
    words += ("--output", str(small_disk / "out"))
    # Room for the requests, twice, for what was planned, a quarter of them, and half the answers.
    requests, answers = (
        file_size(tmp_path / "roomy", f"{n}.jsonl") for n in ("requests", "responses")
    )
    grown(small_disk, 2 * requests + requests // 4 + answers // 2)
    full = ended(tmp_path, "evaluate", *words)
    kept = answered(small_disk)
    grown(small_disk, "50m")
    after = ended(tmp_path, "evaluate", *words)

    assert full.returncode == 1
    assert "No space left on device" in full.stderr or "is a disk full?" in full.stderr
    assert "the same command goes on where it stopped" in full.stderr
    assert "Traceback" not in full.stderr
    assert after.returncode == 0, after.stderr
    # Something was kept, and something was left to ask.
    assert 0 < len(kept) < TURNS
    assert sorted(set(kept)) == sorted(kept)
    assert len(answered(small_disk)) == len(set(answered(small_disk))) == TURNS
    assert not list(small_disk.rglob(".*.part"))


def test_a_build_on_a_full_disk_is_said_and_goes_on(tmp_path, small_disk):
    clips = tmp_path / "clips"
    clips.mkdir()
    for number in range(12):
        shutil.copyfile(
            ROOT / "demo" / "manipulation" / "audio" / "demo_01.flac",
            clips / f"{number}_composed_amanda_mark.flac",
        )
    (tmp_path / "dialogues.csv").write_text(dialogues())
    words = ("--source", str(tmp_path / "dialogues.csv"), "--audio", str(clips))
    words += ("--output", str(small_disk / "set"))
    full = ended(tmp_path, "build_manipulation", *words)
    grown(small_disk, "50m")
    after = ended(tmp_path, "build_manipulation", *words)

    assert full.returncode == 1
    assert "No space left on device. Make room there" in full.stderr
    assert "Traceback" not in full.stderr
    assert after.returncode == 0, after.stderr
    assert len(pd.read_parquet(small_disk / "set" / "manifest.parquet")) == 12


def test_without_leave_to_write_it_is_said_which_folder(tmp_path, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    ended_at_once = ended(
        tmp_path, "evaluate", "--model", "null", "--limit", "2", "--output", str(small_disk / "out")
    )

    assert ended_at_once.returncode == 1
    assert f"{small_disk}/out" in ended_at_once.stderr
    assert "Read-only file system. Allow this user to write there" in ended_at_once.stderr
    assert "Traceback" not in ended_at_once.stderr


def test_a_line_that_a_full_disk_cut_short_is_taken_out_and_said(tmp_path, turns):
    words = ("--model", "null", "--conditions", "TO", "--data", str(turns), "--resamples", "20")
    words += ("--limit", "5", "--output", str(tmp_path / "out"))
    ended(tmp_path, "evaluate", *words)
    (path,) = tmp_path.glob("out/*/*/null/responses.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    after = ended(tmp_path, "evaluate", *words)

    lost = len(whole.splitlines()[-1]) + 1 - 40
    said = f"{path}: its last line was cut short when its writer ended ({lost} bytes)"
    assert after.returncode == 0, after.stderr
    # At once, and among the notes of the run.
    assert said in after.stderr
    assert said in after.stdout
    assert len(answered(tmp_path / "out")) == 5


def test_a_limit_on_the_size_of_files_cuts_a_line_and_the_next_run_goes_on(tmp_path):
    path = tmp_path / "responses.jsonl"
    code = (
        "import sys; from core.protocol import Response; from pathlib import Path\n"
        "from containers.runtime.response_log import ResponseLog\n"
        "log = ResponseLog(Path(sys.argv[1]))\n"
        "for number in range(1000): log.append([Response(str(number), 'ok', text='3')])\n"
    )
    failed = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    before = read_responses(path)
    with ResponseLog(path) as log:
        repaired = log.repaired
        log.append([Response("next", "ok", text="4")])

    assert "File too large" in failed.stderr
    assert 0 < repaired < 1000
    assert read_responses(path) == before | {"next": Response("next", "ok", text="4")}


def test_a_line_broken_in_the_middle_is_never_taken_for_an_answer(tmp_path):
    path = tmp_path / "responses.jsonl"
    with ResponseLog(path) as log:
        log.append([Response("one", "ok", text="1"), Response("two", "ok", text="2")])
    content = path.read_bytes()
    path.write_bytes(content[:20] + b"\n" + content[20:])

    with pytest.raises(ProtocolError, match="line 1"):
        read_responses(path)


def test_an_output_that_goes_away_is_said(tmp_path, turns):
    """Its disk unmounted, as a network's does: the folder is no longer there."""
    output = tmp_path / "out"
    words = ("--model", "null", "--conditions", "TO", "--data", str(turns), "--resamples", "20")
    code = (
        "import shutil, sys\n"
        "from experiments import evaluate, rounds\n"
        "wrote = rounds.write_requests\n"
        "def gone(path, requests):\n"
        f"    shutil.move({str(output)!r}, {str(tmp_path / 'elsewhere')!r})\n"
        "    return wrote(path, requests)\n"
        "rounds.write_requests = gone\n"
        "sys.exit(evaluate.main(sys.argv[1:]))\n"
    )
    away = with_code(tmp_path, code, *words, "--output", str(output))
    (tmp_path / "elsewhere").rename(output)
    after = ended(tmp_path, "evaluate", *words, "--output", str(output))

    assert away.returncode == 1
    assert f"{output} is gone: was it moved, or its disk unmounted?" in away.stderr
    assert "Traceback" not in away.stderr
    assert after.returncode == 0, after.stderr


def test_a_dataset_that_goes_away_is_said_and_not_counted_as_bad_audio(tmp_path):
    data = shutil.copytree(ROOT / "demo" / "distress", tmp_path / "set")
    code = (
        "import shutil, sys\n"
        "from experiments import evaluate, evaluation\n"
        "asked = evaluation.carry_out\n"
        "def gone(plan, log=None):\n"
        f"    shutil.move({str(data)!r}, {str(tmp_path / 'elsewhere')!r})\n"
        f"    __import__('os').mkdir({str(data)!r})\n"
        "    return asked(plan, log)\n"
        "evaluation.carry_out = gone\n"
        "sys.exit(evaluate.main(sys.argv[1:]))\n"
    )
    words = ("--model", "null", "--conditions", "AO", "--limit", "3", "--data", str(data))
    away = with_code(tmp_path, code, *words, "--output", str(tmp_path / "out"))

    assert away.returncode == 1
    assert f"{data}: the folder of the clips is empty; is its disk still mounted?" in away.stderr
    assert "Traceback" not in away.stderr
    assert not list(tmp_path.glob("out/**/predictions.parquet"))
