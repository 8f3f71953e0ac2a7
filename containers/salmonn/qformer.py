"""The window-level Q-Former: one learned query reads a third of a second at a time.

A BERT-like stack (Li et al. 2023, BLIP-2) in which a query attends to itself,
then to the frames of its window, then passes a feed-forward layer. SALMONN (Tang
et al. 2024, arXiv 2310.13289, Apache-2.0) gives every window the same query.
Parameters carry the release's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

# Of bert-base-uncased; nothing else of it than its sizes is used.
HEADS = 12
NORM_EPS = 1e-12

# Whisper's frames last 20 ms; a window is 0.333 s, as is the step to the next.
WINDOW_FRAMES = 17


@dataclass(frozen=True)
class QFormerConfig:
    """Sizes: `width` of the query, `seen` of the frames, `inner` of the feed-forward layer."""

    width: int
    seen: int
    inner: int
    layers: int
    heads: int = HEADS
    norm_eps: float = NORM_EPS


def qformer_config(shapes: Mapping[str, tuple[int, ...]], heads: int = HEADS) -> QFormerConfig:
    """Read the sizes off a checkpoint's shapes; heads alone leave no trace in them.

    Args:
        shapes: by name, as in the release without `speech_Qformer.`.

    Raises:
        KeyError: a tensor that gives a size is not there.
    """
    layer = "bert.encoder.layer"
    inner, width = shapes[f"{layer}.0.intermediate_query.dense.weight"]
    seen = shapes[f"{layer}.0.crossattention.self.key.weight"][1]
    numbers = {name.split(".")[3] for name in shapes if name.startswith(f"{layer}.")}
    return QFormerConfig(width, seen, inner, len(numbers), heads)


class QFormer(nn.Module):
    """Windows of frames to one vector each."""

    def __init__(self, config: QFormerConfig) -> None:
        super().__init__()
        self.bert = nn.Module()
        self.bert.embeddings = nn.Module()
        self.bert.embeddings.LayerNorm = _norm(config)
        self.bert.encoder = nn.Module()
        self.bert.encoder.layer = nn.ModuleList(_Layer(config) for _ in range(config.layers))

    def forward(self, query: Tensor, windows: Tensor) -> Tensor:
        """(W, 1, width) queries over (W, frames, seen) windows, to (W, 1, width)."""
        rows: Tensor = self.bert.embeddings.LayerNorm(query)
        for layer in self.bert.encoder.layer:
            rows = layer(rows, windows)
        return rows


def cut_in_windows(frames: Tensor) -> Tensor:
    """(1, T, C) to (T // 17, 17, C); frames that fill no window are left out."""
    whole = frames.shape[1] // WINDOW_FRAMES
    return frames[0, : whole * WINDOW_FRAMES].unflatten(0, (whole, WINDOW_FRAMES))


class _Layer(nn.Module):
    def __init__(self, config: QFormerConfig) -> None:
        super().__init__()
        self.attention = _Attention(config, config.width)
        self.crossattention = _Attention(config, config.seen)
        self.intermediate_query = _Dense(config.width, config.inner)
        self.output_query = _Output(config, config.inner)

    def forward(self, rows: Tensor, windows: Tensor) -> Tensor:
        rows = self.attention(rows, rows)
        rows = self.crossattention(rows, windows)
        inner = functional.gelu(self.intermediate_query.dense(rows))
        out: Tensor = self.output_query(inner, rows)
        return out


class _Attention(nn.Module):
    def __init__(self, config: QFormerConfig, seen: int) -> None:
        super().__init__()
        self.heads = config.heads
        # `self` in the release's names, which a class attribute cannot be written as.
        self.add_module("self", _Projections(config.width, seen))
        self.output = _Output(config, config.width)

    def forward(self, rows: Tensor, seen: Tensor) -> Tensor:
        project = self.get_submodule("self")
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (project.query(rows), project.key(seen), project.value(seen))
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2), rows)
        return out


class _Projections(nn.Module):
    def __init__(self, width: int, seen: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(seen, width)
        self.value = nn.Linear(seen, width)


class _Dense(nn.Module):
    def __init__(self, given: int, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(given, width)


class _Output(_Dense):
    def __init__(self, config: QFormerConfig, given: int) -> None:
        super().__init__(given, config.width)
        self.LayerNorm = _norm(config)

    def forward(self, rows: Tensor, residual: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dense(rows) + residual)
        return normed


def _norm(config: QFormerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.width, eps=config.norm_eps)
