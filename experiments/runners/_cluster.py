"""A Ray cluster as the runner sees it: how to reach it, which nodes can take a model, and
what each shard of its requests must be given there.

Ray is an extra and is imported when a cluster is asked for, not before.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from containers.runtime.card import Card
from experiments.offline import is_this_machine
from experiments.runners import RunnerError, Site, candidates
from experiments.runners._node import Facts, facts

# On one machine little is moved: a shard's requests at a time.
STORE_BYTES = 256 << 20
PROBE_S = 90.0
REACH_S = 10.0
_GB = 1e9


@dataclass(frozen=True)
class Ask:
    """What a shard is given on its node.

    Attributes:
        cpus, gpus: how many.
        memory: bytes of the node's own; 0 where the model's weights go to its GPUs.
    """

    cpus: int = 1
    gpus: int = 0
    memory: int = 0

    def fits(self, resources: Mapping[str, float]) -> int:
        """How many shards so much has room for."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory}
        return min(int(resources.get(name, 0) // need) for name, need in wanted.items() if need)

    def options(self, avoid: Sequence[str]) -> dict[str, Any]:
        """The words of `ray.remote(...).options`."""
        words: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        if self.memory:
            words["memory"] = self.memory
        if avoid:
            words["label_selector"] = {"ray.io/node-id": f"!in({','.join(avoid)})"}
        return words

    def __str__(self) -> str:
        words = [f"{self.gpus} GPU" + "s" * (self.gpus > 1)] if self.gpus else []
        words += [f"{self.cpus} CPU" + "s" * (self.cpus > 1)]
        words += [f"{self.memory / _GB:.0f} GB of memory"] if self.memory else []
        return ", ".join(words)


@dataclass(frozen=True)
class Place:
    """Where a model's shards may run.

    Attributes:
        inner: the runner that carries a shard on its node: process or docker.
        image: what it runs in there, the same on every node.
        nodes: what is known of each node that takes it, by id.
        refused: why others do not, by id.
    """

    inner: str
    image: str
    nodes: Mapping[str, Facts]
    refused: Mapping[str, str] = field(default_factory=dict)


def package() -> Any:
    """The ray package.

    Raises:
        RunnerError: it is not installed.
    """
    # Nothing is reported to anybody unless whoever runs this wants it.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A shard without a GPU is given none: Ray's coming default, without its warning.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise RunnerError("the ray package is not installed (pip install -e '.[ray]').") from error
    return ray


def connected(site: Site) -> Any:
    """The ray package, connected to the cluster of that address; `local` starts one here.

    Raises:
        RunnerError: no package, no cluster there, or one of another version.
    """
    ray = package()
    if ray.is_initialized():
        return ray
    if site.offline and not _is_here(site.address):
        raise RunnerError(
            "offline=true: a Ray cluster is other machines; use one of this machine's own with "
            "-P address=local."
        )
    words: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if site.address == "local":
        words |= {
            "include_dashboard": False,
            "object_store_memory": STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
    _check_reachable(site.address)
    ours = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=site.address, **words)
    except ConnectionError as error:
        raise RunnerError(_no_cluster(site.address)) from error
    except (RuntimeError, ValueError, OSError) as error:
        raise RunnerError(f"Ray at {site.address}: {_line(error)}") from error
    finally:
        # Ray's own would end the process without a word and without our exit code.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
    return ray


def address_here(site: Site) -> str:
    """Address under which other processes of this machine reach the cluster of a site."""
    return str(connected(site).get_runtime_context().gcs_address)


@contextmanager
def signals_as_sent() -> Iterator[None]:
    """Give what a signal's handler raised inside Ray back its own shape.

    Ray's waiting calls turn it into a SystemError, which would end a run with a traceback.
    """
    try:
        yield
    except SystemError as error:
        sent = error.__cause__
        if sent is None or isinstance(sent, Exception):
            raise
        raise sent from None


def place(card: Card, site: Site) -> Place:
    """The nodes that can take a model, asked by a look at each.

    Raises:
        RunnerError: none can, or their images differ; with each node's reason.
    """
    ray = connected(site)
    alive = [node for node in ray.nodes() if node["Alive"]]
    found = _probed(ray, alive, card.name)
    names = candidates("auto", card) if site.node_runner == "auto" else (site.node_runner,)
    here = facts(card.name, runners=())
    refusals: dict[str, str] = {}
    for inner in names:
        refused = {
            node: reason
            for node, told in found.items()
            if (reason := told.why_not(inner, card.digest, here.code)) is not None
        }
        taking = {node: told for node, told in found.items() if node not in refused}
        if taking:
            return Place(inner, _one_image(inner, taking), taking, refused)
        refusals |= {f"{found[node].host}, {inner}": why for node, why in refused.items()}
    unreached = len(alive) - len(found)
    raise RunnerError(
        f"None of the {len(alive)} nodes of the Ray cluster takes {card.name}. "
        + " ".join(f"{where}: {why}" for where, why in refusals.items())
        + (f" {unreached} did not answer within {PROBE_S:.0f} s." if unreached else "")
    )


def ask_of(card: Card, precision: str, device_map: str, gpus: str, nodes: Sequence[Facts]) -> Ask:
    """What one shard of a model needs, by its card's memory and the GPUs there are.

    Raises:
        RunnerError: for GPUs named by index, which Ray hands out itself.
    """
    if gpus != "auto" and not gpus.startswith("count:"):
        raise RunnerError(f"gpus={gpus}: Ray hands out GPUs itself; say how many, as in count:2.")
    need_gb = card.gpu_memory_gb.get(precision, 0.0)
    if device_map == "cpu" or not card.gpu_memory_gb:
        return Ask(memory=ceil(need_gb * _GB))
    if gpus.startswith("count:"):
        return Ask(gpus=int(gpus.removeprefix("count:")))
    sizes = [size for node in nodes for size in node.gpus_gb]
    if device_map != "auto" or not sizes:
        return Ask(gpus=1)
    return Ask(gpus=max(1, ceil(need_gb / max(sizes))))


def too_small(ask: Ask, card: Card, precision: str, nodes: Mapping[str, Facts]) -> dict[str, str]:
    """Nodes on which so many GPUs do not hold the model, with the reason."""
    need_gb = card.gpu_memory_gb.get(precision, 0.0)
    said = {}
    for node, told in nodes.items():
        held = sum(sorted(told.gpus_gb, reverse=True)[: ask.gpus])
        if ask.gpus and told.gpus_gb and held < need_gb:
            said[node] = f"{ask.gpus} of its GPUs hold {held:.0f} GB of the {need_gb:g} needed."
    return said


def slots(ray: Any, ask: Ask, avoid: Mapping[str, str]) -> int:
    """Shards the cluster has room for at once, were it idle."""
    return sum(
        ask.fits(node["Resources"])
        for node in ray.nodes()
        if node["Alive"] and node["NodeID"] not in avoid
    )


def _probed(ray: Any, alive: Sequence[Mapping[str, Any]], model: str) -> dict[str, Facts]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look = ray.remote(num_cpus=0, max_retries=0)(facts)
    asked = {
        look.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(model): node["NodeID"]
        for node in alive
    }
    ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=PROBE_S)
    found: dict[str, Facts] = {}
    for ref in ready:
        try:
            found[asked[ref]] = ray.get(ref)
        except (ray.exceptions.RayError, ImportError) as error:
            print(f"Ray node {asked[ref][:8]} is left out: {_line(error)}", file=sys.stderr)
    for ref in late:
        ray.cancel(ref, force=True)
    return found


def _one_image(inner: str, taking: Mapping[str, Facts]) -> str:
    if inner == "process":
        return "process"
    hosts: dict[str, list[str]] = {}
    for told in taking.values():
        hosts.setdefault(told.image, []).append(told.host)
    if len(hosts) > 1:
        where = "; ".join(f"{image[:19]} on {', '.join(on)}" for image, on in hosts.items())
        raise RunnerError(
            f"The nodes hold different images ({where}), so their answers would not be one "
            "model's. Build it on one, and copy it to the others: docker save | docker load."
        )
    return next(iter(hosts))


def _check_reachable(address: str) -> None:
    """Ask the port itself first: Ray would wait for minutes for a cluster that is not there."""
    named = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    host, _, port = named.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        with socket.create_connection((host, int(port)), timeout=REACH_S):
            return
    except OSError as error:
        raise RunnerError(f"{_no_cluster(named)} ({_line(error)})") from error


def _is_here(address: str) -> bool:
    host = address.removeprefix("ray://").rpartition(":")[0]
    return address == "local" or (host != "" and is_this_machine(host))


def _no_cluster(address: str) -> str:
    where = "here" if address == "auto" else f"at {address}"
    return (
        f"No Ray cluster answers {where}: start one with `ray start --head`, name one with "
        "-P address=ray://host:10001, or use this machine alone with -P address=local."
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]
