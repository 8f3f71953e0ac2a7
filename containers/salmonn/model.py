"""SALMONN from its four releases: where the files are, and what is missing.

The weights folder holds

    llama/               lmsys/vicuna-7b-v1.5
    whisper/             openai/whisper-large-v2
    salmonn_7b_v0.pth    tsinghua-ee/SALMONN-7B (any one *.pth)
    BEATs_....pt         BEATs, from its authors' OneDrive (any one *.pt)

and may hold bert-base-uncased/config.json, of which only the number of heads is
read; without it, it is BERT's 12. Architecture and settings: Tang et al. 2024,
arXiv 2310.13289, and the Apache-2.0 release bytedance/SALMONN.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from containers.runtime.adapter import LoadError
from containers.runtime.card import Card
from containers.runtime.loading import placement, precision_options, require
from containers.salmonn.checkpoint import Tensors, read_pickled, refuse
from containers.salmonn.lora import apply_lora
from containers.salmonn.speech import SpeechEncoder, load_speech_encoder
from containers.salmonn.tokenizer import Tokenizer

TRAINED_FILE = "salmonn_7b_v0.pth"
TRAINED_PAGE = "https://huggingface.co/tsinghua-ee/SALMONN-7B"
BEATS_FILE = "BEATs_iter3_plus_AS2M_finetuned_on_AS2M_cpt2.pt"
BEATS_PAGE = "https://github.com/microsoft/unilm/tree/master/beats"

# What SALMONN was trained upon: its authors load Vicuna in half precision, whatever the file
# holds, and so does who wants their numbers.
TRAINED_UPON = torch.float16

# Llama computes these itself; releases of 2023 still carry them.
COMPUTED = "rotary_emb.inv_freq"


@dataclass(frozen=True)
class Salmonn:
    """The loaded parts: a LlamaForCausalLM with its LoRA, its tokenizer, the ears."""

    llama: Any
    tokenizer: Tokenizer
    speech: SpeechEncoder


@dataclass(frozen=True)
class Files:
    """Where each part was found; `bert` need not exist."""

    llama: Path
    whisper: Path
    trained: Path
    beats: Path
    bert: Path


def find_files(card: Card, weights: Path) -> Files:
    """Raises:
    LoadError: naming every part that is missing, and where to get it.
    """
    fetch = f"mlflow run . -e weights -P model={card.name}"
    missing: list[str] = []
    for folder, what in (("llama", "vicuna-7b-v1.5"), ("whisper", "whisper-large-v2")):
        if not (weights / folder / "config.json").is_file():
            missing.append(f"{folder}/config.json ({what}; {fetch})")
    if not (weights / "llama/tokenizer.model").is_file():
        missing.append(f"llama/tokenizer.model (vicuna-7b-v1.5; {fetch})")
    trained = _only(
        weights,
        "*.pth",
        f"{TRAINED_FILE} (download it from {TRAINED_PAGE} into this folder; no revision of it "
        "is pinned yet)",
        missing,
    )
    beats = _only(
        weights,
        "*.pt",
        f"{BEATS_FILE} (on its authors' OneDrive, which no command can fetch: follow the link "
        f"in {BEATS_PAGE} and put the file into this folder)",
        missing,
    )
    if missing:
        raise LoadError(f"{card.name}: {weights} lacks {'; '.join(missing)}.")
    bert = weights / "bert-base-uncased/config.json"
    return Files(weights / "llama", weights / "whisper", trained, beats, bert)


def load_salmonn(card: Card, weights: Path, *, precision: str, device_map: str) -> Salmonn:
    """All parts, completely or not at all.

    Args:
        precision: of the language model; the encoders compute in float32.
        device_map: of the language model; the encoders go where its embeddings are.

    Raises:
        LoadError: a file, package or tensor is missing or does not fit.
    """
    files = find_files(card, weights)
    tokenizer = Tokenizer(files.llama / "tokenizer.model")
    own, lora = _trained(files.trained)
    llama = _load_llama(card, files.llama, precision, device_map)
    apply_lora(llama, lora, llama.dtype, files.trained)
    speech = load_speech_encoder(files.whisper, files.beats, files.bert, own, files.trained)
    heard, read = speech.connector.speech_llama_proj.out_features, llama.config.hidden_size
    if heard != read:
        raise LoadError(
            f"{files.trained}: gives speech tokens of width {heard}, {files.llama} reads {read}. "
            "SALMONN-7B goes with vicuna-7b-v1.5."
        )
    return Salmonn(llama.eval(), tokenizer, speech.to(llama.get_input_embeddings().weight.device))


def _only(weights: Path, pattern: str, what: str, missing: list[str]) -> Path:
    found = sorted(weights.glob(pattern))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise LoadError(f"{weights}: expected one {pattern} file, found {names}. Keep one.")
    if not found:
        missing.append(what)
        return weights / pattern
    return found[0]


def _trained(path: Path) -> tuple[Tensors, Tensors]:
    """SALMONN's own tensors, and those of the LoRA."""
    content = read_pickled(path)
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise LoadError(f"{path}: expected a SALMONN checkpoint with `model`.")
    tensors: Tensors = content["model"]
    lora = {name: value for name, value in tensors.items() if name.startswith("llama_model.")}
    return {name: value for name, value in tensors.items() if name not in lora}, lora


def _load_llama(card: Card, folder: Path, precision: str, device_map: str) -> Any:
    # Nothing may reach for the hub: a run is made of what is mounted.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import LlamaForCausalLM

    placed = placement(device_map)
    options = precision_options(card, precision, placed)
    computed_in = options["dtype"]
    if computed_in == torch.float32:
        options["dtype"] = TRAINED_UPON
    if placed is not None:
        require("accelerate", f"device_map {device_map!r}")
        options["device_map"] = placed
    try:
        llama, report = LlamaForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            output_loading_info=True,
            # Not to ignore them, but to have them named in the report.
            ignore_mismatched_sizes=True,
            **options,
        )
    except torch.OutOfMemoryError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise LoadError(
            f"{card.name}: {folder} does not load: {error}\n"
            f"Get it with: mlflow run . -e weights -P model={card.name}"
        ) from error
    for kind in ("missing", "unexpected", "mismatched"):
        names = sorted(str(name) for name in report.get(f"{kind}_keys") or ())
        if names := [name for name in names if COMPUTED not in name]:
            refuse(folder, kind, names)
    return llama.float() if computed_in == torch.float32 else llama
