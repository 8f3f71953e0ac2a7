"""How much memory a model took at its most, and on how many GPUs: what a run's cost is told by."""

from __future__ import annotations

import resource
import sys
from typing import Any


def footprint() -> dict[str, Any]:
    """Peak since the process began, read when the answers are given.

    Returns:
        `peak_memory_bytes`: what torch reserved on all GPUs together, or, where it used none, the
        resident size of this process; `gpus`: how many GPUs hold something, 0 for none.
    """
    # Only an adapter imports torch; a model without it is not made to.
    torch = sys.modules.get("torch")
    reserved = []
    if torch is not None and torch.cuda.is_available():
        reserved = [torch.cuda.max_memory_reserved(n) for n in range(torch.cuda.device_count())]
    if used := [size for size in reserved if size]:
        return {"peak_memory_bytes": sum(used), "gpus": len(used)}
    # Linux counts it in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"peak_memory_bytes": peak, "gpus": 0}
