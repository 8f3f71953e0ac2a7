"""Voxtral: blocks of 30 s, and Mistral's own tokenizer, which reads audio files itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from containers.runtime.adapter import Adapter, Prompt, Samples
from containers.runtime.card import Card
from containers.runtime.transformers_adapter import (
    RATE_HZ,
    TransformersAdapter,
    conversation,
)

BLOCK_FRAMES = 3_000


class Voxtral(TransformersAdapter):
    """375 rows a block, the last one padded with silence; a system text goes into the user turn."""

    model_class = "VoxtralForConditionalGeneration"

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        extractor = self.processor.feature_extractor
        features = extractor(
            samples,
            sampling_rate=RATE_HZ,
            padding=True,
            truncation=False,
            pad_to_multiple_of=BLOCK_FRAMES * extractor.hop_length,
            return_tensors="pt",
        ).input_features.to(self.device, self.model.dtype)
        blocks = features.reshape(features.shape[1], -1, BLOCK_FRAMES).transpose(0, 1)
        rows: Tensor = self.model.get_audio_features(blocks).pooler_output
        return rows, min(len(samples), len(blocks) * BLOCK_FRAMES * extractor.hop_length) / RATE_HZ

    def prompt_ids(self, prompt: Prompt, rows: Sequence[int]) -> list[int]:
        ids: list[int] = self.tokenizer.apply_chat_template(
            conversation(prompt), tokenize=True, return_dict=True
        )["input_ids"]
        return ids

    def control_tokens(self) -> list[str]:
        # Its tokenizer never reads control tokens out of words.
        return []


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    adapter: Adapter = Voxtral.load(card, weights, precision=precision, device_map=device_map)
    return adapter
