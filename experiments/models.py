"""`mlflow run . -e models`: the models there are, and how far each is ready on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from containers.runtime.card import Card, read_card
from experiments.options import OptionError, read_options
from experiments.settings import ROOT, models

COLUMNS = ("model", "licence", "gated", "memory", "runs in", "built", "weights", "verified")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    try:
        read_options({}, arguments, "python -m experiments.models", __doc__)
    except OptionError as error:
        print(f"models: {error}", file=sys.stderr)
        return 2
    from experiments.table import Grid, print_grid

    cards = [read_card(ROOT / "containers" / name / "model.toml") for name in models()]
    print_grid(Grid(COLUMNS, tuple(_row(card) for card in cards)), "models", sys.stdout)
    return 0


def _row(card: Card) -> tuple[str, ...]:
    from experiments.runners import process

    gated = any(repo.gated for repo in card.repos)
    here = "process" if process.why_not(card) is None else "image"
    return (
        card.name,
        card.licence,
        "yes" if gated else "no",
        _memory(card),
        here,
        _built(card),
        _weights(card),
        " ".join(filter(None, (card.verified, card.verified_on))),
    )


def _memory(card: Card) -> str:
    if not card.gpu_memory_gb:
        return "CPU"
    return ", ".join(f"{need:g} GB {precision}" for precision, need in card.gpu_memory_gb.items())


def _built(card: Card) -> str:
    from experiments import images

    if not images.dockerfile(card.name).is_file():
        return "none needed"
    try:
        built = images.find(images.engine(), card.name)
    except images.ImageError:
        return "no engine"
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
