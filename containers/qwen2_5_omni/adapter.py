"""Qwen2.5-Omni: the Thinker alone, loaded from the full repository."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from containers.runtime.adapter import Adapter, Samples
from containers.runtime.card import Card
from containers.runtime.transformers_adapter import RATE_HZ, TransformersAdapter

# Silence behind the clip that its last frames reach into, as in the vendor's padding to 300 s.
TAIL = 800


class Qwen25Omni(TransformersAdapter):
    """25 rows a second; the feature window ends at 300 s."""

    model_class = "Qwen2_5OmniThinkerForConditionalGeneration"

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        extractor = self.processor.feature_extractor
        hop = extractor.hop_length
        length = min(-(-len(samples) // hop) * hop + TAIL, extractor.n_samples)
        features = extractor(
            samples,
            sampling_rate=RATE_HZ,
            padding="max_length",
            max_length=length,
            truncation=True,
            return_attention_mask=True,
            return_tensors="pt",
        ).to(self.device)
        rows: Tensor = self.model.get_audio_features(
            features.input_features.to(self.model.dtype), features.attention_mask
        ).last_hidden_state
        return rows, int(features.attention_mask.sum()) * hop / RATE_HZ


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    adapter: Adapter = Qwen25Omni.load(card, weights, precision=precision, device_map=device_map)
    return adapter
