"""What a model has to offer, and the prompt it is offered.

An adapter is one loaded model. It turns prompts into answers and counts the
work it did; reading requests, decoding audio, batching, the canary and writing
responses are the runtime's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Clip:
    """One decoded audio file: `samples` (n,) mono float32 at 16 kHz, `name` by content,
    `path` of the same file for a model that insists on one."""

    name: str
    path: str
    samples: Samples

    @property
    def seconds(self) -> float:
        return len(self.samples) / 16_000


@dataclass(frozen=True)
class Words:
    """One text part; `slot` as in `core.protocol.Part`."""

    text: str
    slot: str | None = None


@dataclass(frozen=True)
class Prompt:
    """A request with its audio read: what an adapter sees of it.

    `parts` in order; the first `prefix_parts` of them are exemplars that other
    prompts of the run begin with too.
    """

    id: str
    system: str | None
    parts: tuple[Words | Clip, ...]
    choices: dict[str, tuple[str, ...]] | None
    max_new_tokens: int
    temperature: float
    top_p: float
    seed: int
    prefix_parts: int = 0

    @property
    def clips(self) -> tuple[Clip, ...]:
        return tuple(part for part in self.parts if isinstance(part, Clip))


@dataclass(frozen=True)
class Answer:
    """An adapter's answer to one prompt; fields as in `core.protocol.Response`."""

    text: str
    finish_reason: str
    prompt_tokens: int
    audio_seconds_used: float
    choice_logprobs: dict[str, float] | None = None
    choice_mass: float | None = None
    fallbacks: tuple[str, ...] = ()


@dataclass
class Work:
    """Work done so far, summed over calls: what sharing a prefix or a clip saves."""

    prompt_positions: int = 0
    encoder_seconds: float = 0.0
    generated_tokens: int = 0
    extra: dict[str, float] = field(default_factory=dict)


class OutOfMemoryError(RuntimeError):
    """The batch did not fit; the runtime halves it and calls again."""


class PromptError(ValueError):
    """A prompt the model cannot take; the message says what it holds and what the model takes."""


class LoadError(RuntimeError):
    """The model cannot be loaded; the message names the file or package and how to get it."""


class Adapter(Protocol):
    """One loaded model.

    `containers/<name>/adapter.py` defines
    `load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter`.
    """

    work: Work

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        """(B, V) raw logits at the first answer position."""
        ...

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        """One answer a prompt, in order. Raises OutOfMemoryError where the batch does not fit."""
        ...
