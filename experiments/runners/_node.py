"""What runs on the nodes of a Ray cluster: a look at the node, and the keeper of one shard.

The keeper is a Ray actor. It starts `experiments.runners._shard` as a process of its own,
which ends in an orderly way when told to, and hands out what that has answered so far.
Ray itself is only needed to ask which GPUs it was given.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.settings import ROOT

# How often a file is looked at for more answers, and the least a caller waits for none.
LOOK_S = 0.05
STOP_S = 20.0
LOG_BYTES = 8_000
# In a shard's folder.
ORDER, REQUESTS, RESPONSES, LOG, ENDED = (
    "order.json",
    "requests.jsonl",
    "responses.jsonl",
    "model.log",
    "ended.json",
)
PREFIX = "undertone-shard-"
# Exit code of a shard that this node cannot take, while another may.
UNFIT = 3


@dataclass(frozen=True)
class Facts:
    """What a node says of itself.

    Attributes:
        host: its name.
        card, code: digests of the model's card and of all files it runs with.
        refusals: by runner, why it cannot take the model; those that can are not in it.
        image: of the docker runner; "" where that cannot.
        gpus_gb: memory of each GPU.
    """

    host: str
    card: str
    code: str
    refusals: dict[str, str] = field(default_factory=dict)
    image: str = ""
    gpus_gb: tuple[float, ...] = ()

    def why_not(self, inner: str, card: str, code: str) -> str | None:
        """Why this node does not take a model of that card and code; None if it does."""
        if (self.card, self.code) != (card, code):
            return (
                "its clone has other code of the model than this one, and would give other "
                "answers under the same name; bring both to one commit."
            )
        return self.refusals.get(inner)


@dataclass(frozen=True)
class Order:
    """A shard as its node is told of it: plain values, since it goes there as JSON.

    Attributes:
        card: path below the clone, which may lie elsewhere on the node.
        inner, image: the runner there, and what it must run in.
        weights, audio: the driver's folders, used where the node sees them too.
        clips: names of the clips the shard needs.
        store: fsspec URL for what the node does not see; "" for none.
    """

    model: str
    card: str
    card_digest: str
    code: str
    inner: str
    image: str
    weights: str
    audio: str
    clips: tuple[str, ...]
    precision: str
    device_map: str
    offline: bool = False
    store: str = ""


@dataclass(frozen=True)
class Report:
    """What a shard has done since it was last asked.

    Attributes:
        node, host: where it runs.
        lines: whole lines of its response file.
        ended: no more will come.
        failure: why it ended before its time, in a sentence; "" if it did not.
        unfit: the failure is this node's, and nothing was tried.
        log: the last the model's process said, where it failed.
        summary: what the runtime says of its work, at the end.
    """

    node: str
    host: str
    lines: tuple[bytes, ...] = ()
    ended: bool = False
    failure: str = ""
    unfit: bool = False
    log: str = ""
    summary: dict[str, Any] = field(default_factory=dict)


def facts(model: str, runners: Sequence[str] = ("process", "docker")) -> Facts:
    """Look at this machine; run on every node of a cluster, and on the driver to compare."""
    from containers.runtime.card import CardError, read_card
    from experiments import gpus, images
    from experiments.runners import docker, process

    host = socket.gethostname()
    try:
        card = read_card(ROOT / "containers" / model / "model.toml")
    except CardError:
        return Facts(host, "", "")
    looks: dict[str, Any] = {"process": process, "docker": docker}
    refusals = {name: looks[name].why_not(card) for name in runners}
    known = {name: reason for name, reason in refusals.items() if reason is not None}
    return Facts(
        host=host,
        card=card.digest,
        code=images.source_digest(model),
        refusals=known,
        image=docker.image(card) if "docker" in runners and "docker" not in known else "",
        gpus_gb=tuple(gpus.sizes_gb()) if runners else (),
    )


class Keeper:
    """Holds one shard on a node, from its start to its end."""

    def __init__(self, order: Order, requests: bytes) -> None:
        import ray

        context = ray.get_runtime_context()
        self._node, self._host = context.get_node_id(), socket.gethostname()
        _remove_left_behind()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        # A container reads them as another user.
        self._folder.chmod(0o755)
        (self._folder / REQUESTS).write_bytes(requests)
        told = {**asdict(order), "gpus": _gpus([str(gpu) for gpu in ray.get_gpu_ids()])}
        (self._folder / ORDER).write_text(json.dumps(told))
        self._read = 0
        with (self._folder / LOG).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "experiments.runners._shard", str(self._folder)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_told_when_we_end(),
            )

    def take(self, wait_s: float) -> Report:
        """What was answered since the last call; waits so long for the first of it."""
        deadline = time.monotonic() + wait_s
        while True:
            # First whether it has ended, then the file: nothing can come between.
            code = self._process.poll()
            lines = self._new_lines()
            if code is not None:
                return self._last(code, lines)
            if lines or time.monotonic() >= deadline:
                return Report(self._node, self._host, lines)
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """End the shard; the write in hand is finished, and its container removed."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _new_lines(self) -> tuple[bytes, ...]:
        path = self._folder / RESPONSES
        if not path.exists() or path.stat().st_size == self._read:
            return ()
        with path.open("rb") as stream:
            stream.seek(self._read)
            # A line without its end is still being written.
            lines = tuple(line for line in stream if line.endswith(b"\n"))
        self._read += sum(map(len, lines))
        return lines

    def _last(self, code: int, lines: tuple[bytes, ...]) -> Report:
        try:
            said = json.loads((self._folder / ENDED).read_bytes())
        except (OSError, ValueError):
            said = {"failure": f"the shard's process ended with code {code}."}
        log = ""
        if said.get("failure"):
            text = (self._folder / LOG).read_bytes()[-LOG_BYTES:]
            log = text.decode("utf-8", errors="replace")
        self.stop()
        return Report(
            node=self._node,
            host=self._host,
            lines=lines,
            ended=True,
            failure=str(said.get("failure", "")),
            unfit=code == UNFIT,
            log=log,
            summary=said.get("summary") or {},
        )


def _gpus(given: Sequence[str]) -> str:
    """The GPUs Ray gave this shard, as `-P gpus=` would name them."""
    if not given:
        return "auto"
    # A process is shown these alone, under numbers from 0; an engine must be told which.
    return ",".join(given) if all(word.isdigit() for word in given) else f"count:{len(given)}"


def _told_when_we_end() -> Callable[[], None] | None:
    """Have the kernel end the shard's process when we are killed: its GPU is wanted again."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    set_death_signal = 1
    return lambda: prctl(set_death_signal, signal.SIGTERM)


def _remove_left_behind() -> None:
    """Folders of keepers that were killed: they hold transcripts."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
