import subprocess
import sys
from dataclasses import replace

import pytest

from experiments import processes
from experiments.processes import as_words, from_words, is_gone, this_process


@pytest.fixture
def ended():
    """A process of this machine that has come and gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return replace(this_process(), pid=child.pid)


def test_a_living_process_is_there_and_an_ended_one_is_gone(ended):
    assert not is_gone(this_process())
    assert is_gone(ended)


def test_a_number_given_out_again_is_another_process():
    assert is_gone(replace(this_process(), started="1"))


def test_one_that_ended_and_was_not_collected_is_gone():
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    child.stdout.read()
    alike = replace(this_process(), pid=child.pid, started=processes._started(child.pid))
    # Without poll or wait it stays as a zombie.
    while processes._state(child.pid) != "Z":
        pass

    assert is_gone(alike)
    child.wait()


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "another"}, {"boot": ""}, {"namespace": "pid:[1]"}, {"boot": "b", "machine": "m"}],
)
def test_one_that_cannot_be_known_from_here_is_not_declared_dead(ended, elsewhere):
    assert not is_gone(replace(ended, **elsewhere))


def test_one_of_an_earlier_start_of_this_machine_is_gone(monkeypatch, tmp_path):
    machine = tmp_path / "machine-id"
    machine.write_text("m\n")
    monkeypatch.setattr(processes, "_MACHINE", machine)

    assert is_gone(replace(this_process(), boot="before"))
    # A machine that has no id of its own cannot be told from another of its name.
    machine.write_text("")
    assert not is_gone(replace(this_process(), boot="before"))


def test_in_words_it_is_the_same_process_and_other_words_are_none(ended):
    assert from_words(as_words(ended)) == ended
    assert from_words("vm:12") is None
    assert from_words("") is None
    assert from_words('{"pid": 12}') is None
