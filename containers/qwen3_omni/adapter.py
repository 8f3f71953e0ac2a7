"""Qwen3-Omni: the Thinker alone, loaded from the full repository."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from containers.runtime.adapter import Adapter, Samples
from containers.runtime.card import Card
from containers.runtime.transformers_adapter import RATE_HZ, TransformersAdapter


class Qwen3Omni(TransformersAdapter):
    """About 13 rows a second, any length."""

    model_class = "Qwen3OmniMoeThinkerForConditionalGeneration"

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        extractor = self.processor.feature_extractor
        # Alone, because padding to a longer neighbour changes a clip's last frames.
        features = extractor(
            samples,
            sampling_rate=RATE_HZ,
            padding=True,
            truncation=False,
            return_attention_mask=True,
            return_tensors="pt",
        ).to(self.device)
        rows: Tensor = self.model.get_audio_features(
            features.input_features.to(self.model.dtype), features.attention_mask
        ).last_hidden_state
        return rows, int(features.attention_mask.sum()) * extractor.hop_length / RATE_HZ


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    adapter: Adapter = Qwen3Omni.load(card, weights, precision=precision, device_map=device_map)
    return adapter
