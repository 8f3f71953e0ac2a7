"""Audio Flamingo 3: one clip a prompt, in windows of 30 s up to 600 s."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from containers.runtime.adapter import Adapter, Samples
from containers.runtime.card import Card
from containers.runtime.transformers_adapter import RATE_HZ, TransformersAdapter


class AudioFlamingo3(TransformersAdapter):
    """25 rows a second."""

    model_class = "AudioFlamingo3ForConditionalGeneration"

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        processor = self.processor
        features = processor(text=processor.audio_token, audio=[samples], sampling_rate=RATE_HZ).to(
            self.device
        )
        mask = features.input_features_mask
        rows: Tensor = self.model.get_audio_features(
            features.input_features.to(self.model.dtype), mask
        ).pooler_output
        return rows, int(mask.sum()) * processor.feature_extractor.hop_length / RATE_HZ


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    adapter: Adapter = AudioFlamingo3.load(
        card, weights, precision=precision, device_map=device_map
    )
    return adapter
