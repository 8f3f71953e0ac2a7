"""Which runner takes a model, and what is said where none can."""

from dataclasses import replace

import pytest

from containers.runtime.card import read_card
from experiments import images, weights
from experiments.runners import RunnerError, runner
from experiments.settings import ROOT


@pytest.fixture
def voxtral(monkeypatch):
    """A model with weights, where there is neither an engine nor its packages."""

    def no_engine():
        raise images.ImageError("No Docker engine answers.")

    monkeypatch.setattr(images, "engine", no_engine)
    card = read_card(ROOT / "containers" / "voxtral" / "model.toml")
    return replace(card, packages=("no_such_package",))


def refusal(card):
    with pytest.raises(RunnerError) as refused:
        runner("auto", card)
    return str(refused.value)


def test_without_an_engine_both_ways_on_are_told(voxtral, monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERTONE_WEIGHTS", str(tmp_path))

    assert refusal(voxtral).endswith(
        "Begin with: install or start Docker; or, to run without it, "
        "pip install -e '.[models]', then mlflow run . -e weights -P model=voxtral"
    )


def test_weights_that_are_there_are_not_asked_for(voxtral, monkeypatch):
    monkeypatch.setattr(weights, "present", lambda card, folder: True)

    assert refusal(voxtral).endswith("pip install -e '.[models]'")
