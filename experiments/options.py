"""Options of the small entry points: `--name value` words, checked before any work.

A wrong value is an `OptionError` whose message is one sentence; the entry point
prints it and ends with exit code 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from experiments.settings import ROOT

TRACK = {
    "track": (
        "true",
        "true logs to MLflow, words of the recordings only to a store on this machine; words "
        "sends them to any store; false leaves MLflow out",
    )
}
TRACK_CHOICES = ("true", "words", "false")


class OptionError(ValueError):
    """A value that cannot be meant; the message is one sentence that says what to do."""


def read_options(
    options: Mapping[str, tuple[str, str]],
    arguments: Sequence[str] | None,
    program: str,
    purpose: str | None,
) -> dict[str, str]:
    """The words behind each option, defaults filled in; `--help` prints and exits.

    Args:
        options: name -> (default, meaning).
        arguments: the command line's if None.

    Raises:
        OptionError: for an option that does not exist or has no value.
    """
    parser = _Parser(prog=program, description=purpose, allow_abbrev=False)
    for name, (default, meaning) in options.items():
        shown = f" [{default}]" if default else ""
        parser.add_argument(f"--{name}", default=default, metavar="VALUE", help=meaning + shown)
    words = sys.argv[1:] if arguments is None else list(arguments)
    return {name: str(value).strip() for name, value in vars(parser.parse_args(words)).items()}


def existing_folder(name: str, said: str) -> Path:
    """The folder; raises OptionError where there is none."""
    path = Path(said).expanduser()
    if not said or not path.is_dir():
        raise OptionError(f"{name}: there is no folder {said!r}.")
    return path


def dataset_folder(name: str, said: str, task: str) -> Path:
    """The folder of a dataset, `demo` being the task's set that comes along, as for evaluate.

    Raises:
        OptionError: there is none.
    """
    if said == "demo":
        return ROOT / "demo" / task
    path = Path(said).expanduser()
    if not said or not path.is_dir():
        raise OptionError(
            f"{name}: there is no folder {said!r}; give a dataset folder, or demo for the set that "
            "comes along."
        )
    return path


def existing_file(name: str, said: str) -> Path:
    """The file; raises OptionError where there is none."""
    path = Path(said).expanduser()
    if not said or not path.is_file():
        raise OptionError(f"{name}: there is no file {said!r}.")
    return path


def whole(name: str, said: str, most: int | None = None) -> int:
    """A whole number from 0 to `most`; raises OptionError for anything else."""
    fits = said.isascii() and said.isdigit() and len(said) <= 18
    if not fits or (most is not None and int(said) > most):
        bounds = "0 or more" if most is None else f"0 to {most}"
        raise OptionError(f"{name}: expected a whole number of {bounds}, found {said!r}.")
    return int(said)


def amount(name: str, said: str) -> float:
    """A finite number of 0 or more; raises OptionError for anything else."""
    try:
        number = float(said)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise OptionError(f"{name}: expected a number of 0 or more, found {said!r}.")
    return number


def truth(name: str, said: str) -> bool:
    """ "true" or "false"; raises OptionError for anything else."""
    if said.lower() not in ("true", "false"):
        raise OptionError(f"{name}: expected true or false, found {said!r}.")
    return said.lower() == "true"


def one_of(name: str, said: str, known: Sequence[str]) -> str:
    """One of the known words; raises OptionError for anything else."""
    if said not in known:
        raise OptionError(f"{name}: expected one of {', '.join(known)}, found {said!r}.")
    return said


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{message}; see --help.")
