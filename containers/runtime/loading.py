"""Load a checkpoint folder into its transformers class, completely or not at all."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from containers.runtime.adapter import LoadError
from containers.runtime.card import Card

PRECISIONS = ("bf16", "fp32", "int8", "nf4")


def load_checkpoint(
    card: Card, weights: Path, model_class: str, *, precision: str, device_map: str
) -> tuple[Any, Any]:
    """The processor and the model of a local snapshot.

    Args:
        weights: the model's weights folder.
        model_class: name of the class in transformers.
        precision: bf16, fp32, int8 or nf4; the last two need bitsandbytes.
        device_map: cpu, cuda, cuda:N or auto (all GPUs there are, or else the CPU).

    Raises:
        LoadError: naming the missing file, package or weights, and how to get it.
    """
    # Nothing may reach for the hub: a run is made of what is mounted.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    folder = weights / (card.repos[0].folder if card.repos else ".")
    check_folder(card, folder)
    placed = placement(device_map)
    options = precision_options(card, precision, placed)
    if placed is not None:
        require("accelerate", f"device_map {device_map!r}")
        options["device_map"] = placed
    try:
        processor = transformers.AutoProcessor.from_pretrained(folder, local_files_only=True)
        model, report = getattr(transformers, model_class).from_pretrained(
            folder,
            local_files_only=True,
            output_loading_info=True,
            # Not to ignore them, but to have them named in the report.
            ignore_mismatched_sizes=True,
            **options,
        )
    except ImportError as error:
        raise LoadError(f"{card.name}: {error}\n{how_to_get_packages(card)}") from error
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        if type(error).__name__ == "OutOfMemoryError":
            raise LoadError(
                f"{card.name}: the weights do not fit in {precision} ({error}). Use a smaller "
                "-P precision, or -P device_map=auto with more GPUs."
            ) from error
        raise LoadError(
            f"{card.name}: {folder} does not load: {error}\n{how_to_get_weights(card)}"
        ) from error
    check_complete(card, folder, report)
    return processor, model.eval()


def check_folder(card: Card, folder: Path) -> None:
    """Raises:
    LoadError: no folder, or none with a config and safetensors.
    """
    if not folder.is_dir():
        raise LoadError(f"{card.name}: no weights folder {folder}. {how_to_get_weights(card)}")
    if not (folder / "config.json").is_file():
        raise LoadError(f"{card.name}: {folder} has no config.json. {how_to_get_weights(card)}")
    if not any(folder.glob("*.safetensors")):
        raise LoadError(
            f"{card.name}: {folder} has no *.safetensors file. {how_to_get_weights(card)}"
        )


def check_complete(
    card: Card, folder: Path, report: dict[str, Any], *, left_out: tuple[str, ...] = ()
) -> None:
    """A model with a random or an unread tensor answers, but is not the model.

    Args:
        report: loading info of transformers.
        left_out: beginnings of names that are not read on purpose (a vocoder, an image encoder).

    Raises:
        LoadError: naming the first few tensors that are missing, unexpected or of another shape.
    """
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        names = sorted(str(name) for name in report.get(kind) or ())
        if kind == "unexpected_keys":
            names = [name for name in names if not name.startswith(left_out)]
        if names:
            raise LoadError(
                f"{card.name}: {folder} does not fit the model, {len(names)} "
                f"{kind.replace('_', ' ')}: {', '.join(names[:3])}"
                f"{', ...' if len(names) > 3 else ''}. {how_to_get_weights(card)}"
            )


def placement(device_map: str) -> Any:
    """What `from_pretrained` takes as device_map; None for the CPU. Raises LoadError: no GPU."""
    import torch

    if device_map == "cpu" or (device_map == "auto" and not torch.cuda.is_available()):
        return None
    if device_map.startswith("cuda") and not torch.cuda.is_available():
        raise LoadError(f"device_map {device_map!r}: torch {torch.__version__} finds no GPU.")
    return device_map if device_map == "auto" else {"": device_map}


def precision_options(card: Card, precision: str, placed: Any) -> dict[str, Any]:
    """What `from_pretrained` takes for a precision; `placed` as `placement` gave it.

    Raises:
        LoadError: unknown precision, no bitsandbytes, or one that needs a GPU on a CPU.
    """
    import torch

    if precision == "fp32":
        return {"dtype": torch.float32}
    if precision == "bf16":
        return {"dtype": torch.bfloat16}
    if precision not in PRECISIONS:
        raise LoadError(f"{card.name}: precision {precision!r}; known are {', '.join(PRECISIONS)}.")
    require("bitsandbytes", f"precision {precision!r}")
    if placed is None:
        raise LoadError(f"{card.name}: precision {precision!r} needs a GPU; on a CPU use fp32.")
    from transformers import BitsAndBytesConfig

    how = (
        BitsAndBytesConfig(load_in_8bit=True)
        if precision == "int8"
        else BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    )
    return {"dtype": torch.bfloat16, "quantization_config": how}


def require(package: str, what: str) -> None:
    """Raises LoadError where the package that `what` needs is not installed."""
    if importlib.util.find_spec(package) is None:
        raise LoadError(f"{what} needs the package {package}: pip install {package}.")


def how_to_get_weights(card: Card) -> str:
    """The command that fetches them, as a sentence."""
    return f"Get them with: mlflow run . -e weights -P model={card.name}"


def how_to_get_packages(card: Card) -> str:
    """The two ways to a model's own environment, as a sentence."""
    return (
        f"Install containers/{card.name}/requirements.txt in an environment of its own, or build "
        f"the image: mlflow run . -e build_container -P model={card.name}"
    )
