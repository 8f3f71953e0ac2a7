"""`mlflow run . -e build_container -P model=voxtral`: one model's image, rebuilt and recorded.

Prints the image's digest and size and what changed since the build before; logs
the same as an MLflow run. `model=all` builds every model that has a Dockerfile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.options import OptionError, one_of, read_options

if TYPE_CHECKING:
    from experiments.images import Built

OPTIONS: dict[str, tuple[str, str]] = {
    "model": ("baseline", "a folder of containers/ with a Dockerfile, or all"),
    "arguments": ("", "build arguments, as NAME=value with commas between"),
    "quiet": ("false", "true keeps the engine's own lines off the terminal"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build; 2 for a value that is wrong, 1 where the engine or a build is."""
    try:
        words = read_options(
            OPTIONS, arguments, "python -m experiments.build_container", __doc__.partition("\n")[0]
        )
        models = _models(words["model"])
        given = _build_arguments(words["arguments"])
        quiet = one_of("quiet", words["quiet"].lower(), ("true", "false")) == "true"
    except OptionError as error:
        print(f"build_container: {error}", file=sys.stderr)
        return 2
    from experiments.images import ImageError
    from experiments.tracking import TrackingError

    try:
        _build_all(models, given, quiet)
    except (ImageError, TrackingError) as error:
        print(f"build_container: {error}", file=sys.stderr)
        return 1
    return 0


def _models(said: str) -> list[str]:
    from experiments.images import dockerfile
    from experiments.settings import models, recognisers

    known = [name for name in (*models(), *recognisers()) if dockerfile(name).is_file()]
    return known if said == "all" else [one_of("model", said, known)]


def _build_arguments(said: str) -> dict[str, str]:
    given = {}
    for word in filter(None, said.split(",")):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"arguments: expected NAME=value, found {word!r}.")
        given[name] = value
    return given


def _build_all(models: Sequence[str], given: Mapping[str, str], quiet: bool) -> None:
    from containers.runtime.card import read_card
    from experiments import images
    from experiments.settings import card_file

    client = images.engine()
    failed: list[str] = []
    for model in models:
        card = read_card(card_file(model))
        started = time.monotonic()
        try:
            built, changed = images.build(
                client, card, given, (lambda line: None) if quiet else _show_line
            )
        except images.ImageError as error:
            # One that does not build is no reason to leave out the others.
            failed.append(str(error))
            continue
        seconds = time.monotonic() - started
        print(f"{model}: {built.digest}")
        print(f"  {built.size / 1e6:.0f} MB, built in {seconds:.0f} s as {built.tag}")
        for line in changed:
            print(f"  {line}")
        _log(model, built, changed, seconds)
    if failed:
        raise images.ImageError(" ".join(failed))


def _show_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _log(model: str, built: Built, changed: Sequence[str], seconds: float) -> None:
    from experiments.experiment_names import CONTAINERS
    from experiments.tracking import Record, tracked_run, write

    record = Record(
        name=f"build {model}",
        parameters={"undertone.model": model, "undertone.image": built.digest},
        tags={f"undertone.{name}": value for name, value in built.labels.items()},
        metrics={"image/megabytes": built.size / 1e6, "image/build_seconds": seconds},
        note="\n".join([f"`{built.digest}`", "", *(f"- {line}" for line in changed)]),
    )
    with tracked_run(CONTAINERS) as run:
        write(run, record)


if __name__ == "__main__":
    sys.exit(main())
