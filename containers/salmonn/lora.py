"""Low-rank changes to the language model's projections, as SALMONN was trained with.

Kept beside the projection instead of being added into it, so that a quantised
model takes them too. Source: Hu et al. 2021, LoRA; the rank is in the shapes, the
rest is in SALMONN's published configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from containers.salmonn.checkpoint import Tensors, check_names

ALPHA = 32
TARGETS = ("q_proj", "v_proj")
PREFIX = "llama_model.base_model.model.model."


class LoraLinear(nn.Module):
    """x -> base(x) + alpha / r * up(down(x)); down (r, in), up (out, r)."""

    def __init__(self, base: nn.Module, down: Tensor, up: Tensor) -> None:
        super().__init__()
        self.base = base
        self.down, self.up = (nn.Parameter(part, requires_grad=False) for part in (down, up))
        self.scale = ALPHA / len(down)

    def forward(self, rows: Tensor) -> Tensor:
        low = functional.linear(rows.to(self.down), self.down)
        changed: Tensor = self.base(rows)
        return changed + self.scale * functional.linear(low, self.up).to(changed)


def apply_lora(llama: Any, tensors: Tensors, dtype: torch.dtype, source: Path) -> None:
    """Put the changes beside every query and value projection.

    Args:
        llama: a LlamaForCausalLM; is changed.
        tensors: all of the release's tensors that begin with `llama_model.`.
        dtype: what the model computes in.

    Raises:
        LoadError: tensors are missing, unknown or misshapen.
    """
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    places = [
        (f"layers.{number}.self_attn.{target}", layer.self_attn, target)
        for number, layer in enumerate(llama.model.layers)
        for target in TARGETS
    ]
    rank = next((shape[0] for name, shape in found.items() if ".lora_A." in name), 0)
    wanted: dict[str, tuple[int, ...]] = {}
    for place, attention, target in places:
        base = getattr(attention, target)
        wanted[_name(place, "A")] = (rank, base.in_features)
        wanted[_name(place, "B")] = (base.out_features, rank)
    check_names(wanted, found, source)
    for place, attention, target in places:
        base = getattr(attention, target)
        parts = [tensors[_name(place, side)].to(base.weight.device, dtype) for side in "AB"]
        setattr(attention, target, LoraLinear(base, *parts))


def _name(place: str, side: str) -> str:
    return f"{PREFIX}{place}.lora_{side}.default.weight"
