"""How a model's process ended, as a sentence."""

from pathlib import Path

import pytest

from experiments.runners._ends import sentence


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (2, "cannot read"),
        (3, "does not load"),
        (4, "does not hear"),
        (5, "another process"),
        (74, "is a disk full?"),
        (75, "hung again and again"),
        (1, "exit code 1"),
        (-9, "ended by SIGKILL. The kernel does that when memory runs out"),
        (137, "ended by SIGKILL"),
        (143, "ended by SIGTERM"),
        (130, "ended by SIGINT"),
        (-64, "ended by SIGRTMAX"),
        (255, "signal 127"),
    ],
)
def test_every_exit_code_is_a_sentence_that_says_to_go_on(code, said):
    found = sentence("voxtral", code)

    assert found.startswith("voxtral ")
    assert said in found
    assert found.endswith("the same command goes on where it stopped.")


def test_a_lack_of_memory_that_is_known_is_told_as_known():
    assert "SIGKILL. Its memory had run out." in sentence("voxtral", 137, out_of_memory=True)


def test_the_log_is_named_where_there_is_one():
    assert "its last words are in model.log" in sentence("voxtral", 3, Path("model.log"))
    assert "its last words are above" in sentence("voxtral", 3)
