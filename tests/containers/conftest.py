"""Tests of the models: what they need, and when they may be skipped.

A test marked `models` runs on torch and transformers. Without them it is skipped
with the reason, and fails where UNDERTONE_REQUIRE_MODELS=1 says they must be there.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

NEEDED = ("torch", "transformers", "mistral_common", "torchvision")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("models") is None:
        return
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        return
    reason = f"needs {', '.join(missing)}: pip install 'undertone[models]'"
    if os.environ.get("UNDERTONE_REQUIRE_MODELS") == "1":
        pytest.fail(f"UNDERTONE_REQUIRE_MODELS=1, but this test {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def torchvision_operators():
    """Let torchvision import beside a CPU build of torch that lacks its compiled operators."""
    if importlib.util.find_spec("torchvision") is None or importlib.util.find_spec("torch") is None:
        yield
        return
    import torch

    torch.set_num_threads(1)
    try:
        import torchvision  # noqa: F401

        yield
    except RuntimeError:
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        yield
