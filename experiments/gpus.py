"""Whether a model fits in the GPUs there are, known before a byte of it is loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from containers.runtime.card import Card
from experiments.runners import Job, RunnerError

_GB = 1e9
_MIB = 1 << 20


def check_memory(job: Job) -> None:
    """Refuse a job whose model cannot fit where it is to be put.

    Raises:
        RunnerError: with the figures and what would fit.
    """
    if job.device_map == "cpu" or not job.card.gpu_memory_gb:
        return
    reason = why_too_big(job.card, job.precision, job.device_map, chosen(job.gpus, sizes_gb()))
    if reason:
        raise RunnerError(reason)


def sizes_gb() -> list[float]:
    """Total memory of each GPU in GB (1e9 bytes), in the driver's order; empty where none is
    visible."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    words = [command, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    figures = [line.strip() for line in said.splitlines()]
    return [float(figure) * _MIB / _GB for figure in figures if figure.replace(".", "").isdigit()]


def chosen(gpus: str, sizes: Sequence[float]) -> list[float]:
    """The GPUs that `-P gpus=` leaves a job: auto, "count:2" or indices such as "0,1".

    Raises:
        RunnerError: for an index or a count that is not there.
    """
    if gpus == "auto":
        return list(sizes)
    if gpus.startswith("count:"):
        wanted = list(range(int(gpus.removeprefix("count:"))))
    else:
        wanted = [int(word) for word in gpus.split(",")]
    if sizes and max(wanted) >= len(sizes):
        raise RunnerError(f"gpus={gpus}: this machine has {len(sizes)}, numbered from 0.")
    return [sizes[index] for index in wanted] if sizes else []


def why_too_big(
    card: Card,
    precision: str,
    device_map: str,
    sizes: Sequence[float],
    host_gb: float | None = None,
) -> str | None:
    """Why a model does not fit, as a sentence; None where it does.

    Args:
        sizes: GPUs it may use, in GB.
        host_gb: the machine's own memory, which `device_map=auto` fills last; None to ask.
    """
    need = card.gpu_memory_gb.get(precision)
    if not sizes:
        return (
            f"{card.name} wants a GPU and nvidia-smi shows none here; run it on the processor "
            "with -P device_map=cpu (slow)."
        )
    if need is None:
        return None
    spread = device_map == "auto"
    room = (
        sum(sizes) + (_host_gb() if host_gb is None else host_gb)
        if spread
        else _one(device_map, sizes)
    )
    if need <= room:
        return None
    return (
        f"{card.name} needs about {need:g} GB in {precision}; {device_map} has {room:.0f} GB "
        f"(GPUs: {', '.join(f'{size:.0f}' for size in sizes)} GB). {_way_out(card, room, spread)}"
    )


def _one(device_map: str, sizes: Sequence[float]) -> float:
    index = device_map.partition(":")[2]
    place = int(index) if index.isdigit() else 0
    return sizes[place] if place < len(sizes) else 0.0


def _way_out(card: Card, room: float, spread: bool) -> str:
    smaller = [name for name, need in card.gpu_memory_gb.items() if need <= room]
    ways = [f"-P precision={min(smaller, key=card.gpu_memory_gb.__getitem__)}"] if smaller else []
    if not spread:
        ways.append("-P device_map=auto, which spreads it over all GPUs and the host's memory")
    return f"Try {' or '.join(ways)}." if ways else "No precision of its card fits."


def _host_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GB
