"""Finding and loading the adapter beside a card; what goes wrong becomes one sentence."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from containers.runtime.adapter import Adapter, LoadError
from containers.runtime.card import Card
from containers.runtime.loop import is_out_of_memory


def load_adapter(
    card_path: Path, card: Card, weights: Path, *, precision: str, device_map: str
) -> Adapter:
    """Run `load` of the `adapter.py` in the card's folder, wherever that is.

    Raises:
        LoadError: what is missing and how to get it, as far as the adapter knows;
            else the error's own words, its traceback on stderr.
    """
    try:
        module = _adapter_module(card_path)
        adapter: Adapter = module.load(card, weights, precision=precision, device_map=device_map)
    except LoadError:
        raise
    except ImportError as error:
        raise LoadError(
            f"{card.name}: a package is missing or does not fit ({error}). Install the model's "
            f"containers/{card.name}/requirements.txt in an environment of its own, or build "
            "its image."
        ) from error
    except Exception as error:
        raise unforeseen(card, "load", error, precision) from error
    return adapter


def unforeseen(card: Card, doing: str, error: Exception, precision: str) -> LoadError:
    """An error no adapter foresaw: one sentence for the user, the rest on stderr."""
    if is_out_of_memory(error):
        others = [name for name in card.capabilities.precisions if name != precision]
        smaller = f" Try --precision {' or '.join(others)}." if others else ""
        return LoadError(f"{card.name}: out of memory in {precision} ({error}).{smaller}")
    traceback.print_exception(error, file=sys.stderr)
    return LoadError(f"{card.name}: could not {doing}: {type(error).__name__}: {error}")


def _adapter_module(card_path: Path) -> ModuleType:
    path = card_path.resolve().parent / "adapter.py"
    name = f"containers.{path.parent.name}.adapter"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise LoadError(f"{path}: no adapter beside the card.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
