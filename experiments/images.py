"""Container images of the models: their names, what they were built from, and building them.

An image carries labels that say which code, lock and revision went into it, so
that one built from other code is never taken for the present one. Needs the
`docker` extra and an engine.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card
from experiments.settings import ROOT, recognisers

if TYPE_CHECKING:
    import docker

LABEL = "org.undertone"
# What a label says of an image, in the words of the report on a new build.
LABELLED = {
    "source": "code",
    "lock": "package lock",
    "card": "model card",
    "base": "base image",
    "commit": "commit",
}


class ImageError(RuntimeError):
    """No engine, no image, or a failed build; one sentence with the command that mends it."""


@dataclass(frozen=True)
class Built:
    """One image as the engine knows it: `digest` its id, `size` bytes, `labels` by short name."""

    tag: str
    digest: str
    size: int
    labels: Mapping[str, str]


def engine() -> docker.DockerClient:
    """A client of the engine that DOCKER_HOST (or the default socket) names.

    Raises:
        ImageError: where the package or the engine is missing.
    """
    try:
        import docker
    except ModuleNotFoundError as error:
        raise ImageError(
            "The docker package is not installed (pip install -e '.[docker]')."
        ) from error
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except docker.errors.DockerException as error:
        where = os.environ.get("DOCKER_HOST", "the default socket")
        raise ImageError(
            f"No Docker engine answers at {where}: start one, or set DOCKER_HOST."
        ) from error
    return client


def tag(model: str) -> str:
    """Name of a model's image on this machine; UNDERTONE_IMAGES is the part before the slash."""
    return f"{os.environ.get('UNDERTONE_IMAGES') or 'undertone'}/{model}:latest"


def source_digest(model: str) -> str:
    """Digest of all files of ours that go into a model's image."""
    files = [ROOT / "core" / "protocol.py"]
    # A recogniser's image has a loop of its own.
    shared = [] if model in recognisers() else [ROOT / "containers" / "runtime"]
    for folder in (*shared, ROOT / "containers" / model):
        files += [path for path in folder.rglob("*") if path.is_file()]
    total = sha256()
    for path in sorted(files):
        if "__pycache__" not in path.parts:
            total.update(str(path.relative_to(ROOT)).encode() + b"\0")
            total.update(sha256(path.read_bytes()).digest())
    return total.hexdigest()


def find(client: docker.DockerClient, model: str) -> Built | None:
    """The model's image on this machine, or None."""
    import docker

    try:
        image = client.images.get(tag(model))
    except docker.errors.ImageNotFound:
        return None
    return _built(tag(model), image)


def why_stale(built: Built, model: str) -> str | None:
    """One sentence where an image was built from other files than are here; None if not."""
    if built.labels.get("source") == source_digest(model):
        return None
    return (
        f"the image {built.tag} was built from other code than is here; rebuild it with: "
        f"mlflow run . -e build_container -P model={model}."
    )


def build(
    client: docker.DockerClient, card: Card, arguments: Mapping[str, str], show: Any
) -> tuple[Built, list[str]]:
    """Build a model's image and say what is new in it.

    Args:
        arguments: build arguments. BASE_IMAGE in the environment stands in for a base of the
            same name from another registry, and for no other: Python 3.10 is not 3.11.
        show: called with each line the engine prints.

    Returns:
        The image, and one line for each thing that changed since the one before.

    Raises:
        ImageError: with the engine's last words where the build fails.
    """
    before = find(client, card.name)
    given = _stand_in(card.name) | dict(arguments)
    labels = _labels(client, card, given, before)
    said: list[str] = []
    for record in _build_stream(client, card, given, labels):
        if text := str(record.get("stream", "")).rstrip():
            said.append(text)
            show(text)
        if "error" in record:
            last = " | ".join(said[-3:])
            raise ImageError(f"The image of {card.name} did not build: {record['error']} ({last})")
    built = find(client, card.name)
    if built is None:
        raise ImageError(f"The engine reported no error, yet there is no image {tag(card.name)}.")
    return built, changes(before, built)


def changes(before: Built | None, after: Built) -> list[str]:
    """What differs between two builds of one image, a line each."""
    if before is None:
        return ["first build on this machine"]
    if before.digest == after.digest:
        return ["nothing changed"]
    lines = [
        f"{name} changed: {before.labels.get(label, 'unknown')[:12]} -> {now[:12]}"
        for label, name in LABELLED.items()
        if (now := after.labels.get(label, "unknown")) != before.labels.get(label, "unknown")
    ]
    grown = (after.size - before.size) / 1e6
    return [*lines, f"size {before.size / 1e6:.0f} -> {after.size / 1e6:.0f} MB ({grown:+.0f})"]


def base_image(model: str) -> str:
    """The default of `ARG BASE_IMAGE` in the model's Dockerfile."""
    found = re.search(r"^ARG BASE_IMAGE=(\S+)", dockerfile(model).read_text(), re.MULTILINE)
    return found.group(1) if found else ""


def _stand_in(model: str) -> dict[str, str]:
    local = os.environ.get("BASE_IMAGE", "")
    same = local.rpartition("/")[2] == base_image(model).rpartition("/")[2]
    return {"BASE_IMAGE": local} if local and same else {}


def dockerfile(model: str) -> Path:
    return ROOT / "containers" / model / "Dockerfile"


def commit() -> str:
    """The tree's commit, with `-dirty` where files differ from it; "unknown" outside git."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()


def _labels(
    client: docker.DockerClient, card: Card, given: Mapping[str, str], before: Built | None
) -> dict[str, str]:
    import docker

    base = given.get("BASE_IMAGE") or base_image(card.name)
    try:
        base_digest = str(client.images.get(base).id)
    except docker.errors.ImageNotFound:
        base_digest = base
    lock = ROOT / "containers" / card.name / "requirements.txt"
    made_of = {
        "source": source_digest(card.name),
        "lock": sha256(lock.read_bytes()).hexdigest() if lock.is_file() else "none",
        "card": card.digest,
        "base": base_digest,
    }
    # A commit that touched nothing of this image must not make another image of it: all
    # its answers would be asked for again.
    same = before is not None and made_of.items() <= before.labels.items()
    since = before.labels.get("commit", commit()) if before is not None and same else commit()
    return {
        **{f"{LABEL}.{name}": value for name, value in made_of.items()},
        f"{LABEL}.commit": since,
        "org.opencontainers.image.title": f"undertone {card.title}",
        "org.opencontainers.image.revision": since,
        "org.opencontainers.image.licenses": card.licence,
    }


def _build_stream(
    client: docker.DockerClient, card: Card, given: Mapping[str, str], labels: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    import docker
    from docker.utils.build import tar

    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in ignored if line.strip() and not line.startswith("#")]
    relative = str(dockerfile(card.name).relative_to(ROOT))
    with tempfile.TemporaryFile() as context:
        tar(ROOT, exclude=patterns, dockerfile=(relative, None), fileobj=context)
        context.seek(0)
        try:
            yield from client.api.build(
                fileobj=context,
                custom_context=True,
                dockerfile=relative,
                tag=tag(card.name),
                buildargs=dict(given),
                labels=dict(labels),
                network_mode="host",
                rm=True,
                forcerm=True,
                decode=True,
                timeout=6 * 3600,
            )
        except docker.errors.APIError as error:
            raise ImageError(f"The image of {card.name} did not build: {error}.") from error


def _built(name: str, image: Any) -> Built:
    labels = {k.removeprefix(f"{LABEL}."): v for k, v in (image.labels or {}).items()}
    return Built(name, str(image.id), int(image.attrs["Size"]), labels)
