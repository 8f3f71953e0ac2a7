"""A dataset folder is read and judged in one pass."""

import pytest

from core.dataset import DatasetError
from validation import schemas
from validation.datasets import checked_dataset

HEADER = "item_id,session_id,turn_index,audio,transcript,context,label"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"not decoded here")
    return tmp_path


def refusal(folder, *rows, header=HEADER):
    (folder / "manifest.csv").write_text("\n".join((header, *rows)) + "\n")
    with pytest.raises(DatasetError) as refused:
        checked_dataset(folder, "distress", schemas.turns())
    return str(refused.value).splitlines()


def test_a_missing_file_does_not_hide_the_faults_of_other_rows(folder):
    told = refusal(
        folder,
        "t1,s,0,a.wav,Hi.,,7",
        "t2,s,1,none.wav,Hi.,,3",
        "t1,s,2,a.wav,Hi.,,high",
        "t4,s,1,a.wav,Hi.,,3",
    )

    assert [line.partition(": ")[0].removeprefix(f"{folder}/manifest.csv, ") for line in told] == [
        "row 1 (line 2), label",
        "row 2 (line 3), audio",
        "row 3 (line 4), label",
        "row 3 (line 4), item_id",
        "row 4 (line 5), turn_index",
        "Correct these and run again.",
    ]


def test_a_cell_that_cannot_be_read_is_told_once(folder):
    told = refusal(folder, "t1,s,first,a.wav,Hi.,,3", "t2,s,second,a.wav,Hi.,,3")

    assert len(told) == 3
    assert told[0].endswith('row 1 (line 2), turn_index: expected an integer, found "first".')


def test_a_column_nobody_reads_is_told_with_the_rows(folder):
    told = refusal(folder, "t1,s,0,a.wav,Hi.,,7,x", header=f"{HEADER},lable")

    assert "manifest.csv, lable: expected no column but" in told[0]
    assert "row 1 (line 2), label: expected an integer 1-5" in told[1]


def test_a_missing_column_is_told_with_its_folder(folder):
    told = refusal(folder, "t1,s,0,a.wav,Hi.,", header=HEADER.removesuffix(",label"))

    assert told[0].startswith(f"{folder}/manifest.csv, label: expected a column")


def test_a_sound_dataset_has_its_types_settled(folder):
    (folder / "manifest.csv").write_text(f"{HEADER}\nt1,s,0,a.wav,Hi.,,3\n")

    items = checked_dataset(folder, "distress", schemas.turns()).items

    assert items["label"].dtype == "int64"
