"""The model in its own pinned image: no network, read-only, as the calling user.

It sees four things of this machine: the requests and the audio (read-only), the
response file, and its weights (read-only). Its container is removed on every way
out, and one left behind by a killed run is removed at the next start.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from containers.runtime.card import Card
from experiments import images
from experiments.runners import Job, RunnerError

if TYPE_CHECKING:
    import docker

OWNER = f"{images.LABEL}.owner"
MODEL = f"{images.LABEL}.model"
PIDS = 512
MEMORY_SHARE = 0.9
SHM_BYTES = 1 << 30
STOP_GRACE_S = 15
# Where the container finds each thing.
REQUESTS, RESPONSES, AUDIO, WEIGHTS = (
    "/data/requests.jsonl",
    "/data/responses.jsonl",
    "/data/audio",
    "/weights",
)


def why_not(card: Card) -> str | None:
    """What keeps this model from running in its image here, as a sentence; None if nothing."""
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


def image(card: Card) -> str:
    """The image's id: part of every answer's key, so a rebuilt image answers anew."""
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

    _check_weights(job)
    client = images.engine()
    remove_orphans(client)
    job.responses.touch()
    try:
        container = client.containers.create(**_container(job, client))
        with _removed(container), _writable(job.responses):
            container.start()
            _stream(container, job.log)
            code = int(container.wait()["StatusCode"])
            container.reload()
            killed = bool(container.attrs["State"]["OOMKilled"])
    except docker.errors.APIError as error:
        raise RunnerError(_engine_sentence(job.card, error)) from error
    if code:
        raise RunnerError(_sentence(job, code, killed))


def remove_orphans(client: docker.DockerClient) -> list[str]:
    """Remove containers of ours whose evaluation is gone; gives their names."""
    removed = []
    for container in client.containers.list(all=True, filters={"label": OWNER}):
        if not _alive(container.labels.get(OWNER, "")):
            container.remove(force=True)
            removed.append(str(container.name))
    return removed


def _container(job: Job, client: docker.DockerClient) -> dict[str, Any]:
    mounts = [
        _mount(job.requests, REQUESTS, read_only=True),
        _mount(job.responses, RESPONSES, read_only=False),
        _mount(job.audio, AUDIO, read_only=True),
    ]
    if job.card.repos:
        mounts.append(_mount(job.weights, WEIGHTS, read_only=True))
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
        "tmpfs": {"/tmp": "rw,nosuid,nodev,size=4g,mode=1777"},
        "user": "{}:{}".format(*_user()),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": PIDS,
        "mem_limit": int(client.info()["MemTotal"] * MEMORY_SHARE),
        "shm_size": SHM_BYTES,
        "device_requests": _devices(client, job),
        "environment": {"HF_HUB_OFFLINE": "1", "HOME": "/tmp"},
        "labels": {OWNER: f"{os.getpid()}:{_start_time(os.getpid())}", MODEL: job.card.name},
        "init": True,
    }


def _mount(source: Path, target: str, *, read_only: bool) -> Any:
    import docker

    return docker.types.Mount(target, str(source.resolve()), type="bind", read_only=read_only)


def _user() -> tuple[int, int]:
    # Root on the host does not mean root in the container: 65534 is nobody everywhere.
    return (os.getuid(), os.getgid()) if os.getuid() else (65534, 65534)


@contextmanager
def _writable(responses: Path) -> Iterator[None]:
    """Lend the response file to the container's user while it runs."""
    if os.getuid():
        yield
        return
    before = responses.stat()
    os.chown(responses, *_user())
    try:
        yield
    finally:
        os.chown(responses, before.st_uid, before.st_gid)


def _devices(client: docker.DockerClient, job: Job) -> list[Any]:
    import docker

    if job.device_map == "cpu" or not job.card.gpu_memory_gb:
        return []
    if "nvidia" not in client.info().get("Runtimes", {}):
        raise RunnerError(
            f"{job.card.name} wants a GPU and this Docker engine offers none: install the NVIDIA "
            "container toolkit, or run on the processor with -P device_map=cpu (slow)."
        )
    wanted = job.gpus
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


@contextmanager
def _removed(container: Any) -> Iterator[None]:
    """Stop and remove the container however the block ends, SIGTERM included."""
    import docker

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    ours = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, leave) if ours else None
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before)
        try:
            # The runtime finishes the write in hand on SIGTERM.
            container.stop(timeout=STOP_GRACE_S)
            container.remove(force=True)
        except docker.errors.NotFound:
            pass


def _stream(container: Any, log: Path | None) -> None:
    out = cast(BinaryIO, log.open("ab")) if log else os.fdopen(os.dup(2), "wb")
    with out:
        for chunk in container.logs(stream=True, follow=True):
            out.write(chunk)
            out.flush()


def _alive(owner: str) -> bool:
    """Whether the process that started a container still runs; its start time tells it from a
    later process of the same number."""
    number, _, started = owner.partition(":")
    return number.isdigit() and _start_time(int(number)) == started != ""


def _start_time(process: int) -> str:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    # Field 22; the name in brackets before it may hold spaces.
    return status.rpartition(")")[2].split()[19]


def _engine_sentence(card: Card, error: Exception) -> str:
    return f"The Docker engine refused to run {card.name}: {error}."


def _sentence(job: Job, code: int, killed: bool) -> str:
    if killed:
        cause = "was ended by the kernel: out of memory"
    else:
        cause = f"stopped with exit code {code}; its reason is above"
    where = f" Its last words are in {job.log}." if job.log else ""
    return (
        f"{job.card.name} {cause}. What it had answered is kept: the same command goes on where "
        f"it stopped.{where}"
    )
