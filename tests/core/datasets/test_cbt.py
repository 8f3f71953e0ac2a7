import pytest

from core.datasets.cbt import items_of, read_release
from core.manifest import DatasetError
from tests.core.datasets.releases import turn, write_release
from validation.releases import release_turns, sound_rows
from validation.schemas import TableError


def rows(release, *, skip_invalid=False):
    table = release.turns
    return sound_rows(
        table.frame, table.faults, release_turns(), table.path.name, skip_invalid=skip_invalid
    )


def test_a_release_becomes_turns_to_cut(tmp_path):
    release = read_release(
        write_release(tmp_path, [turn(context="Therapist: How was the night?"), turn(number=2)])
    )

    items = items_of(rows(release)[0])

    assert items.to_dict("records")[0] == {
        "item_id": "001_001",
        "session_id": "001",
        "turn_index": 1,
        "transcript": "I could not sleep.",
        "context": "Therapist: How was the night?",
        "label": 3,
        "start_s": 1.0,
        "end_s": 4.0,
    }
    assert items["context"][1] == ""


def test_the_csvs_may_lie_in_the_folder_itself(tmp_path):
    write_release(tmp_path, [turn()])
    for path in (tmp_path / "data").iterdir():
        path.rename(tmp_path / path.name)

    assert len(read_release(tmp_path).turns.frame) == 1


def test_another_content_is_another_hash(tmp_path):
    one = read_release(write_release(tmp_path, [turn()])).sha256
    assert read_release(write_release(tmp_path, [turn()])).sha256 == one
    assert read_release(write_release(tmp_path, [turn(label=4)])).sha256 != one


def test_zeros_a_spreadsheet_took_are_put_back(tmp_path):
    row = turn()
    row[1] = "1"
    release = read_release(write_release(tmp_path, [row], videos=["1"]))

    assert list(items_of(rows(release)[0])["session_id"]) == ["001"]


def test_a_folder_without_the_csvs_says_what_to_get(tmp_path):
    with pytest.raises(DatasetError, match=r"data/labeled_patient_turns.csv or .* found neither"):
        read_release(tmp_path)


def test_a_missing_column_is_named(tmp_path):
    write_release(tmp_path, [turn()])
    path = tmp_path / "data" / "labeled_patient_turns.csv"
    path.write_text(path.read_text().replace("reference_label", "label"))

    with pytest.raises(DatasetError, match="Add the missing columns: reference_label"):
        read_release(tmp_path)


def test_every_wrong_row_is_listed_at_once(tmp_path):
    wrong = [
        turn(label=3.7),
        turn(number=2, label=6),
        turn(number=3, start=-1.0),
        turn(number=4, text=" "),
        turn(number=4),
        turn("002", 1),
        ["7", *turn(number=7)[1:]],
        turn(number=8, end="soon"),
    ]
    release = read_release(write_release(tmp_path, wrong))

    with pytest.raises(TableError) as raised:
        rows(release)

    assert {(fault.row, fault.column) for fault in raised.value.faults} == {
        (1, "reference_label"),
        (2, "reference_label"),
        (3, "start_time_sec"),
        (4, "patient_transcript"),
        (5, "global_id"),
        (5, "turn_id"),
        (6, "video_id"),
        (7, "global_id"),
        (8, "end_time_sec"),
    }
    assert 'expected an integer, found "3.7"' in str(raised.value)
    assert "-P skip_invalid=true" in str(raised.value)


def test_wrong_rows_can_be_left_out_and_are_still_named(tmp_path):
    release = read_release(
        write_release(tmp_path, [turn(label=6), turn(number=2), turn(number=3, label="x")])
    )

    kept, faults = rows(release, skip_invalid=True)

    assert list(kept["global_id"]) == ["001_002"]
    assert [fault.row for fault in faults] == [1, 3]


def test_a_release_of_wrong_rows_alone_is_refused_all_the_same(tmp_path):
    release = read_release(write_release(tmp_path, [turn(label=6)]))

    with pytest.raises(TableError, match="expected rows, found none"):
        rows(release, skip_invalid=True)


def test_an_id_that_would_leave_the_folder_is_refused(tmp_path):
    row = turn()
    row[:2] = ["../x_001", "../x"]
    release = read_release(write_release(tmp_path, [row], videos=["../x"]))

    with pytest.raises(TableError, match=r"global_id: expected letters, digits"):
        rows(release)
