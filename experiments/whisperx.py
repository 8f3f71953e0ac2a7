"""Recordings through WhisperX and pyannote, in their own image or in packages that are here.

The image sees the recordings under names made of their content, a folder to write to and
its weights, and no network: no sound and no word leaves this machine. Results are kept by
recording and by what made them, so a run that was cut short goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from containers.runtime.card import Card, read_card
from core.protocol import digest
from core.speech.engine import SpeechError
from experiments.settings import ROOT, card_file

NAME = "whisperx"
RUNNERS = ("auto", "docker", "process")
OUT_OF_MEMORY = 3
_AUDIO, _OUTPUT, _WEIGHTS = "/data/audio", "/data/output", "/weights"


@dataclass(frozen=True)
class Site:
    """Where and how it runs.

    Attributes:
        runner: docker or process; `chosen` settles auto.
        precision: of the recogniser; auto is float16 on a GPU and int8 on a CPU.
        gpus: auto for all, none for the CPU, count:2, or indices such as 0,1.
        batch: 30 s pieces recognised together.
        speakers: least and most in a recording; None where not known.
    """

    runner: str
    precision: str
    gpus: str
    batch: int
    speakers: tuple[int | None, int | None]


def chosen(runner: str) -> str:
    """The runner that auto means here: the image if it is built, else packages that are here.

    Raises:
        SpeechError: neither can be; says how to get them.
    """
    if runner != "auto":
        return runner
    if (why := _why_no_image()) is None:
        return "docker"
    if find_spec("whisperx") and find_spec("pyannote"):
        return "process"
    raise SpeechError(
        f"asr=whisperx: {why} Or give transcripts that WhisperX wrote elsewhere, with transcripts=."
    )


def version(site: Site) -> str:
    """What decides the words; under another version a recording is transcribed anew."""
    card = _card()
    made_by = _image() if site.runner == "docker" else "process"
    kind = {"card": card.digest, "by": made_by, "speakers": site.speakers}
    return f"{NAME} {digest({**kind, 'precision': site.precision})[:16]}"


def transcribed(sounds: Mapping[str, Path], kept: Path, site: Site) -> dict[str, Path]:
    """Name -> WhisperX's result, for every recording; what is there is not asked for again.

    Args:
        sounds: name made of the content -> its WAV at 16 kHz, mono, 16 bit.
        kept: folder of results.

    Raises:
        SpeechError: weights or an engine are missing, or the run broke off.
    """
    results = {name: kept / f"{name}.json" for name in sounds}
    kept.mkdir(parents=True, exist_ok=True)
    for path in results.values():
        # One that failed is worth another try.
        if path.is_file() and "failed" in _read(path):
            path.unlink()
    if all(path.is_file() for path in results.values()):
        return results
    weights = _weights()
    (folder,) = {path.parent for path in sounds.values()}
    run = _in_docker if site.runner == "docker" else _in_process
    code = run(folder.resolve(), kept.resolve(), weights, site)
    if code == OUT_OF_MEMORY:
        raise SpeechError(
            f"asr=whisperx: the memory does not hold {site.batch} pieces at once: try a smaller "
            "batch=, or precision=int8_float16. What was done is kept."
        )
    if code:
        raise SpeechError(f"asr=whisperx ended with code {code}; the lines above say why.")
    return results


def _read(path: Path) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return result
    except (OSError, ValueError, RecursionError):
        return {"failed": "not readable"}


def result_of(path: Path) -> dict[str, Any]:
    """One recording's result.

    Raises:
        ValueError: it failed; says with what.
    """
    result = _read(path)
    if "failed" in result:
        raise ValueError(str(result["failed"]))
    return result


def _words(site: Site, audio: str, output: str, weights: str) -> list[str]:
    least, most = site.speakers
    words = {"audio": audio, "output": output, "weights": weights, "batch": str(site.batch)}
    words |= {"device": "cpu" if site.gpus == "none" else "auto", "precision": site.precision}
    words |= {} if least is None else {"min-speakers": str(least)}
    words |= {} if most is None else {"max-speakers": str(most)}
    return [word for key, value in words.items() for word in (f"--{key}", value)]


def _in_process(audio: Path, output: Path, weights: Path, site: Site) -> int:
    command = [sys.executable, "-m", "containers.whisperx"]
    # The token opens gated repositories; nothing is fetched here.
    inherited = {k: v for k, v in os.environ.items() if k not in ("HF_TOKEN", "HUGGING_FACE_TOKEN")}
    done = subprocess.run(
        [*command, *_words(site, str(audio), str(output), str(weights))],
        cwd=ROOT,
        env={**inherited, "HF_HUB_OFFLINE": "1", "PYANNOTE_METRICS_ENABLED": "0"},
        check=False,
    )
    return done.returncode


def _in_docker(audio: Path, output: Path, weights: Path, site: Site) -> int:
    import docker
    import requests

    from experiments import images
    from experiments.runners import docker as runner

    try:
        client = images.engine()
        runner.remove_orphans(client)
        container = client.containers.create(**_container(client, audio, output, weights, site))
        with runner.removed(container), _lent(output, runner.user_of(client)):
            container.start()
            for line in container.logs(stream=True, follow=True):
                sys.stderr.write(line.decode(errors="replace"))
            return int(container.wait()["StatusCode"])
    except images.ImageError as error:
        raise SpeechError(f"asr=whisperx: {error}") from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        words = " ".join(str(getattr(error, "explanation", None) or error).split())
        hint = " Without a GPU: gpus=none (slow)." if "device driver" in words else ""
        raise SpeechError(f"asr=whisperx: the Docker engine says: {words}.{hint}") from error


def _container(client: Any, audio: Path, output: Path, weights: Path, site: Site) -> dict[str, Any]:
    from experiments.runners import docker as runner

    return {
        "image": _image(),
        "command": _words(site, _AUDIO, _OUTPUT, _WEIGHTS),
        "mounts": [
            runner.mount(audio, _AUDIO, read_only=True),
            runner.mount(output, _OUTPUT, read_only=False),
            runner.mount(weights, _WEIGHTS, read_only=True),
        ],
        "network_mode": "none",
        "read_only": True,
        "tmpfs": {"/tmp": "rw,exec,nosuid,nodev,size=4g,mode=1777"},
        "user": "{}:{}".format(*runner.user_of(client)),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": runner.PIDS,
        "mem_limit": int(client.info()["MemTotal"] * runner.MEMORY_SHARE),
        "shm_size": runner.SHM_BYTES,
        "device_requests": [] if site.gpus == "none" else runner.gpu_requests(site.gpus),
        "environment": {"HF_HUB_OFFLINE": "1", "PYANNOTE_METRICS_ENABLED": "0", "HOME": "/tmp"},
        "labels": {runner.OWNER: runner.owner(), runner.MODEL: NAME},
        "init": True,
    }


@contextmanager
def _lent(folder: Path, user: Sequence[int]) -> Iterator[None]:
    """The folder as the container's user's while it runs, where root would keep it."""
    if os.getuid():
        yield
        return
    before = folder.stat()
    os.chown(folder, *user)
    try:
        yield
    finally:
        for path in (folder, *folder.iterdir()):
            os.chown(path, before.st_uid, before.st_gid)


def _card() -> Card:
    return read_card(card_file(NAME))


def _weights() -> Path:
    from experiments.weights import WeightsError, check, weights_folder

    folder = weights_folder()
    try:
        for repo in _card().repos:
            check(_card(), repo, folder, deep=False)
    except WeightsError as error:
        raise SpeechError(f"asr=whisperx: {error}") from error
    return (folder / NAME).resolve()


def _why_no_image() -> str | None:
    from experiments import images

    try:
        built = images.find(images.engine(), NAME)
    except images.ImageError as error:
        return str(error)
    if built is None:
        return (
            "its image is not built; build it: mlflow run . -e build_container -P model=whisperx."
        )
    return images.why_stale(built, NAME)


def _image() -> str:
    from experiments import images

    try:
        built = images.find(images.engine(), NAME)
    except images.ImageError as error:
        raise SpeechError(f"asr=whisperx: {error}") from error
    if built is None:
        raise SpeechError(f"asr=whisperx: {_why_no_image()}")
    return built.digest
