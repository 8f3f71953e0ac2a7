"""The baseline's image, built and run as a user would: the answers are the process's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests

ROOT = Path(__file__).parents[2]
TAG = "undertone-test/baseline"
CHOICES = {level: (level, f" {level}") for level in "12345"}

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def docker() -> str:
    program = shutil.which("docker")
    answers = program and subprocess.run([program, "version"], capture_output=True).returncode == 0
    if not program or not answers:
        pytest.skip("no Docker engine answers; start one, or set DOCKER_HOST")
    return program


@pytest.fixture(scope="module")
def image(docker: str) -> str:
    base = os.environ.get("BASE_IMAGE")
    options = ["--build-arg", f"BASE_IMAGE={base}"] if base else []
    command = [docker, "build", "-q", "--network", "host", "-t", TAG, *options]
    built = subprocess.run(
        [*command, "-f", "containers/baseline/Dockerfile", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    return TAG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "audio").mkdir()
    (tmp_path / "out").mkdir()
    time = np.arange(3 * 16_000) / 16_000
    requests = []
    for name, pitch_hz in (("low.wav", 110), ("high.wav", 240)):
        tone = np.sign(np.sin(2 * np.pi * pitch_hz * time)) * np.sin(np.pi * 4 * time) ** 2
        soundfile.write(tmp_path / "audio" / name, (0.1 * tone).astype("f4"), 16_000, "FLOAT")
        said = {"text": "I can hardly talk about it.", "slot": "transcript"}
        for condition, parts in (("AO", ({"audio": name},)), ("AT", ({"audio": name}, said))):
            requests.append(Request(f"{name} {condition}", "Rate.", parts, CHOICES))
    requests.append(Request("TO", "Rate.", (said,), CHOICES))
    write_requests(tmp_path / "requests.jsonl", requests)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return tmp_path


def in_the_image(docker: str, image: str, folder: Path) -> subprocess.CompletedProcess:
    # A container never runs as root, whoever calls.
    user = f"{os.getuid()}:{os.getgid()}" if os.getuid() else "65534:65534"
    (folder / "out").chmod(0o777)
    confined = f"--network none --read-only --tmpfs /tmp --cap-drop ALL --user {user}".split()
    mounts = ["-v", f"{folder}:/in:ro", "-v", f"{folder}/out:/out"]
    files = [
        "--card",
        "/app/containers/baseline/model.toml",
        "--weights",
        "/tmp",
        "--audio",
        "/in/audio",
        "--requests",
        "/in/requests.jsonl",
        "--responses",
        "/out/responses.jsonl",
        "--image",
        "sha256:test",
    ]
    return subprocess.run(
        [docker, "run", "--rm", *confined, *mounts, image, *files], capture_output=True, text=True
    )


def as_a_process(folder: Path) -> None:
    card = "containers/baseline/model.toml"
    named = {"requests": "requests.jsonl", "responses": "here.jsonl", "audio": "audio"}
    files = [word for key, name in named.items() for word in (f"--{key}", str(folder / name))]
    subprocess.run(
        [sys.executable, "-m", "containers.runtime", "--card", card, "--weights", ".", *files],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )


def test_the_image_answers_as_the_process_does(docker, image, folder):
    ran = in_the_image(docker, image, folder)
    assert ran.returncode == 0, ran.stderr[-2000:]
    as_a_process(folder)
    there = read_responses(folder / "out" / "responses.jsonl")
    here = read_responses(folder / "here.jsonl")
    assert set(there) == set(here)
    assert {answer.status for answer in there.values()} == {"ok"}
    assert {answer.image for answer in there.values()} == {"sha256:test"}
    for id, answer in here.items():
        assert there[id].text == answer.text
        assert there[id].choice_logprobs == pytest.approx(answer.choice_logprobs, abs=1e-6)


def test_the_image_holds_no_torch_no_root_and_none_of_the_rest_of_the_project(docker, image):
    script = (
        "import os, importlib.util as u, pathlib; "
        "print(os.getuid(), u.find_spec('torch'), u.find_spec('mlflow'), "
        "sorted(p.name for p in pathlib.Path('/app').iterdir()))"
    )
    said = subprocess.run(
        [docker, "run", "--rm", "--network", "none", "--entrypoint", "python", image, "-c", script],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split(maxsplit=3)
    assert said[:3] == ["65534", "None", "None"]
    assert said[3].strip() == "['containers', 'core']"
