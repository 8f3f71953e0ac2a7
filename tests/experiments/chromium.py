"""Headless Chromium as docs/screenshots.py drives it."""

import shutil
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from experiments.settings import ROOT

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromedriver"), reason="chromedriver is not installed"
)


def screenshots():
    """The module docs/screenshots.py, which is in no package."""
    spec = spec_from_file_location("screenshots", ROOT / "docs" / "screenshots.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def complaints(chromium) -> list[str]:
    """What the browser's console says: errors, and what the content policy refused."""
    return [entry["message"] for entry in chromium.get_log("browser")]
