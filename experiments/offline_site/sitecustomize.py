"""Python runs this first in every process that an offline run starts: the rule holds there too."""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_HERE, _ROOT = str(Path(__file__).parent), str(Path(__file__).parents[2])
_path = sys.path[:]
sys.path.insert(0, _ROOT)
import_module("experiments.offline").forbid_connections()

# The one this stands before, where an environment has its own.
sys.path[:] = [entry for entry in _path if entry != _HERE]
_me = sys.modules.pop("sitecustomize")
with suppress(ModuleNotFoundError):
    import_module("sitecustomize")
sys.modules.setdefault("sitecustomize", _me)
sys.path[:] = _path
