"""SALMONN: one clip, right after `USER:`, where it always was in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from containers.runtime.adapter import Adapter, Clip, Prompt, Samples, Words, Work
from containers.runtime.card import Card
from containers.runtime.language_model import Inputs, Rendered
from containers.runtime.prefix import PrefixStore
from containers.runtime.transformers_adapter import REMEMBERED_S, ClipMemory, TransformersAdapter
from containers.salmonn.model import Salmonn, load_salmonn

# Marks the places of speech tokens; no token's id, since the vocabulary has none for them.
SPEECH = -1

# Text in front of the clip went behind it: a departure from the request, by name.
SPEECH_FIRST = "speech_first"


class SalmonnAdapter(TransformersAdapter):
    """88 rows a clip, cut at 30 s. Speech tokens come between two texts, each tokenized by
    itself; there is no system role."""

    def __init__(self, card: Card, parts: Salmonn) -> None:
        # Not the base's: there is neither a processor nor a chat template to ask.
        self.card = card
        self.parts = parts
        self.tokenizer = parts.tokenizer
        self.model = parts.llama
        self.decoder = parts.llama.model
        self.config = parts.llama.config
        self.device: torch.device = parts.llama.get_input_embeddings().weight.device
        self.audio_id = SPEECH
        self.work = Work()
        self.eos_ids = frozenset({parts.tokenizer.eos_id})
        self.store = PrefixStore()
        self._clips = ClipMemory(REMEMBERED_S)

    def render(self, prompt: Prompt) -> Rendered:
        rendered = super().render(prompt)
        if rendered.spans and not isinstance(rendered.prompt.parts[0], Clip):
            return replace(rendered, fallbacks=(*rendered.fallbacks, SPEECH_FIRST))
        return rendered

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        tokens: tuple[Tensor, float] = self.parts.speech(samples)
        return tokens

    def control_tokens(self) -> list[str]:
        # SentencePiece never reads control tokens out of words.
        return []

    def prompt_ids(self, prompt: Prompt, rows: Sequence[int]) -> list[int]:
        question = "".join(part.text for part in prompt.parts if isinstance(part, Words))
        begin = [self.tokenizer.bos_id]
        if not rows:
            return begin + self.tokenizer.piece(f"USER: {question}\nASSISTANT:")
        before = self.tokenizer.piece("USER: <Speech>")
        after = self.tokenizer.piece(f"</Speech> {question}\nASSISTANT:")
        return begin + before + [SPEECH] * rows[0] + after

    def token_inputs(self, ids: Tensor) -> Inputs:
        return super().token_inputs(ids.clamp(min=0))

    def token_ids(self, text: str) -> list[int]:
        return self.tokenizer.continuation(text)

    def text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.text(ids)


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    parts = load_salmonn(card, weights, precision=precision, device_map=device_map)
    adapter: Adapter = SalmonnAdapter(card, parts)
    return adapter
