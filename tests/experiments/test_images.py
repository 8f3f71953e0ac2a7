"""Images of the models: what one was built from, and what a build says of itself."""

from dataclasses import replace

import pytest

from containers.runtime.card import read_card
from experiments import build_container, images
from experiments.settings import ROOT

BASELINE = read_card(ROOT / "containers" / "baseline" / "model.toml")
LABELS = {"source": "a" * 64, "lock": "b" * 64, "card": "c" * 32, "base": "d", "commit": "e"}
BUILT = images.Built("undertone/x:latest", "sha256:1", 100_000_000, LABELS)


@pytest.fixture
def engine():
    try:
        return images.engine()
    except images.ImageError as error:
        pytest.skip(str(error))


def test_a_build_says_what_is_new_in_it():
    labels = {**LABELS, "source": "f" * 64, "commit": "g"}
    after = replace(BUILT, digest="sha256:2", size=110_000_000, labels=labels)

    assert images.changes(None, BUILT) == ["first build on this machine"]
    assert images.changes(BUILT, BUILT) == ["nothing changed"]
    assert images.changes(BUILT, after) == [
        "code changed: aaaaaaaaaaaa -> ffffffffffff",
        "commit changed: e -> g",
        "size 100 -> 110 MB (+10)",
    ]


def test_an_image_is_stale_when_its_code_differs(monkeypatch):
    monkeypatch.setattr(images, "source_digest", lambda model: "a" * 64)
    assert images.why_stale(BUILT, "x") is None

    monkeypatch.setattr(images, "source_digest", lambda model: "0" * 64)
    assert "build_container -P model=x" in images.why_stale(BUILT, "x")


def test_code_that_goes_into_no_image_does_not_count():
    assert images.source_digest("baseline") != images.source_digest("voxtral")
    assert images.source_digest("baseline") == images.source_digest("baseline")


@pytest.mark.parametrize(
    ("local", "given"),
    [
        ("local/python:3.11-slim-bookworm", {"BASE_IMAGE": "local/python:3.11-slim-bookworm"}),
        ("local/python:3.10-slim-bookworm", {}),
        ("", {}),
    ],
)
def test_a_stand_in_replaces_the_base_of_its_name_alone(monkeypatch, local, given):
    monkeypatch.setenv("BASE_IMAGE", local)

    assert images._stand_in("baseline") == given


@pytest.mark.parametrize(
    ("option", "value"),
    [("model", "null"), ("model", "gpt"), ("arguments", "NO-NAME"), ("quiet", "maybe")],
)
def test_a_wrong_value_is_code_2_and_one_sentence(capsys, option, value):
    assert build_container.main([f"--{option}", value]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_engine_is_code_1_and_one_sentence(capsys, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    assert build_container.main(["--model", "baseline"]) == 1
    assert "No Docker engine answers at unix:///nowhere" in capsys.readouterr().err


@pytest.mark.docker
def test_an_image_carries_what_it_was_built_from_and_stays_itself(engine, monkeypatch):
    built, _ = images.build(engine, BASELINE, {}, lambda line: None)
    monkeypatch.setattr(images, "commit", lambda: "another that touched nothing of it")
    again, changed = images.build(engine, BASELINE, {}, lambda line: None)

    assert built.digest == again.digest
    assert built.digest.startswith("sha256:")
    assert built.labels["card"] == BASELINE.digest
    assert changed == ["nothing changed"]


@pytest.mark.docker
def test_a_build_that_fails_says_why(engine):
    with pytest.raises(images.ImageError, match="The image of baseline did not build"):
        images.build(engine, BASELINE, {"BASE_IMAGE": "local/no-such:1"}, lambda line: None)
