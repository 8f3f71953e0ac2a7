"""The model that is none: seeded draws, for benchmarks and tests.

A request's distribution over its labels is one draw from a flat Dirichlet,
decided by its seed, its words and its samples. `UNDERTONE_NULL_LATENCY_S` makes
every item take that many seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from containers.runtime.adapter import Answer, Clip, Logits, Prompt, Work
from containers.runtime.card import Card

WORDS = ("calm", "uneasy", "upset", "struggling", "overwhelmed")
# Every so many samples is enough to tell clips apart, at a thirtieth of the cost.
STRIDE = 31


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> NullAdapter:
    """Nothing to load; the arguments are those of every adapter."""
    return NullAdapter(float(os.environ.get("UNDERTONE_NULL_LATENCY_S", "0")))


class NullAdapter:
    """Draws instead of answers."""

    def __init__(self, latency_s: float) -> None:
        self.work = Work()
        self._latency_s = latency_s

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        """(B, labels) log-probabilities, or over five words where there are no labels."""
        return np.stack([_logprobs(prompt) for prompt in batch]).astype(np.float32)

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        if self._latency_s:
            time.sleep(self._latency_s * len(batch))
        return [self._answer(prompt) for prompt in batch]

    def _answer(self, prompt: Prompt) -> Answer:
        logprobs = _logprobs(prompt)
        likeliest = int(np.argmax(logprobs))
        labels = prompt.choices
        seconds = float(sum(clip.seconds for clip in prompt.clips))
        self.work.prompt_positions += len(prompt.parts)
        self.work.encoder_seconds += seconds
        self.work.generated_tokens += 1
        return Answer(
            text=next(iter(list(labels.values())[likeliest])) if labels else WORDS[likeliest],
            finish_reason="choice" if labels else "stop",
            prompt_tokens=len(prompt.parts),
            audio_seconds_used=seconds,
            choice_logprobs=dict(zip(labels, logprobs.tolist(), strict=True)) if labels else None,
            choice_mass=1.0 if labels else None,
        )


def _logprobs(prompt: Prompt) -> NDArray[np.float64]:
    said = [prompt.system or "", str(prompt.seed)]
    for part in prompt.parts:
        if isinstance(part, Clip):
            said.append(str(crc32(part.samples[::STRIDE].tobytes())))
        else:
            said.append(part.text)
    seed = int.from_bytes(sha256("\x1f".join(said).encode()).digest()[:8], "big")
    labels = len(prompt.choices) if prompt.choices else len(WORDS)
    # A flat Dirichlet is a normalised row of exponentials.
    weights = np.random.default_rng(seed).exponential(size=labels)
    logprobs: NDArray[np.float64] = np.log(weights / weights.sum())
    return logprobs
