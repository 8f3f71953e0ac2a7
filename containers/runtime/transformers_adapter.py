"""One adapter for the models that are native in transformers.

A prompt goes through the model's own chat template; audio is encoded clip by
clip, remembered, and put in place of its placeholders, so the decoder never
sees features and any stretch of a prompt can be read by itself. A model's own
adapter says how a clip is encoded and little else.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from containers.runtime import inference
from containers.runtime.adapter import (
    Answer,
    Clip,
    Logits,
    Prompt,
    PromptError,
    Samples,
    Words,
    Work,
)
from containers.runtime.card import Card
from containers.runtime.language_model import Inputs, Past, Rendered, Span
from containers.runtime.loading import load_checkpoint
from containers.runtime.prefix import PrefixStore, position_keys

RATE_HZ = 16_000

# Encoder output kept at hand: about 25 rows a second, 0.2 GB for a 7 B model in bf16.
REMEMBERED_S = 1_200.0

# A feature extractor may leave out the last, partial frames; that is no cut.
LAST_FRAMES_S = 0.05

SYSTEM_IN_USER_TURN = "system_in_user_turn"
CONTROL_TOKEN_IN_TEXT = "control_token_in_text"


class TransformersAdapter:
    """A native model as `Adapter` and as `LanguageModel`.

    A subclass names its class in transformers and encodes a clip; see `encode`.
    """

    model_class: ClassVar[str]
    template_options: ClassVar[dict[str, Any]] = {}
    branches: bool = True

    def __init__(self, card: Card, processor: Any, model: Any) -> None:
        self.card = card
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.model = model
        self.decoder = model.model.language_model
        self.config = model.config.get_text_config()
        self.device: torch.device = model.get_input_embeddings().weight.device
        self.audio_id: int = model.config.audio_token_id
        self.work = Work()
        self.eos_ids = _end_ids(model, self.tokenizer)
        self.store = PrefixStore()
        self._clips = ClipMemory(REMEMBERED_S)

    @classmethod
    def load(cls, card: Card, weights: Path, *, precision: str, device_map: str) -> Any:
        """Raises LoadError; see `load_checkpoint`."""
        processor, model = load_checkpoint(
            card, weights, cls.model_class, precision=precision, device_map=device_map
        )
        return cls(card, processor, model)

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        """Encode one clip: (rows, H) embeddings in the decoder's space, seconds of it used."""
        raise NotImplementedError

    def placeholders(self, rows: int) -> str:
        """What replaces the template's one placeholder for a clip of so many rows."""
        return str(self.processor.audio_token * rows)

    def control_tokens(self) -> list[str]:
        """Texts that the tokenizer would read as control tokens wherever they stand."""
        tokens = self.tokenizer.added_tokens_decoder.values()
        return [str(token) for token in tokens if token.special]

    # Adapter

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        return inference.next_token_logits(self, batch, self.store)

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        return inference.answer(self, batch, self.store)

    # LanguageModel

    def render(self, prompt: Prompt) -> Rendered:
        prompt, fallbacks = self._suited(prompt)
        rows = [len(self._encoded(clip)) for clip in prompt.clips]
        ids = np.asarray(self.prompt_ids(prompt, rows), dtype=np.int64)
        spans = _spans(ids == self.audio_id, prompt.clips, rows)
        used = sum(self._clips.seconds_used[clip.name] for clip in prompt.clips)
        return Rendered(prompt, ids, spans, position_keys(ids, spans), used, fallbacks)

    def prompt_ids(self, prompt: Prompt, rows: Sequence[int]) -> list[int]:
        """Token ids of the whole prompt, `rows[i]` audio placeholders for its i-th clip."""
        text = self.processor.apply_chat_template(
            conversation(prompt),
            add_generation_prompt=True,
            tokenize=False,
            **self.template_options,
        )
        pieces = text.split(self.processor.audio_token)
        if len(pieces) != len(rows) + 1:
            raise PromptError(
                f"the chat template gave {len(pieces) - 1} places for {len(rows)} clips."
            )
        text = pieces[0] + "".join(
            self.placeholders(count) + piece for count, piece in zip(rows, pieces[1:], strict=True)
        )
        bos = self.tokenizer.bos_token
        ids: list[int] = self.tokenizer.encode(
            text, add_special_tokens=not (bos and text.startswith(bos))
        )
        return ids

    def inputs(self, rendered: Rendered, start: int, stop: int) -> Inputs:
        ids = torch.from_numpy(rendered.ids[start:stop]).to(self.device)[None]
        inputs = self.token_inputs(ids)
        embeds = inputs["inputs_embeds"]
        for span in rendered.spans:
            first, last = max(span.start, start), min(span.stop, stop)
            if first < last:
                rows = self._encoded(span.clip)[first - span.start : last - span.start]
                embeds[0, first - start : last - start] = rows.to(embeds)
        return inputs

    def token_inputs(self, ids: Tensor) -> Inputs:
        return {"inputs_embeds": self.model.get_input_embeddings()(ids)}

    def hidden(self, inputs: Inputs, past: Past, positions: Tensor) -> Tensor:
        hidden: Tensor = self.decoder(
            **inputs,
            attention_mask=self._mask(past, positions.shape[1], inputs["inputs_embeds"].dtype),
            position_ids=positions,
            past_key_values=past.cache,
            use_cache=True,
        ).last_hidden_state
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.model.lm_head(hidden).float()
        cap = getattr(self.config, "final_logit_softcapping", None)
        return torch.tanh(logits / cap) * cap if cap else logits

    def token_ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    # Private

    def _suited(self, prompt: Prompt) -> tuple[Prompt, tuple[str, ...]]:
        can = self.card.capabilities
        if len(prompt.clips) > can.clips_per_prompt:
            raise PromptError(
                f"{self.card.name} takes {can.clips_per_prompt} clip(s) in a prompt; "
                f"this one holds {len(prompt.clips)}. Give the exemplars as transcripts."
            )
        fallbacks: list[str] = []
        role = can.system_prompt and (can.system_prompt_with_audio or not prompt.clips)
        if prompt.system and not role:
            parts = (Words(f"{prompt.system}\n\n"), *prompt.parts)
            ahead = prompt.prefix_parts + 1 if prompt.prefix_parts else 0
            prompt = replace(prompt, system=None, parts=parts, prefix_parts=ahead)
            fallbacks.append(SYSTEM_IN_USER_TURN)
        plain = self._without_control_tokens(prompt)
        if plain != prompt:
            fallbacks.append(CONTROL_TOKEN_IN_TEXT)
        return plain, tuple(fallbacks)

    def _without_control_tokens(self, prompt: Prompt) -> Prompt:
        """Break control tokens that stand in the words: said in a transcript, they are words."""
        tokens = self._control_pattern
        if tokens is None:
            return prompt

        def plain(text: str) -> str:
            return tokens.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)

        parts = tuple(
            replace(part, text=plain(part.text)) if isinstance(part, Words) else part
            for part in prompt.parts
        )
        return replace(prompt, system=plain(prompt.system) if prompt.system else None, parts=parts)

    @cached_property
    def _control_pattern(self) -> re.Pattern[str] | None:
        tokens = sorted(self.control_tokens(), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, tokens))) if tokens else None

    def _encoded(self, clip: Clip) -> Tensor:
        rows = self._clips.get(clip.name)
        if rows is None:
            with torch.inference_mode():
                rows, seconds = self.encode(clip.samples)
            if not len(rows):
                raise PromptError(
                    f"clip {clip.name} ({clip.seconds:.3f} s) is too short to encode."
                )
            cut = clip.seconds - seconds > LAST_FRAMES_S
            self.work.encoder_seconds += clip.seconds
            self._clips.put(clip.name, rows, clip.seconds, seconds if cut else clip.seconds)
        return rows

    def _mask(self, past: Past, new: int, dtype: torch.dtype) -> Any:
        sliding = "sliding_attention" in (getattr(self.config, "layer_types", None) or ())
        if past.branch is None and not sliding:
            return past.valid.long()
        window = self.config.sliding_window if sliding else None
        masks = attention_masks(past, new, window)
        if self.config._attn_implementation != "sdpa":
            # The others add the mask to the scores.
            masks = {
                kind: torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
                for kind, seen in masks.items()
            }
        return masks if sliding else masks["full_attention"]


def conversation(prompt: Prompt) -> list[dict[str, Any]]:
    """The prompt as chat messages; neighbouring texts are one, as they are one to the reader."""
    content: list[dict[str, Any]] = []
    for part in prompt.parts:
        if isinstance(part, Clip):
            content.append({"type": "audio", "path": part.path})
        elif content and content[-1]["type"] == "text":
            content[-1]["text"] += part.text
        else:
            content.append({"type": "text", "text": part.text})
    user = {"role": "user", "content": content}
    if not prompt.system:
        return [user]
    return [{"role": "system", "content": [{"type": "text", "text": prompt.system}]}, user]


def attention_masks(past: Past, new: int, window: int | None) -> dict[str, Tensor]:
    """Boolean masks (B, 1, new, K) by kind of layer: what each of the newest slots sees.

    Args:
        window: of sliding layers, or None. It is measured in positions, not in slots:
            padding inside a row must not push real tokens out of it.
    """
    slots = past.valid.shape[1]
    slot = torch.arange(slots, device=past.valid.device)
    own = slot[slots - new :, None]
    before = past.valid[:, None, :] & (slot <= own)
    if past.branch is not None:
        mine = past.branch[:, slots - new :, None]
        before &= (past.branch[:, None, :] == 0) | (past.branch[:, None, :] == mine)
    distance = past.positions[:, slots - new :, None] - past.positions[:, None, :]
    # A padded query sees itself alone, for an empty row would be NaN.
    itself = slot == own
    masks = {"full_attention": (before | itself)[:, None]}
    if window is not None:
        masks["sliding_attention"] = (before & (distance < window) | itself)[:, None]
    return masks


class ClipMemory:
    """Encoder outputs by clip name, the last used ones; seconds used of all."""

    def __init__(self, most_s: float) -> None:
        self.most_s = most_s
        self.seconds_used: dict[str, float] = {}
        self._rows: OrderedDict[str, tuple[Tensor, float]] = OrderedDict()

    def get(self, name: str) -> Tensor | None:
        if name not in self._rows:
            return None
        self._rows.move_to_end(name)
        return self._rows[name][0]

    def put(self, name: str, rows: Tensor, seconds: float, seconds_used: float) -> None:
        self.seconds_used[name] = seconds_used
        self._rows[name] = (rows, seconds)
        while len(self._rows) > 1 and sum(s for _, s in self._rows.values()) > self.most_s:
            self._rows.popitem(last=False)


def _spans(is_audio: Any, clips: Sequence[Clip], rows: Sequence[int]) -> tuple[Span, ...]:
    places = np.flatnonzero(is_audio)
    if len(places) != sum(rows):
        raise PromptError(f"the prompt has {len(places)} places for {sum(rows)} rows of audio.")
    spans: list[Span] = []
    taken = 0
    for clip, count in zip(clips, rows, strict=True):
        first, last = int(places[taken]), int(places[taken + count - 1]) + 1
        if last - first != count:
            raise PromptError(f"the places of clip {clip.name} are not in one piece.")
        spans.append(Span(first, last, clip))
        taken += count
    return tuple(spans)


def _end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """All ids that end an answer: releases keep them in one of three places."""
    found: set[int] = set()
    for ids in (
        model.generation_config.eos_token_id,
        model.config.get_text_config().eos_token_id,
        tokenizer.eos_token_id,
    ):
        found.update(ids if isinstance(ids, (list, tuple)) else [] if ids is None else [ids])
    return frozenset(found)
