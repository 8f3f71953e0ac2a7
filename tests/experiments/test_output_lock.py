import errno
import os
import subprocess
import sys

import pytest

from experiments import annotate_import, build_manipulation, cbt_labels, cbt_words
from experiments.output_lock import FolderInUseError, disk_sentence, only_one
from experiments.settings import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from experiments.output_lock import only_one
with only_one(Path(sys.argv[1]), "first"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    """A folder that another process holds, and that process."""
    folder = tmp_path / "out"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], cwd=ROOT, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    yield folder, holder
    holder.kill()
    holder.wait()


def test_a_second_process_is_refused_with_the_first_ones_number(held):
    folder, holder = held

    said = rf"\(pid {holder.pid}\) is using .*second would"
    with pytest.raises(FolderInUseError, match=said), only_one(folder, "second"):
        pass


def test_a_killed_holder_leaves_the_folder_free_and_its_half_files_are_swept(held):
    folder, holder = held
    (folder / ".1f.part").write_text("half")
    holder.kill()
    holder.wait()

    with only_one(folder, "second"):
        assert sorted(path.name for path in folder.iterdir()) == [".lock"]


def test_every_command_that_builds_is_refused_in_a_folder_in_use(held, tmp_path, capsys):
    folder, holder = held
    words = ["--output", str(folder)]
    described = tmp_path / "descriptions.csv"
    described.write_text("item_id,run,description\nt1,1,Calm.\n")
    source = tmp_path / "mentalmanip.csv"
    source.write_text(
        "ID,Dialogue,Manipulative,Technique,Vulnerability\n1,Person1: You were late.,0,,\n"
    )
    (tmp_path / "clips").mkdir()
    codes = [
        cbt_words.main(["--recordings", str(tmp_path / "clips"), *words]),
        cbt_labels.main(["--descriptions", str(described), *words]),
        build_manipulation.main(
            ["--source", str(source), "--audio", str(tmp_path / "clips"), *words]
        ),
    ]

    said = capsys.readouterr().err.splitlines()
    assert codes == [1, 1, 1]
    assert [line.partition(":")[0] for line in said] == [
        "cbt_words",
        "cbt_labels",
        "build_manipulation",
    ]
    assert all(f"(pid {holder.pid}) is using" in line for line in said)


def test_a_hidden_file_among_answers_is_no_answer(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / "a1.xlsx").touch()

    assert annotate_import.answer_files(str(tmp_path)) == [tmp_path / "a1.xlsx"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Make room there"),
        (errno.EROFS, "Allow this user to write there"),
        (errno.ESTALE, "is it still mounted?"),
        (errno.ENOENT, "is gone: was it moved, or its disk unmounted?"),
    ],
)
def test_what_the_disk_says_is_a_sentence_with_advice(tmp_path, number, advice):
    said = disk_sentence(OSError(number, os.strerror(number)), tmp_path / "out")

    assert said.startswith(f"output {tmp_path}/out: {os.strerror(number)}.")
    assert advice in said
    assert said.endswith("the same command goes on where it stopped.")
