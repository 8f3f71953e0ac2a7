"""`mlflow run . -e models`: the models there are, and how far each is ready on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from containers.runtime.card import Card, read_card
from experiments.options import OptionError, read_options
from experiments.settings import ROOT, models

if TYPE_CHECKING:
    import docker

COLUMNS = ("model", "runs by", "built", "weights", "memory", "gated", "verified", "licence")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    try:
        read_options({}, arguments, "python -m experiments.models", __doc__)
    except OptionError as error:
        print(f"models: {error}", file=sys.stderr)
        return 2
    from experiments.table import Grid, print_grid

    client = _engine()
    cards = [read_card(ROOT / "containers" / name / "model.toml") for name in models()]
    print_grid(Grid(COLUMNS, tuple(_row(card, client) for card in cards)), "models", sys.stdout)
    return 0


def _engine() -> docker.DockerClient | None:
    from experiments import images

    try:
        return images.engine()
    except images.ImageError:
        return None


def _row(card: Card, client: docker.DockerClient | None) -> tuple[str, ...]:
    gated = any(repo.gated for repo in card.repos)
    return (
        card.name,
        _runner(card),
        _built(card, client),
        _weights(card),
        _memory(card),
        "yes" if gated else "no",
        " ".join(filter(None, (card.verified, card.verified_on))),
        card.licence,
    )


def _memory(card: Card) -> str:
    """Of the default precision, and of the smallest where that is another."""
    needs = card.gpu_memory_gb
    if not needs:
        return "CPU"
    default = card.capabilities.precisions[0]
    least = min(needs, key=needs.__getitem__)
    return ", ".join(f"{needs[name]:g} GB {name}" for name in dict.fromkeys((default, least)))


def _runner(card: Card) -> str:
    """What `runner=auto` would take here."""
    from experiments.runners import RunnerError, runner

    try:
        return runner("auto", card)[0]
    except RunnerError:
        return "nothing yet"


def _built(card: Card, client: docker.DockerClient | None) -> str:
    from experiments import images

    if not images.dockerfile(card.name).is_file():
        return "none needed"
    if client is None:
        return "no engine"
    built = images.find(client, card.name)
    if built is None:
        return "no"
    return "yes" if images.why_stale(built, card.name) is None else "stale"


def _weights(card: Card) -> str:
    from experiments.weights import present, weights_folder

    if not card.repos:
        return "none needed"
    return "yes" if present(card, weights_folder()) else "no"


if __name__ == "__main__":
    sys.exit(main())
