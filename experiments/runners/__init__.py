"""How requests reach a model: each module here carries one file of them and brings answers back.

A runner is a module with `why_not(card) -> str | None` (the reason it cannot take
a model here, or None) and `run(job) -> None`. Answers are appended to the job's response
file by whoever runs the model; a runner that is stopped loses none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from containers.runtime.card import Card

# The first that can take the model is what `runner=auto` means: where its packages are
# installed a process is quickest and needs no engine.
PREFERENCE = ("process", "docker")


class RunnerError(RuntimeError):
    """The model did not get through its requests; the message says why and what to do."""


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


class Runner(Protocol):
    """What a module of this package offers."""

    def why_not(self, card: Card) -> str | None: ...

    def image(self, card: Card) -> str:
        """Digest of what the model runs in; part of every answer's key."""
        ...

    def run(self, job: Job) -> None:
        """Raises RunnerError."""
        ...


def runner(name: str, card: Card) -> tuple[str, Runner]:
    """The runner for a model, by name; `auto` takes the first of `PREFERENCE` that can.

    Raises:
        RunnerError: with the reason of each that cannot.
    """
    refusals = []
    for candidate in _candidates(name):
        module = cast(Runner, import_module(f"experiments.runners.{candidate}"))
        if (reason := module.why_not(card)) is None:
            return candidate, module
        refusals.append(f"{candidate}: {reason}")
    raise RunnerError(f"No runner can take {card.name}: {' '.join(refusals)}")


def _candidates(name: str) -> list[str]:
    here = Path(__file__).parent
    return [name] if name != "auto" else [n for n in PREFERENCE if (here / f"{n}.py").is_file()]
