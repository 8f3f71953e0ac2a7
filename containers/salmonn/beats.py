"""The BEATs audio encoder: patches of a spectrogram through a transformer.

Written from the paper (Chen et al. 2022, "BEATs: Audio Pre-Training with
Acoustic Tokenizers", arXiv 2212.09058) and from what its MIT-licensed release
(microsoft/unilm, folder beats) documents; loads the files of that release.
Parameters carry the release's names, so a checkpoint loads without a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from containers.runtime.adapter import LoadError
from containers.salmonn.checkpoint import Tensors, fill, read_pickled, refuse
from containers.salmonn.fbank import beats_fbank

# The classes of AudioSet, on top of the fine-tuned release; SALMONN reads what is below them.
CLASSIFIER = ("predictor.weight", "predictor.bias")


@dataclass(frozen=True)
class BeatsConfig:
    """What the checkpoint's `cfg` says about shapes and about how a layer computes."""

    input_patch_size: int
    embed_dim: int
    encoder_layers: int
    encoder_embed_dim: int
    encoder_ffn_embed_dim: int
    encoder_attention_heads: int
    conv_pos: int
    conv_pos_groups: int
    conv_bias: bool = False
    activation_fn: str = "gelu"
    layer_norm_first: bool = False
    deep_norm: bool = False
    relative_position_embedding: bool = False
    num_buckets: int = 320
    max_distance: int = 1280
    gru_rel_pos: bool = False

    @property
    def residual_scale(self) -> float:
        """Deep norm's weight of the residual branch (Wang et al. 2022, encoder alone)."""
        return (2 * self.encoder_layers) ** 0.25 if self.deep_norm else 1.0


class Beats(nn.Module):
    """Samples to patch embeddings; see `forward`."""

    def __init__(self, config: BeatsConfig) -> None:
        super().__init__()
        patch = config.input_patch_size
        self.config = config
        self.patch_embedding = nn.Conv2d(1, config.embed_dim, patch, patch, bias=config.conv_bias)
        self.layer_norm = nn.LayerNorm(config.embed_dim)
        self.post_extract_proj = (
            nn.Linear(config.embed_dim, config.encoder_embed_dim)
            if config.embed_dim != config.encoder_embed_dim
            else nn.Identity()
        )
        self.encoder = _Encoder(config)

    def forward(self, samples: Tensor) -> Tensor:
        """(n,) samples at 16 kHz to (1, patches, H): 8 bands for each 160 ms, in time order."""
        patches = self.patch_embedding(beats_fbank(samples)[None, None])
        rows = self.layer_norm(patches.flatten(2).transpose(1, 2))
        embeddings: Tensor = self.encoder(self.post_extract_proj(rows))
        return embeddings


class _Encoder(nn.Module):
    def __init__(self, config: BeatsConfig) -> None:
        super().__init__()
        width = config.encoder_embed_dim
        self.config = config
        self.pos_conv = nn.Conv1d(
            width, width, config.conv_pos, padding=config.conv_pos // 2,
            groups=config.conv_pos_groups,
        )  # fmt: skip
        self.layer_norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.encoder_layers))
        if config.relative_position_embedding:
            self.relative_attention_bias = nn.Embedding(
                config.num_buckets, config.encoder_attention_heads
            )

    def forward(self, rows: Tensor) -> Tensor:
        length = rows.shape[1]
        # An even kernel gives one position too many.
        around = self.pos_conv(rows.transpose(1, 2))[..., :length].transpose(1, 2)
        rows = self.layer_norm(rows + functional.gelu(around))
        bias = self._position_bias(length) if self.config.relative_position_embedding else None
        for layer in self.layers:
            rows = layer(rows, bias)
        return rows

    def _position_bias(self, length: int) -> Tensor:
        """(heads, length, length), added to the scores of every layer."""
        place = torch.arange(length, device=self.relative_attention_bias.weight.device)
        buckets = distance_buckets(
            place[None, :] - place[:, None], self.config.num_buckets, self.config.max_distance
        )
        return self.relative_attention_bias(buckets).permute(2, 0, 1)


class _Layer(nn.Module):
    def __init__(self, config: BeatsConfig) -> None:
        super().__init__()
        width, inner = config.encoder_embed_dim, config.encoder_ffn_embed_dim
        self.residual_scale = config.residual_scale
        self.self_attn = _Attention(config)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        rows = self.self_attn_layer_norm(rows * self.residual_scale + self.self_attn(rows, bias))
        inner = self.fc2(functional.gelu(self.fc1(rows)))
        normed: Tensor = self.final_layer_norm(rows * self.residual_scale + inner)
        return normed


class _Attention(nn.Module):
    """Self-attention whose position bias each query scales by a gate of its own.

    Source: Chi et al. 2021, XLM-E, section on gated relative position bias.
    """

    def __init__(self, config: BeatsConfig) -> None:
        super().__init__()
        width, self.heads = config.encoder_embed_dim, config.encoder_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(width, width) for _ in range(4)
        )
        self.gated = config.gru_rel_pos
        if self.gated:
            self.grep_linear = nn.Linear(width // self.heads, 8)
            self.grep_a = nn.Parameter(torch.ones(1, self.heads, 1, 1))

    def forward(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        query, key, value = (
            project(rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if bias is not None:
            bias = self._gate(query) * bias if self.gated else bias[None]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        out: Tensor = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out

    def _gate(self, query: Tensor) -> Tensor:
        """(B, heads, length, 1) from an update and a reset gate, each of four projections."""
        gates = self.grep_linear(query).unflatten(-1, (2, 4)).sum(-1).sigmoid()
        update, reset = gates[..., :1], gates[..., 1:]
        return update * (reset * self.grep_a - 1.0) + 2.0


def distance_buckets(distance: Tensor, buckets: int, furthest: int) -> Tensor:
    """The bucket of each signed distance: exact when near, then by its logarithm.

    Args:
        distance: integer, key position minus query position.
        buckets: half of them for keys behind the query, half for those ahead.
        furthest: from here on all distances share the last bucket of their half.

    Source: Raffel et al. 2020, T5, section 2.1.
    """
    half = buckets // 2
    exact = half // 2
    far = distance.abs()
    growth = torch.log(far.clamp(min=1).float() / exact) / math.log(furthest / exact)
    logarithmic = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
    return torch.where(far < exact, far, logarithmic) + half * (distance > 0)


def load_beats(path: Path) -> Beats:
    """The encoder of a released file: `{"cfg": ..., "model": tensors}`.

    Raises:
        LoadError: another layout, an unknown way of computing, or tensors that do not fit.
    """
    content = read_pickled(path)
    if not isinstance(content, dict) or not {"cfg", "model"} <= content.keys():
        raise LoadError(f"{path}: expected a BEATs checkpoint with `cfg` and `model`.")
    config = _config(content["cfg"], path)
    with torch.device("meta"):
        model = Beats(config)
    fill(model, _own_names(content["model"], config, path), path)
    return model.eval()


def _config(cfg: Mapping[str, Any], path: Path) -> BeatsConfig:
    known = {entry.name for entry in fields(BeatsConfig)}
    try:
        config = BeatsConfig(**{name: value for name, value in cfg.items() if name in known})
    except TypeError as error:
        raise LoadError(f"{path}, cfg: {error}. It is not the encoder's checkpoint.") from error
    if config.layer_norm_first or config.activation_fn != "gelu":
        raise LoadError(
            f"{path}, cfg: expected activation_fn gelu and layer_norm_first false, found "
            f"{config.activation_fn} and {config.layer_norm_first}; no release is like that."
        )
    return config


def _own_names(released: Tensors, config: BeatsConfig, path: Path) -> Tensors:
    """Fold weight norm, keep one of the equal tables of distances, leave the classifier out."""
    tensors = {name: value for name, value in released.items() if name not in CLASSIFIER}
    conv = "encoder.pos_conv"
    size, direction = f"{conv}.0.weight_g", f"{conv}.0.weight_v"
    if size not in tensors or direction not in tensors:
        refuse(path, "missing", [name for name in (size, direction) if name not in tensors])
    kernel = tensors.pop(direction)
    norm = kernel.norm(dim=(0, 1), keepdim=True)
    tensors[f"{conv}.weight"] = kernel * (tensors.pop(size) / norm)
    if f"{conv}.0.bias" in tensors:
        tensors[f"{conv}.bias"] = tensors.pop(f"{conv}.0.bias")
    tables = [f"encoder.layers.{n}.self_attn.relative_attention_bias.weight"
              for n in range(config.encoder_layers)]  # fmt: skip
    found = [tensors.pop(name) for name in tables if name in tensors]
    if found:
        if any(not torch.equal(table, found[0]) for table in found):
            raise LoadError(f"{path}: the layers' tables of distances differ; one was expected.")
        tensors["encoder.relative_attention_bias.weight"] = found[0]
    return tensors
