import resource
import subprocess
import sys

import pytest

from experiments.settings import (
    ROOT,
    SettingsError,
    experiment_name,
    read_arguments,
    settings_from,
)


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "it's a; set"
    folder.mkdir()
    (folder / "dataset.json").write_text('{"name": "turns of ours"}')
    (folder / "manifest.csv").touch()
    return folder


def asked(dataset, **words):
    return settings_from({"model": "null", "data": str(dataset), **words})


def test_words_become_typed_settings(dataset):
    settings = asked(dataset, conditions="to, AO", limit="7", seed="3", offline="True")

    assert settings.conditions == ("AO", "TO")
    assert (settings.limit, settings.seed, settings.offline) == (7, 3, True)
    assert settings.data == dataset


def test_a_limit_of_zero_means_all_items(dataset):
    assert asked(dataset, limit="0").limit is None


@pytest.mark.parametrize(
    ("word", "value", "said"),
    [
        ("model", "nul", "did you mean 'null'"),
        ("task", "distres", "did you mean 'distress'"),
        ("conditions", "AO,AX", "There is no condition 'AX'"),
        ("conditions", " , ", "found nothing"),
        ("limit", "-1", "limit: expected a whole number of 0 or more, found '-1'"),
        ("limit", "2.5", "found '2.5'"),
        ("limit", "1_0", "found '1_0'"),
        ("limit", "٣", "found '٣'"),
        ("seed", "9" * 19, "seed: expected a whole number of 0 or more"),
        ("seed", "soon", "found 'soon'"),
        ("resamples", "0", "expected a whole number of 1 to 1000000"),
        ("resamples", "1000000000000", "expected a whole number of 1 to 1000000"),
        ("offline", "maybe", "expected true or false"),
        ("runner", "dokcer", "did you mean 'docker'"),
        ("data", "/nowhere", "there is no folder /nowhere"),
        ("precision", "", "precision: expected a value"),
        ("address", "local", "only runner=ray has one"),
        ("store", "s3://bucket/x", "only runner=ray reads one"),
        ("node_runner", "server", "There is no node_runner 'server'"),
        ("device", "cpu", "There is no option 'device'"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_helps(dataset, word, value, said):
    with pytest.raises(SettingsError) as error:
        asked(dataset, **{word: value})

    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_no_dataset_is_said_so(tmp_path):
    with pytest.raises(SettingsError, match=r"has no manifest"):
        asked(tmp_path)


def test_an_output_below_a_file_is_refused(dataset):
    with pytest.raises(SettingsError, match="is a file; give a folder"):
        asked(dataset, output=str(dataset / "dataset.json" / "runs"))


def test_an_option_that_does_not_exist_is_guessed_at():
    with pytest.raises(SettingsError, match="did you mean 'model'"):
        read_arguments(["--modle", "null"], "evaluate", "")


def test_runs_of_one_dataset_meet_in_one_experiment_however_its_folder_was_spelled(dataset):
    spelled_out = asked(dataset)
    relative = settings_from({"model": "null", "data": dataset.name}, base=dataset.parent)

    assert experiment_name(spelled_out) == experiment_name(relative) == "distress/turns of ours"


def test_a_wrong_value_ends_the_program_with_code_2_and_nothing_written(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "experiments.evaluate", "--limit", "-3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_is_instant():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-m", "experiments.evaluate", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "--conditions" in shown.stdout
    # Computing time, which a busy machine does not lengthen.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 0.3


def test_an_option_of_the_task_is_taken_as_typed(dataset):
    words = read_arguments(
        ["--task", "manipulation", "--shots", "2", "--swap=true"], "evaluate", ""
    )
    settings = asked(dataset, task="manipulation", shots=words["shots"], swap=words["swap"])

    assert settings.of_task == {"shots": "2", "swap": "true"}
    assert asked(dataset).of_task == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"task": "distress", "shots": "4"},
            "shots is an option of task manipulation, and task is distress",
        ),
        (
            {"task": "manipulation", "shots": "some"},
            "shots: expected a whole number, 0 or more, or auto",
        ),
        ({"task": "manipulation", "shots": "3"}, "shots: expected an even number"),
        ({"task": "manipulation", "shotz": "4"}, "did you mean 'shots'"),
        (
            {"task": "distress", "max_new_tokens": "0"},
            "max_new_tokens: expected a whole number, 1 or more",
        ),
    ],
)
def test_a_wrong_option_of_a_task_is_one_sentence_that_helps(dataset, words, said):
    with pytest.raises(SettingsError) as error:
        asked(dataset, **words)

    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_help_shows_a_tasks_options_where_the_task_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        read_arguments(["--task", "manipulation", "--help"], "evaluate", "")

    assert ended.value.code == 0
    assert "--tactic_scoring" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["auto", "local", "10.0.0.1:6379", "ray://head:10001"])
def test_a_cluster_is_named_by_its_address(dataset, address):
    assert asked(dataset, runner="ray", address=address).address == address


@pytest.mark.parametrize(
    ("word", "value", "said"),
    [
        ("address", "ray://head", "expected auto, local, host:port"),
        ("address", "user@head:6379", "expected auto, local, host:port"),
        ("store", "folder", "expected an address every node knows"),
        ("store", "s3://key:secret@bucket/folder", "without a login or a key in it"),
    ],
)
def test_a_cluster_or_store_that_cannot_be_meant_is_refused(dataset, word, value, said):
    with pytest.raises(SettingsError, match=said):
        asked(dataset, runner="ray", **{word: value})
