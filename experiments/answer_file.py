"""The file of answers, held by one process: opened to add to it, and what a kill cut mended."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from containers.runtime.answers import AnswerFile, BusyError
from experiments.runners import RunnerError


def open_answers(responses: Path) -> AnswerFile:
    """The answers, to be added to; the caller closes them.

    Raises:
        RunnerError: another process is writing them.
    """
    try:
        return AnswerFile(responses)
    except BusyError as error:
        raise RunnerError(str(error)) from error


def repaired(responses: Path) -> str:
    """Take out what a kill left half written of an answer; says so, or "" where all was whole.

    Raises:
        RunnerError: another process is writing the answers.
    """
    if not responses.exists():
        return ""
    with closing(open_answers(responses)) as answers:
        return answers.repair
