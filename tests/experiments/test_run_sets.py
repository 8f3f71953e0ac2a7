import json
from hashlib import sha256

import pytest

from experiments.run_description import RunDescriptionError
from experiments.run_sets import (
    dataset_of,
    described_folders,
    gathered,
    read_run,
    undescribed_folders,
)
from tests.experiments.kept_runs import answers, keep, turns


@pytest.fixture
def dataset(tmp_path):
    return turns(tmp_path / "data", {"a": "One.", "b": "Two."})


def test_runs_of_one_version_of_a_dataset_meet_whole_and_limited(tmp_path, dataset):
    keep(tmp_path, dataset, "null", answers(dataset, "TO"), answers(dataset, "AO"))
    keep(tmp_path, dataset, "baseline", answers(dataset, "TO"))
    few = keep(tmp_path, dataset, "baseline/limit-1", answers(dataset, "TO").head(1))
    said = json.loads((few / "run.json").read_text())
    said["parameters"]["model"] = "baseline"
    (few / "run.json").write_text(json.dumps(said))

    (found,) = gathered([read_run(folder) for folder in described_folders(tmp_path)])

    assert [run.name for run in found.runs] == ["baseline", "baseline · limit-1", "null"]
    assert found.conditions == ("AO", "TO")
    assert found.labels == ("1", "2", "3", "4", "5")


def test_variants_stand_behind_their_condition_where_they_are_wanted(tmp_path, dataset):
    folder = keep(tmp_path, dataset, "null", answers(dataset, "AT"), answers(dataset, "TO"))
    answers(dataset, "AT.silence", 1).to_parquet(folder / "variants.parquet")

    (found,) = gathered([read_run(folder, variants=True)])
    assert found.conditions == ("AT", "AT.silence", "TO")
    assert len(read_run(folder).predictions) == 4


def test_a_folder_that_says_nothing_of_itself_is_named(tmp_path, dataset):
    folder = keep(tmp_path, dataset, "null", answers(dataset, "TO"))
    (folder / "run.json").unlink()

    assert described_folders(tmp_path) == []
    assert undescribed_folders(tmp_path) == [folder]


def test_a_damaged_table_is_named_with_what_to_do(tmp_path, dataset):
    folder = keep(tmp_path, dataset, "null", answers(dataset, "TO"))
    (folder / "predictions.parquet").write_bytes(b"PAR1 and no more")

    with pytest.raises(RunDescriptionError, match=r"predictions\.parquet: .*`evaluate` again"):
        read_run(folder)


def test_a_table_that_was_changed_after_the_run_is_refused(tmp_path, dataset):
    folder = keep(tmp_path, dataset, "null", answers(dataset, "TO"))
    table = folder / "predictions.parquet"
    said = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(
        json.dumps({**said, "predictions": sha256(table.read_bytes()).hexdigest()})
    )
    assert len(read_run(folder).predictions) == 2
    answers(dataset, "TO").head(1).to_parquet(table)

    with pytest.raises(RunDescriptionError, match="changed after the run wrote it"):
        read_run(folder)


def test_a_dataset_that_moved_is_found_where_it_is_said_to_be(tmp_path, dataset):
    folder = keep(tmp_path / "outputs", dataset, "null", answers(dataset, "TO"))
    (found,) = gathered([read_run(folder)])
    dataset.folder.rename(tmp_path / "moved")

    lost, why = dataset_of(found)
    assert lost is None
    assert "-P data=" in why[0]
    assert dataset_of(found, tmp_path / "moved")[1] == []


def test_the_folder_that_was_named_goes_before_the_one_the_run_had(tmp_path, dataset):
    folder = keep(tmp_path / "outputs", dataset, "null", answers(dataset, "TO"))
    (found,) = gathered([read_run(folder)])
    turns(tmp_path / "kept", {"a": "One.", "b": "Two."})
    other = turns(tmp_path / "data", {"a": "Another.", "b": "Two."})

    kept, notes = dataset_of(found, tmp_path / "kept")
    assert (kept.hash, notes) == (found.hash, [])
    # And the other way round: the named one is another version, which is told.
    (found,) = gathered([read_run(keep(tmp_path / "more", other, "null", answers(other, "TO")))])
    changed, notes = dataset_of(found, tmp_path / "kept")
    assert changed.hash == kept.hash
    assert str(tmp_path / "kept") in notes[0]


def test_a_folder_named_for_another_set_of_runs_takes_no_words_away(tmp_path, dataset):
    folder = keep(tmp_path / "outputs", dataset, "null", answers(dataset, "TO"))
    (tmp_path / "another").mkdir()

    found, notes = dataset_of(gathered([read_run(folder)])[0], tmp_path / "another")
    assert (found.hash, notes) == (dataset.hash, [])


def test_a_dataset_that_changed_since_is_told(tmp_path, dataset):
    folder = keep(tmp_path / "outputs", dataset, "null", answers(dataset, "TO"))
    turns(tmp_path / "data", {"a": "Another.", "b": "Two."})

    again, notes = dataset_of(gathered([read_run(folder)])[0])
    assert again is not None
    assert "another version" in notes[0]
