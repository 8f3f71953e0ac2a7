"""Tests of the models: what they need, and when they may be skipped.

A test marked `models` runs on torch and transformers. Without them it is skipped
with the reason, and fails where UNDERTONE_REQUIRE_MODELS=1 says they must be there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NEEDED = ("torch", "torchvision", "transformers", "accelerate", "mistral_common", "sentencepiece")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(HERE))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("models") is None:
        return
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        importlib.import_module("torchvision_operators.sitecustomize")
        return
    reason = f"needs {', '.join(missing)}: pip install -e '.[models]'"
    if os.environ.get("UNDERTONE_REQUIRE_MODELS") == "1":
        pytest.fail(f"UNDERTONE_REQUIRE_MODELS=1, but this test {reason}")
    pytest.skip(reason)


@pytest.fixture
def model_environment() -> dict[str, str]:
    """Environment of a subprocess that loads a model: offline, on one core."""
    paths = [str(HERE / "torchvision_operators"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
