"""How requests reach a model: each module here carries one file of them and brings answers back.

A runner is a module with `why_not(card, site) -> str | None` (the reason it cannot take
a model here, or None), `image(card, site)` and `run(job)`. Answers are appended to the job's
response file by whoever runs the model; a runner that is stopped loses none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, TextIO, cast

from containers.runtime.card import Card

# What `runner=auto` tries, in this order. A model without weights runs at once where its
# packages are, and a first run on a laptop must not wait for an engine; one with weights
# runs in the environment it was proven in, where that was built.
LIGHT_FIRST = ("process", "docker")
PINNED_FIRST = ("docker", "process")


# What a model's process says of its own work, beside the answers.
SUMMARY = "work.json"


class RunnerError(RuntimeError):
    """The model did not get through its requests; the message says why and what to do."""


@dataclass(frozen=True)
class Site:
    """What a runner must know to say whether it can take a model.

    Attributes:
        endpoint: address of an OpenAI-compatible server, up to /v1; "" for none.
        served_model: the model's name there; "" where it is the card's repository.
        offline: nothing beyond this machine may be asked.
        address: of a Ray cluster: "auto", "local", host:port or ray://host:port.
        node_runner: what carries a shard on a node of it: "auto", "process" or "docker".
        store: fsspec URL of a folder all its nodes reach; "" where they share folders.
    """

    endpoint: str = ""
    served_model: str = ""
    offline: bool = False
    address: str = "auto"
    node_runner: str = "auto"
    store: str = ""


# Nothing but this machine.
HERE = Site()


@dataclass(frozen=True)
class Job:
    """One model and its requests.

    Attributes:
        card, card_path: the model.
        weights: its folder of weights; may not exist for a model without any.
        requests: file to read.
        responses: file to append to; ids in it are not asked again.
        audio: folder the requests' clips are in.
        precision: one of the card's.
        device_map: as in transformers.
        gpus: "auto" for all, "count:2", or indices such as "0,1"; for runners that hand them out.
        offline: no connection beyond this machine.
        log: file for what the model's process says; None shows it on the terminal.
        site: where a model that is not on this machine is asked.
    """

    card: Card
    card_path: Path
    weights: Path
    requests: Path
    responses: Path
    audio: Path
    precision: str
    device_map: str
    offline: bool = False
    log: Path | None = None
    gpus: str = "auto"
    site: Site = HERE


class Runner(Protocol):
    """What a module of this package offers."""

    def why_not(self, card: Card, site: Site = ...) -> str | None: ...

    def image(self, card: Card, site: Site = ...) -> str:
        """Digest of what the model runs in; part of every answer's key."""
        ...

    def run(self, job: Job) -> None:
        """Raises RunnerError."""
        ...


@contextmanager
def said_to(job: Job) -> Iterator[TextIO]:
    """Where a runner that has no process of the model's writes what it has to say."""
    if job.log is None:
        yield sys.stderr
        return
    with job.log.open("a", encoding="utf-8") as stream:
        yield stream


def runner(name: str, card: Card, site: Site = HERE) -> tuple[str, Runner]:
    """The runner for a model, by name; `auto` takes the first that can.

    Raises:
        RunnerError: with the reason of each that cannot, and the command to begin with.
    """
    refusals = {}
    for candidate in candidates(name, card):
        module = cast(Runner, import_module(f"experiments.runners.{candidate}"))
        reason = module.why_not(card, site)
        if reason is None:
            return candidate, module
        refusals[candidate] = reason
    reasons = " ".join(f"{candidate}: {reason}" for candidate, reason in refusals.items())
    begin = f" Begin with: {_first_command(card)}" if name == "auto" else ""
    raise RunnerError(f"No runner can take {card.name}: {reasons}{begin}")


def candidates(name: str, card: Card) -> tuple[str, ...]:
    """The runners a name stands for, in the order they are tried."""
    if name != "auto":
        return (name,)
    return PINNED_FIRST if card.repos else LIGHT_FIRST


def _first_command(card: Card) -> str:
    from experiments import images
    from experiments.weights import present, weights_folder

    if not card.repos:
        return "pip install -e ."
    try:
        images.engine()
    except images.ImageError:
        fetch = f"mlflow run . -e weights -P model={card.name}"
        then = "" if present(card, weights_folder()) else f", then {fetch}"
        return f"install or start Docker; or, to run without it, pip install -e '.[models]'{then}"
    return f"mlflow run . -e build_container -P model={card.name}"
