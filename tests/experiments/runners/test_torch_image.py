"""A torch model's own image, really built and really run, by the commands a user types.

The weights are a random checkpoint of the model's real class; no GPU, so torch's build for
the processor goes in by build arguments.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from containers.runtime.response_log import read_responses
from experiments import images
from experiments.runners import docker as runner
from experiments.settings import ROOT

MODEL = "qwen2_5_omni"
TORCH = "torch==2.13.0"
TORCHVISION = "torchvision==0.28.0"
TINY = ROOT / "tests" / "containers"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.models,
    pytest.mark.timeout(1500),
]


@pytest.fixture(scope="module")
def engine():
    try:
        return images.engine()
    except images.ImageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def cpu_torch(engine, tmp_path_factory):
    """Build arguments that put torch without CUDA into an image.

    Where pip has a wheel of that build at hand it goes into a base image, else torch's own
    index is asked.
    """
    folder = tmp_path_factory.mktemp("torch")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), TORCH],
        check=True,
    )
    (wheel,) = folder.glob("torch-*.whl")
    if "+cpu" not in wheel.name:
        index = "--index-url https://download.pytorch.org/whl/cpu"
        return {"TORCH": f"{TORCH} {TORCHVISION} {index}"}
    base = os.environ.get("BASE_IMAGE") or images.base_image(MODEL)
    # torchvision's wheel lacks its operators beside this torch: declared as in the other tests.
    shutil.copytree(TINY / "torchvision_operators", folder / "operators")
    (folder / "Dockerfile").write_text(
        f"FROM {base}\nCOPY {wheel.name} /tmp/\nRUN pip install --no-cache-dir --no-compile "
        f"/tmp/{wheel.name} {TORCHVISION} && rm /tmp/{wheel.name}\n"
        "COPY operators /opt/operators\nENV PYTHONPATH=/opt/operators\n"
    )
    name = "undertone-tests/torch-cpu:latest"
    engine.images.build(path=str(folder), tag=name, network_mode="host", rm=True)
    return {"BASE_IMAGE": name, "TORCH": f"{TORCH} {TORCHVISION}"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """What `mlflow run` needs: a store of its own, and tiny weights in the model's folder."""
    place = tmp_path_factory.mktemp("torch-image")
    weights = place / "weights" / MODEL
    code = (
        f"from pathlib import Path; from tiny import {MODEL}; {MODEL}.save(Path({str(weights)!r}))"
    )
    paths = os.pathsep.join([str(TINY), str(TINY / "torchvision_operators")])
    weights.mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": paths}
    )
    for path in weights.iterdir():
        path.chmod(0o644)
    return {
        **os.environ,
        "UNDERTONE_WEIGHTS": str(place / "weights"),
        "MLFLOW_TRACKING_URI": f"sqlite:///{place}/mlflow.db",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


@pytest.fixture(scope="module")
def image(engine, cpu_torch, environment):
    """The model's image, built by `mlflow run . -e build_container`."""
    given = ",".join(f"{name}={value}" for name, value in cpu_torch.items())
    built = mlflow_run(environment, "build_container", model=MODEL, arguments=given, quiet="true")
    assert built.returncode == 0, built.stderr[-2000:]
    assert "sha256:" in built.stdout
    return images.find(engine, MODEL)


def mlflow_run(environment, entry, **parameters):
    return subprocess.run(
        words_of(entry, parameters), cwd=ROOT, env=environment, capture_output=True, text=True
    )


def words_of(entry, parameters):
    given = [word for key, value in parameters.items() for word in ("-P", f"{key}={value}")]
    return ["mlflow", "run", ".", "-e", entry, *given]


def metrics_of(output):
    (path,) = Path(output).rglob("metrics.json")
    return json.loads(path.read_text())


def test_a_model_answers_in_its_image_and_goes_on_after_a_kill(
    engine, image, environment, tmp_path
):
    asked = {"model": MODEL, "device_map": "cpu", "runner": "auto", "resamples": 100}
    whole = mlflow_run(environment, "evaluate", output=tmp_path / "whole", **asked)
    assert whole.returncode == 0, whole.stderr[-3000:]

    killed = subprocess.Popen(
        words_of("evaluate", {**asked, "output": tmp_path / "killed"}),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    kill_once_it_answers(engine, tmp_path / "killed")
    said = killed.communicate(timeout=300)[1]
    assert killed.returncode != 0
    assert "goes on where it stopped" in said
    (path,) = (tmp_path / "killed").rglob("responses.jsonl")
    kept = len(read_responses(path))
    again = mlflow_run(environment, "evaluate", output=tmp_path / "killed", **asked)
    assert again.returncode == 0, again.stderr[-3000:]

    answers = read_responses(path)
    assert 0 < kept < len(answers) == 90
    assert {answer.image for answer in answers.values()} == {image.digest}
    assert {answer.status for answer in answers.values()} <= {"ok", "truncated"}
    assert metrics_of(tmp_path / "killed") == metrics_of(tmp_path / "whole")
    assert engine.containers.list(all=True, filters={"label": runner.OWNER}) == []


def kill_once_it_answers(engine, output):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        answered = any(path.stat().st_size for path in output.rglob("responses.jsonl"))
        running = engine.containers.list(filters={"label": runner.OWNER})
        if answered and running:
            running[0].kill()
            return
        time.sleep(0.02)
    pytest.fail("the container never answered")
