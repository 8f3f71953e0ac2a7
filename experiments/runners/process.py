"""The model in a process of its own on this machine, by the entrypoint its container runs.

For the models that come along and for any whose packages are installed here.
The process is given no secret of ours and ends when we do.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec

from containers.runtime.card import Card
from experiments.gpus import check_memory
from experiments.runners import HERE, SUMMARY, Job, RunnerError, Site
from experiments.runners._ends import sentence
from experiments.settings import ROOT

GRACE_S = 10.0

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|SESSION|_AUTH", re.IGNORECASE)


def why_not(card: Card, site: Site = HERE) -> str | None:
    """The packages of the card that are not installed here, as a sentence; None if none."""
    if absent := [package for package in card.packages if find_spec(package) is None]:
        return f"{', '.join(absent)} not installed here (pip install -e '.[models]')."
    return None


def image(card: Card, site: Site = HERE) -> str:
    """A process runs in no image; the packages it happens to find are not part of a key."""
    return "process"


def run(job: Job) -> None:
    """Start the runtime, wait for it, and turn its end into nothing or an error.

    Raises:
        RunnerError: where it ended badly; what it had answered is in the file.
    """
    check_memory(job)
    with ExitStack() as stack:
        log = stack.enter_context(job.log.open("ab")) if job.log else None
        summary = stack.enter_context(job.responses.with_name(SUMMARY).open("wb"))
        child = subprocess.Popen(
            command(job),
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=summary,
            stderr=log,
            preexec_fn=_end_with_parent(),
        )
        stack.callback(_stop, child)
        code = child.wait()
    if code:
        raise RunnerError(sentence(job.card.name, code, job.log))


def command(job: Job) -> list[str]:
    """The words the runtime is started with."""
    module = ["experiments.offline"] if job.offline else []
    words = [sys.executable, "-m", *module, "containers.runtime"]
    for option, value in (
        ("card", job.card_path),
        ("weights", job.weights),
        ("requests", job.requests),
        ("responses", job.responses),
        ("audio", job.audio),
        ("precision", job.precision),
        ("device-map", job.device_map),
        ("image", "process"),
    ):
        words += [f"--{option}", str(value)]
    return words


def environment() -> dict[str, str]:
    """Our environment without what a model has no business to see."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not _SECRET.search(name) and not name.startswith("MLFLOW_")
    }
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _end_with_parent() -> Callable[[], None] | None:
    """What makes the kernel end the child when we are killed; None where there is no such call.

    The runtime watches its parent too, but only every second: an evaluation started
    again at once would find the old process still writing.
    """
    if not sys.platform.startswith("linux"):
        return None
    # Looked up before the fork: afterwards only the call itself is safe.
    prctl = ctypes.CDLL(None).prctl
    set_death_signal = 1
    return lambda: prctl(set_death_signal, signal.SIGKILL)
