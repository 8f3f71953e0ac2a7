"""Whose answers a file holds: each says by which model card and in which image it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from core.protocol import Response
from experiments.runners import RunnerError


def assert_made_by(answers: Iterable[Response], stamps: Mapping[str, str], path: Path) -> None:
    """An id is a digest of the model too: another model's answer under it was put there.

    Args:
        stamps: `card` and `image` of this run; an answer that names none passes.
        path: the file, for the message.

    Raises:
        RunnerError: naming the first answer that was made otherwise.
    """
    for answer in answers:
        for name, own in stamps.items():
            if (theirs := getattr(answer, name)) not in (None, own):
                raise RunnerError(
                    f"{path}: the answer to {answer.id} has another {name} than this run "
                    f"({theirs:.20}, not {own:.20}); take out its line, and it is asked again."
                )
