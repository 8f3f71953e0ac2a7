"""Let torchvision import beside a CPU build of torch that lacks its compiled operators.

For test sessions only: imported by them, and by their subprocesses where this
folder is on PYTHONPATH. No image is ever processed, so the operators need only exist.
"""

from __future__ import annotations

import importlib.util
import sys

if importlib.util.find_spec("torch") and importlib.util.find_spec("torchvision"):
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        # Kept by the module: an operator ends with its library.
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
