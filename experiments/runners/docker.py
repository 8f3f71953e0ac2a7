"""The model in its own pinned image: no network, read-only, as the calling user.

It sees four things of this machine: the requests and the audio (read-only), the
response file, and its weights (read-only). Its container is removed on every way
out, and one left behind by a killed run is removed at the next start.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card
from experiments import images
from experiments.gpus import check_memory
from experiments.runners import HERE, SUMMARY, Job, RunnerError, Site
from experiments.runners._ends import GOES_ON, sentence

if TYPE_CHECKING:
    import docker

OWNER = f"{images.LABEL}.owner"
MODEL = f"{images.LABEL}.model"
PIDS = 512
MEMORY_SHARE = 0.9
SHM_BYTES = 1 << 30
STOP_GRACE_S = 15
NOBODY = (65534, 65534)
# Beside the answers: what the runtime and its packages print.
LOG = "model.log"
# Where the container finds each thing.
REQUESTS, RESPONSES, AUDIO, WEIGHTS = (
    "/data/requests.jsonl",
    "/data/responses.jsonl",
    "/data/audio",
    "/weights",
)


def why_not(card: Card, site: Site = HERE) -> str | None:
    """What keeps this model from running in its image here, as a sentence; None if nothing."""
    if not images.dockerfile(card.name).is_file():
        return "it has no image of its own."
    try:
        client = images.engine()
    except images.ImageError as error:
        return str(error)
    built = images.find(client, card.name)
    if built is None:
        return (
            f"its image is not built; build it with: mlflow run . -e build_container "
            f"-P model={card.name}."
        )
    return images.why_stale(built, card.name)


def image(card: Card, site: Site = HERE) -> str:
    """The image's id: part of every answer's key, so an image of other content answers anew."""
    built = images.find(images.engine(), card.name)
    if built is None:
        raise RunnerError(f"{card.name}: {why_not(card)}")
    return built.digest


def run(job: Job) -> None:
    """Run the model's container over the job's requests, to its end.

    Raises:
        RunnerError: where it ended badly; what it had answered is in the file.
    """
    import docker
    import requests

    _check_weights(job)
    check_memory(job)
    try:
        client = images.engine()
        remove_orphans(client)
        job.responses.touch()
        container = client.containers.create(**_container(job, client))
        with removed(container), _writable(job.responses, client):
            _start(container, job)
            code = int(container.wait()["StatusCode"])
            container.reload()
            killed = bool(container.attrs["State"]["OOMKilled"])
    except images.ImageError as error:
        raise RunnerError(f"{job.card.name}: {error}") from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise RunnerError(_engine_sentence(job.card, error)) from error
    if code:
        log = job.log or job.responses.with_name(LOG)
        raise RunnerError(sentence(job.card.name, code, log, out_of_memory=killed))


def remove_orphans(client: docker.DockerClient) -> list[str]:
    """Remove containers of ours whose evaluation is gone; gives their names."""
    import docker

    removed = []
    for container in client.containers.list(all=True, filters={"label": OWNER}):
        if not _alive(container.labels.get(OWNER, "")):
            try:
                container.remove(force=True)
            except docker.errors.APIError:
                # Another evaluation that starts now is removing it too.
                continue
            removed.append(str(container.name))
    return removed


def _container(job: Job, client: docker.DockerClient) -> dict[str, Any]:
    mounts = [
        mount(job.requests, REQUESTS, read_only=True),
        mount(job.responses, RESPONSES, read_only=False),
        mount(job.audio, AUDIO, read_only=True),
    ]
    if job.card.repos:
        mounts.append(mount(job.weights, WEIGHTS, read_only=True))
    built = image(job.card)
    words = {
        "card": f"/app/containers/{job.card.name}/model.toml",
        "weights": WEIGHTS,
        "requests": REQUESTS,
        "responses": RESPONSES,
        "audio": AUDIO,
        "precision": job.precision,
        "device-map": job.device_map,
        "image": built,
    }
    return {
        "image": built,
        "command": [word for key, value in words.items() for word in (f"--{key}", value)],
        "mounts": mounts,
        "network_mode": "none",
        "read_only": True,
        # exec: what triton and bitsandbytes compile is loaded from there.
        "tmpfs": {"/tmp": "rw,exec,nosuid,nodev,size=4g,mode=1777"},
        "user": "{}:{}".format(*user_of(client)),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": PIDS,
        "mem_limit": int(client.info()["MemTotal"] * MEMORY_SHARE),
        "shm_size": SHM_BYTES,
        "device_requests": _devices(job),
        "environment": {"HF_HUB_OFFLINE": "1", "HOME": "/tmp"},
        "labels": {OWNER: owner(), MODEL: job.card.name},
        "init": True,
    }


def mount(source: Path, target: str, *, read_only: bool) -> Any:
    """A file or folder of this machine as the container sees it."""
    import docker

    return docker.types.Mount(target, str(source.resolve()), type="bind", read_only=read_only)


def user_of(client: docker.DockerClient) -> tuple[int, int]:
    """Whom the model runs as, in the container's own numbers: never root of this machine."""
    if any("rootless" in option for option in client.info().get("SecurityOptions") or ()):
        # A rootless engine maps its 0 to the user who runs it, and all others to nobody's.
        return (0, 0)
    return (os.getuid(), os.getgid()) if os.getuid() else NOBODY


@contextmanager
def _writable(responses: Path, client: docker.DockerClient) -> Iterator[None]:
    """Lend the response file to the container's user while it runs."""
    if os.getuid():
        yield
        return
    before = responses.stat()
    os.chown(responses, *user_of(client))
    try:
        yield
    finally:
        os.chown(responses, before.st_uid, before.st_gid)


def _devices(job: Job) -> list[Any]:
    if job.device_map == "cpu" or not job.card.gpu_memory_gb:
        return []
    return gpu_requests(job.gpus)


def gpu_requests(wanted: str) -> list[Any]:
    """What the engine is asked for: auto for all GPUs, count:2, or indices such as 0,1."""
    import docker

    request: dict[str, Any] = {"capabilities": [["gpu"]]}
    if wanted == "auto":
        request["count"] = -1
    elif wanted.startswith("count:"):
        request["count"] = int(wanted.removeprefix("count:"))
    else:
        request["device_ids"] = wanted.split(",")
    return [docker.types.DeviceRequest(**request)]


def _check_weights(job: Job) -> None:
    if job.card.repos and not job.weights.is_dir():
        raise RunnerError(
            f"{job.card.name} has no weights at {job.weights}; fetch them with: "
            f"mlflow run . -e weights -P model={job.card.name}."
        )
    for path in job.weights.rglob("*") if job.card.repos else ():
        if not readable(path):
            raise RunnerError(
                f"{path}: the container's user may not read it; mend with: chmod -R a+rX "
                f"{job.weights}."
            )


def readable(path: Path) -> bool:
    """Whether the container's user may read it."""
    # Root may read anything here; the container, where root becomes nobody, may not.
    wanted = 0o005 if path.is_dir() else 0o004
    if os.getuid() == 0:
        return path.stat().st_mode & wanted == wanted
    return os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))


@contextmanager
def removed(container: Any) -> Iterator[None]:
    """Stop and remove the container however the block ends."""
    import docker

    try:
        yield
    finally:
        try:
            # The runtime finishes the write in hand on SIGTERM.
            container.stop(timeout=STOP_GRACE_S)
            container.remove(force=True)
        except docker.errors.NotFound:
            pass


def _start(container: Any, job: Job) -> None:
    """Start it and follow what it says to its end: its summary to a file, the rest to the
    terminal (or the job's log) and to a file."""
    said = container.attach(stdout=True, stderr=True, stream=True, logs=True, demux=True)
    with ExitStack() as stack:
        summary = stack.enter_context(job.responses.with_name(SUMMARY).open("wb"))
        kept = stack.enter_context((job.log or job.responses.with_name(LOG)).open("ab"))
        container.start()
        for out, err in said:
            summary.write(out or b"")
            kept.write(err or b"")
            kept.flush()
            if err and not job.log:
                sys.stderr.buffer.write(err)
                sys.stderr.flush()


def owner() -> str:
    """Who runs a container: this process, told from a later one of the same number."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"


def _alive(owner: str) -> bool:
    """Whether the process that started a container still runs; its start time tells it from a
    later process of the same number. One of another machine is not ours to judge."""
    host, _, process = owner.partition(":")
    number, _, started = process.partition(":")
    if host != socket.gethostname() or not number.isdigit():
        return True
    if started:
        return _start_time(int(number)) == started
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(process: int) -> str:
    """In the kernel's ticks; "" where the process or /proc is not there."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # Field 22; the name in brackets before it may hold spaces.
    return status.rpartition(")")[2].split()[19]


def _engine_sentence(card: Card, error: Exception) -> str:
    words = " ".join(str(getattr(error, "explanation", None) or error).split())
    if "could not select device driver" in words or "nvidia-container" in words:
        return (
            f"{card.name} wants a GPU and this Docker engine hands out none: install the NVIDIA "
            "container toolkit (nvidia-ctk runtime configure), or run on the processor with "
            "-P device_map=cpu (slow)."
        )
    return f"The Docker engine did not see {card.name} through: {words}. {GOES_ON}"
