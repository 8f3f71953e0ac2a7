"""What the shared decoding needs of a causal language model that hears.

A model renders a prompt to token ids, gives the inputs of any stretch of it
(audio embeddings in place) and runs its decoder over them. How a prompt is
prefilled, scored and continued is `prefix`, `decoding` and `inference`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from containers.runtime.adapter import Clip, Prompt, Work

Inputs = dict[str, Tensor]
"""Decoder inputs by name, each (rows, positions, ...); `inputs_embeds` is always there."""


@dataclass(frozen=True)
class Span:
    """Positions [start, stop) of a prompt that hold the embeddings of one clip."""

    start: int
    stop: int
    clip: Clip


@dataclass(frozen=True)
class Rendered:
    """A prompt as the decoder sees it.

    Attributes:
        ids: (S,) token ids, audio placeholders included.
        spans: where the clips are, in order.
        keys: (S,) equal keys from the start on, equal decoder states: the token's
            id, or for audio a number made of the clip's content and the row.
        seconds_used: of all clips together, what reached the encoder.
        fallbacks: departures from the prompt, by name.
    """

    prompt: Prompt
    ids: NDArray[np.int64]
    spans: tuple[Span, ...]
    keys: NDArray[np.int64]
    seconds_used: float = 0.0
    fallbacks: tuple[str, ...] = ()


@dataclass
class Past:
    """What the decoder has read so far, one row a prompt.

    Attributes:
        cache: keys and values of all K slots; grows in place.
        valid: (B, K) False where a slot is padding.
        positions: (B, K) position of each slot's token in its prompt.
        lengths: (B,) real tokens read.
        branch: (B, K) 0 for the prompt; slots of another number are one of several ways
            to go on, which see the prompt and their own branch. None where all are 0.
    """

    cache: DynamicCache
    valid: Tensor
    positions: Tensor
    lengths: Tensor
    branch: Tensor | None = None


class LanguageModel(Protocol):
    """One loaded causal language model.

    Attributes:
        branches: `hidden` follows `Past.branch`.
    """

    branches: bool
    work: Work
    device: torch.device
    eos_ids: frozenset[int]

    def render(self, prompt: Prompt) -> Rendered:
        """Raises PromptError for what the model cannot take."""
        ...

    def inputs(self, rendered: Rendered, start: int, stop: int) -> Inputs:
        """Decoder inputs of positions [start, stop), each (1, stop - start, ...)."""
        ...

    def token_inputs(self, ids: Tensor) -> Inputs:
        """Decoder inputs of (B, n) text tokens."""
        ...

    def hidden(self, inputs: Inputs, past: Past, positions: Tensor) -> Tensor:
        """(B, n, H) last hidden states; `past` already counts these n slots, its cache not yet."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., V) float32 raw logits of (..., H) hidden states."""
        ...

    def token_ids(self, text: str) -> list[int]:
        """Tokens of a text as it would stand at the beginning of an answer."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """The text of generated tokens, without control tokens."""
        ...


@dataclass
class Segments:
    """Left-padded decoder inputs: `mask` (B, n) False where padded."""

    inputs: Inputs
    mask: Tensor
    lengths: list[int] = field(default_factory=list)


def padded(rows: Sequence[Inputs]) -> Segments:
    """Stack inputs of unequal length, (1, n_i, ...) each, to (B, max n, ...)."""
    lengths = [row["inputs_embeds"].shape[1] for row in rows]
    longest = max(lengths)
    inputs = {
        name: torch.cat([_left_padded(row[name], longest) for row in rows]) for name in rows[0]
    }
    device = inputs["inputs_embeds"].device
    slots = torch.arange(longest, device=device)
    mask = slots >= (longest - torch.tensor(lengths, device=device))[:, None]
    return Segments(inputs, mask, lengths)


def extend(model: LanguageModel, past: Past, rows: Sequence[Inputs]) -> tuple[Tensor, Past]:
    """Read one more stretch of each prompt.

    Args:
        past: is taken over: its cache grows in place.
        rows: one a row of `past`, each (1, n_i, ...) with n_i >= 1.

    Returns:
        (B, n, H) hidden states, left-padded, so that [:, -1] is each row's last; the new past.
    """
    segments = padded(rows)
    positions = past.lengths[:, None] + segments.mask.long().cumsum(1) - 1
    # A padded slot is masked; its position only has to be a position.
    positions = positions.clamp(min=0)
    grown = Past(
        past.cache,
        torch.cat([past.valid, segments.mask], dim=1),
        torch.cat([past.positions, positions], dim=1),
        past.lengths + segments.mask.sum(1),
    )
    return model.hidden(segments.inputs, grown, positions), grown


def extend_in_branches(
    model: LanguageModel, past: Past, rows: Sequence[Inputs], ways: Sequence[Sequence[int]]
) -> tuple[Tensor, Past, list[list[slice]]]:
    """Read one more stretch of each prompt, its end in several ways at once.

    Args:
        past: is taken over: its cache grows in place.
        rows: one a row of `past`: what all ways share (maybe nothing), then way after way.
        ways: length of each way of each row; none where a row has one way only.

    Returns:
        (B, n, H) hidden states, left-padded; the new past, ways numbered from 1 in its
        `branch` and not in its `lengths`; the places of each row's ways in the n states.
    """
    segments = padded(rows)
    device, longest = segments.mask.device, segments.mask.shape[1]
    depth = segments.mask.long().cumsum(1) - 1
    branch = torch.zeros_like(depth)
    read = torch.tensor(segments.lengths, device=device)
    places: list[list[slice]] = []
    for row, own in enumerate(ways):
        at = longest - sum(own)
        shared = segments.lengths[row] - sum(own)
        read[row] = shared
        places.append([])
        for number, length in enumerate(own, start=1):
            place = slice(at, at := at + length)
            depth[row, place] = shared + torch.arange(length, device=device)
            branch[row, place] = number
            places[-1].append(place)
    positions = (past.lengths[:, None] + depth).clamp(min=0)
    grown = Past(
        past.cache,
        torch.cat([past.valid, segments.mask], dim=1),
        torch.cat([past.positions, positions], dim=1),
        past.lengths + read,
        torch.cat([torch.zeros_like(past.positions), branch], dim=1),
    )
    return model.hidden(segments.inputs, grown, positions), grown, places


def joined(stretches: Sequence[Inputs]) -> Inputs:
    """Stretches (1, n_i, ...) one behind the other."""
    return {name: torch.cat([part[name] for part in stretches], dim=1) for name in stretches[0]}


def nothing_read(batch: int, device: torch.device) -> Past:
    """The past of `batch` prompts before their first token."""
    return Past(
        DynamicCache(),
        torch.zeros(batch, 0, dtype=torch.bool, device=device),
        torch.zeros(batch, 0, dtype=torch.long, device=device),
        torch.zeros(batch, dtype=torch.long, device=device),
    )


def _left_padded(tensor: Tensor, length: int) -> Tensor:
    missing = length - tensor.shape[1]
    if not missing:
        return tensor
    return torch.cat([tensor.new_zeros(1, missing, *tensor.shape[2:]), tensor], dim=1)
