"""Phi-4-Multimodal: `trust_remote_code` on transformers 4.48, one prompt at a time.

What the layout rests on, all in the repository `microsoft/Phi-4-multimodal-instruct`:
the model card writes `<|system|>...<|end|><|user|><|audio_1|>...<|end|><|assistant|>`;
`Phi4MMProcessor` in processing_phi4mm.py takes each clip as (array, rate), turns
`<|audio_1|>` into `<|endoftext11|>` and repeats that once for 80 ms of audio;
`Phi4MMForCausalLM.forward` in modeling_phi4mm.py switches to the speech LoRA
where `input_mode` is 2, and no LoRA where it is 0. The class that transformers
has for this model needs converted weights that were never merged into the
repository, and is not used.

Each clip is encoded alone: several in one call are padded to the longest, and
then a clip's embeddings depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from containers.runtime.adapter import Adapter, Answer, Logits, Prompt, PromptError, Samples
from containers.runtime.card import Card
from containers.runtime.language_model import Rendered
from containers.runtime.prefix import PrefixStore
from containers.runtime.remote_code import (
    RemoteCodeAdapter,
    end_ids,
    load_processor,
    load_remote,
    words,
)
from containers.runtime.transformers_adapter import RATE_HZ

TRANSFORMERS = "4.48."
AUDIO_TOKEN = "<|endoftext11|>"
SPEECH = 2

# The feature extractor's window and step, 25 and 10 ms: a shorter clip has no frame.
WINDOW, STEP = 400, 160


class Phi4Multimodal(RemoteCodeAdapter):
    """12.5 rows a second; the speech LoRA where a prompt has a clip, none where it has not."""

    def __init__(self, card: Card, processor: Any, model: Any) -> None:
        tokenizer = processor.tokenizer
        super().__init__(
            card,
            processor,
            model,
            decoder=model.model,
            head=model.lm_head,
            eos_ids=end_ids(
                model.generation_config.eos_token_id,
                tokenizer.eos_token_id,
                tokenizer.convert_tokens_to_ids("<|end|>"),
            ),
        )
        self.audio_id = int(tokenizer.convert_tokens_to_ids(AUDIO_TOKEN))
        # What was read under one set of weights is nothing to the other.
        self._stores = {True: PrefixStore(), False: PrefixStore()}

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        ask = super().next_token_logits
        return np.concatenate([self._alone(prompt, ask) for prompt in batch])

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        ask = super().answer
        return [self._alone(prompt, ask)[0] for prompt in batch]

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        if len(samples) < WINDOW:
            return torch.zeros(0, 0), 0.0
        features = self.processor.audio_processor([(samples, RATE_HZ)], return_tensors="pt")
        size = int(features["audio_embed_sizes"][0])
        rows: Tensor = self.decoder.embed_tokens_extend.audio_embed(
            input_ids=torch.full((1, size), self.audio_id, device=self.device),
            input_embeds=features["input_audio_embeds"].to(self.device),
            audio_embed_sizes=features["audio_embed_sizes"],
            audio_attention_mask=None,
            audio_projection_mode="speech",
            wte=self.decoder.get_input_embeddings(),
        )
        frames = features["input_audio_embeds"].shape[1]
        return rows[0], ((frames - 1) * STEP + WINDOW) / RATE_HZ

    def render(self, prompt: Prompt) -> Rendered:
        rendered = super().render(prompt)
        length, turn = len(rendered.ids), int(self.config.original_max_position_embeddings)
        if length <= turn < length + prompt.max_new_tokens:
            raise PromptError(
                f"this prompt's {length} positions and {prompt.max_new_tokens} for its answer go "
                f"beyond {turn}, where the model's rotary scaling changes for all of them. Ask "
                "for a shorter answer, or give fewer exemplars."
            )
        if length > turn:
            # Keys of their own: what was read at the short scaling cannot be gone on from.
            rendered = replace(rendered, keys=rendered.keys - (1 << 62))
        return rendered

    def layout(self, prompt: Prompt, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        text = self._text(prompt, [AUDIO_TOKEN] * len(rows))
        ids: list[int] = []
        starts: list[int] = []
        for token in self.tokenizer(text).input_ids:
            if token != self.audio_id:
                ids.append(token)
                continue
            ids += [token] * rows[len(starts)]
            starts.append(len(ids) - rows[len(starts)])
        return ids, starts

    def vendor_pass(self, prompt: Prompt) -> tuple[list[int], Tensor]:
        numbered = [f"<|audio_{number}|>" for number in range(1, len(prompt.clips) + 1)]
        inputs = self.processor(
            text=self._text(prompt, numbered),
            audios=[(clip.samples, RATE_HZ) for clip in prompt.clips],
            return_tensors="pt",
        ).to(self.device)
        logits: Tensor = self.model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            input_audio_embeds=inputs["input_audio_embeds"],
            audio_embed_sizes=inputs["audio_embed_sizes"],
            audio_attention_mask=inputs.get("audio_attention_mask"),
            input_mode=SPEECH,
            use_cache=False,
        ).logits
        return inputs["input_ids"][0].tolist(), logits[0, -1]

    def control_tokens(self) -> list[str]:
        # The processor reads any number behind these; nothing else may write them.
        return [*super().control_tokens(), "<|audio_", "<|image_"]

    def _alone(self, prompt: Prompt, ask: Any) -> Any:
        heard = bool(prompt.clips)
        if heard:
            self.model.set_lora_adapter("speech")
        else:
            self.model.unset_lora_adapter()
        self.store = self._stores[heard]
        return ask([prompt])

    def _text(self, prompt: Prompt, placeholders: Sequence[str]) -> str:
        system = f"<|system|>{prompt.system}<|end|>" if prompt.system else ""
        said = "".join(words(prompt, placeholders))
        return f"{system}<|user|>{said}<|end|><|assistant|>"


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`. Raises LoadError."""
    folder = weights / card.repos[0].folder
    model = load_remote(
        card,
        folder,
        "AutoModelForCausalLM",
        transformers_version=TRANSFORMERS,
        precision=precision,
        device_map=device_map,
        # The repository asks for flash attention; eager is the vendor's own alternative.
        _attn_implementation="eager",
    )
    adapter: Adapter = Phi4Multimodal(card, load_processor(card, folder), model)
    return adapter
