"""Which experiment a command's runs go to."""

import pytest

from experiments.experiment_names import of_command


@pytest.mark.parametrize(
    ("command", "parameters", "experiment"),
    [
        ("agreement", {"ratings": "rated/audio.v2.csv"}, "agreement/audio.v2"),
        ("validate_labels", {"ratings": "experts.csv"}, "validate_labels/experts"),
        ("build_container", {"model": "voxtral"}, "containers"),
        ("build_cbt", {"release": "folder"}, "builds"),
        ("build_manipulation", {}, "builds"),
        ("cbt_turns", {"words": "folder"}, "builds"),
        ("cbt_check", {}, "undertone"),
        ("weights", {"model": "voxtral"}, "undertone"),
        ("agreement", {}, "undertone"),
    ],
)
def test_a_commands_runs_go_where_they_can_be_compared(command, parameters, experiment):
    assert of_command(command, parameters) == experiment
