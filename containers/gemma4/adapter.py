"""Gemma 4: clips are cut at 30 s, some layers see a window only, thinking stays off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from containers.runtime.adapter import Adapter, Samples
from containers.runtime.card import Card
from containers.runtime.language_model import Inputs
from containers.runtime.transformers_adapter import RATE_HZ, TransformersAdapter


class Gemma4(TransformersAdapter):
    """25 rows a second."""

    model_class = "Gemma4ForConditionalGeneration"
    template_options: ClassVar[dict[str, Any]] = {"enable_thinking": False}

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        extractor = self.processor.feature_extractor
        features = extractor([samples], return_tensors="pt").to(self.device)
        mask = features.input_features_mask
        encoded = self.model.model.get_audio_features(
            features.input_features.to(self.model.dtype), mask, return_dict=True
        )
        rows: Tensor = encoded.pooler_output[encoded.attention_mask]
        return rows, int(mask.sum()) * extractor.hop_length / RATE_HZ

    def placeholders(self, rows: int) -> str:
        processor = self.processor
        return f"{processor.boa_token}{processor.audio_token * rows}{processor.eoa_token}"

    def token_inputs(self, ids: Tensor) -> Inputs:
        # The embedding tables end before the audio placeholder; padding stands in for it.
        ids = torch.where(ids == self.audio_id, self.config.pad_token_id, ids)
        embeds = self.model.get_input_embeddings()(ids)
        if not self.config.hidden_size_per_layer_input:
            return {"inputs_embeds": embeds}
        return {
            "inputs_embeds": embeds,
            "per_layer_inputs": self.decoder.get_per_layer_inputs(ids, embeds),
        }


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`."""
    adapter: Adapter = Gemma4.load(card, weights, precision=precision, device_map=device_map)
    return adapter
