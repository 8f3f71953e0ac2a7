import os
import subprocess
import sys

import pytest

from experiments.run_folder import FolderInUseError, held, run_folder, write_json
from experiments.settings import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from experiments.run_folder import RunFolder, held
with held(RunFolder(Path(sys.argv[1]), Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    return run_folder(tmp_path, "distress", "demo: ../turns/", "0123456789abcdef", "null")


def test_a_dataset_name_cannot_lead_out_of_the_output_folder(folder, tmp_path):
    assert folder.path == tmp_path / "distress" / "demo_.._turns-01234567" / "null"


def test_a_long_name_is_cut_and_its_digest_kept(tmp_path):
    path = run_folder(tmp_path, "distress", "n" * 255, "0123456789abcdef", "null").path

    assert path.parent.name == "n" * 100 + "-01234567"


def test_a_try_of_the_first_items_shares_the_answers_and_nothing_else(tmp_path):
    named = (tmp_path, "distress", "demo", "0123456789", "null")
    whole, few = run_folder(*named), run_folder(*named, limit=5)

    assert few.results == whole.path / "limit-5"
    assert few.responses == whole.responses
    for one, other in (
        (few.requests, whole.requests),
        (few.predictions, whole.predictions),
        (few.metrics, whole.metrics),
        (few.tables, whole.tables),
    ):
        assert one == few.results / other.name


def test_a_second_process_is_refused_and_told_who_holds_the_folder(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder.path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        with pytest.raises(FolderInUseError, match=f"pid {holder.pid}"), held(folder):
            pass
    finally:
        holder.kill()
        holder.wait()


def test_the_folder_is_free_again_when_its_holder_was_killed(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder.path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    holder.kill()
    holder.wait()

    with held(folder):
        assert f'"pid": {os.getpid()}' in (folder.path / ".lock").read_text()


def test_json_replaces_a_file_whole(tmp_path):
    path = tmp_path / "metrics.json"
    write_json(path, [1])
    write_json(path, {"mae": None})

    assert path.read_text() == '{\n "mae": null\n}'
    assert list(tmp_path.iterdir()) == [path]
