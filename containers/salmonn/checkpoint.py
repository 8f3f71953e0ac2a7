"""Tensors from released files into modules: all of them, and nothing else.

Files are read without running code from them (`weights_only`). A tensor that is
missing, unknown or of another shape is an error that names it: a model with a
random or an unread tensor answers, but is not the model.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from containers.runtime.adapter import LoadError

Tensors = dict[str, Tensor]

SHOWN = 3


def read_pickled(path: Path) -> Any:
    """What `torch.save` wrote, tensors and plain containers only.

    Raises:
        LoadError: not such a file, or one that holds more than data.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise LoadError(
            f"{path}: not a checkpoint of tensors alone ({str(error).splitlines()[0]}). "
            "Fetch the file again."
        ) from error


def read_folder(folder: Path, prefixes: tuple[str, ...]) -> tuple[Tensors, list[str]]:
    """Tensors of a transformers folder whose names begin with one of the prefixes.

    Returns:
        The tensors without their prefix, and the names of all others.

    Raises:
        LoadError: no weights in it, or unreadable ones.
    """
    safe, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    if safe.is_file():
        return _read_safetensors(safe, prefixes)
    if not pickled.is_file():
        raise LoadError(f"{folder}: neither model.safetensors nor pytorch_model.bin is there.")
    kept: Tensors = {}
    others: list[str] = []
    for name, tensor in read_pickled(pickled).items():
        short = _without_prefix(name, prefixes)
        if short is None:
            others.append(name)
        else:
            kept[short] = tensor
    return kept, others


def fill(module: nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Give a module its parameters, as float32.

    Args:
        module: built on the meta device, or anywhere else.
        tensors: by the module's own names.
        source: named in errors.

    Raises:
        LoadError: naming missing, unknown and misshapen tensors.
    """
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    check_names(wanted, {name: tuple(value.shape) for name, value in tensors.items()}, source)
    module.load_state_dict(
        {name: value.detach().float() for name, value in tensors.items()}, assign=True
    )
    module.requires_grad_(False)


def check_names(
    wanted: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], source: Path
) -> None:
    """Raises LoadError unless names and shapes are the same."""
    both = wanted.keys() & found.keys()
    shapes = [f"{n} {found[n]}, expected {wanted[n]}" for n in both if found[n] != wanted[n]]
    for kind, names in (
        ("missing", wanted.keys() - found.keys()),
        ("unexpected", found.keys() - wanted.keys()),
        ("misshapen", set(shapes)),
    ):
        if names:
            refuse(source, kind, sorted(names))


def refuse(source: Path, kind: str, names: list[str]) -> None:
    """Raises LoadError naming the first of these tensors."""
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    raise LoadError(
        f"{source} does not fit the model, {len(names)} {kind} tensors: {shown}. "
        "Take the file of the release that the card names."
    )


def _read_safetensors(path: Path, prefixes: tuple[str, ...]) -> tuple[Tensors, list[str]]:
    from safetensors import SafetensorError, safe_open

    kept: Tensors = {}
    others: list[str] = []
    try:
        with safe_open(path, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a mapping)
                short = _without_prefix(name, prefixes)
                if short is None:
                    others.append(name)
                else:
                    kept[short] = tensors.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise LoadError(f"{path}: cannot be read ({error}). Fetch the file again.") from error
    return kept, others


def _without_prefix(name: str, prefixes: tuple[str, ...]) -> str | None:
    for prefix in prefixes:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return None
