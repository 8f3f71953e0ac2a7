"""MiniCPM-o 2.6: `trust_remote_code` on transformers 4.44, speech and text in, text out.

What the layout rests on, all in the repository `openbmb/MiniCPM-o-2_6`:
`MiniCPMO.chat` in modeling_minicpmo.py joins the pieces of a message with line
breaks, writes `(<audio>./</audio>)` for a clip, and once a clip is there takes
`default_tts_chat_template`, whose answer begins after `<|tts_bos|>`;
`MiniCPMOProcessor` in processing_minicpmo.py replaces the tag by one marked
piece for each begun second (`chunk_input=True`), 25 placeholders a piece;
`get_omni_embedding` puts the encoded audio there. `chat(sampling=False)` would
be three beams with a repetition penalty, so `chat` itself is never called.

Each clip is encoded alone, as the vendor does with a clip in a message of its
own; clips of one message it would join to one recording first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from containers.runtime.adapter import Adapter, Prompt, Samples
from containers.runtime.card import Card
from containers.runtime.remote_code import RemoteCodeAdapter, end_ids, load_remote, words
from containers.runtime.transformers_adapter import RATE_HZ

TRANSFORMERS = "4.44."
AUDIO_TAG = "(<audio>./</audio>)"
IMAGE_TAG = "(<image>./</image>)"
# `chat` cuts a prompt at its `max_inp_length` of 32768 without a word; here the
# decoder's own limit of the same size refuses it instead.
MOST_POSITIONS = 32_768

# In the repository, and of no use to a prompt without pictures and a text answer.
LEFT_OUT = ("vpm.", "resampler.", "tts.")


class MiniCPMO(RemoteCodeAdapter):
    """25 rows a second; a clip's place includes the marks around each second of it."""

    def __init__(self, card: Card, model: Any) -> None:
        tokenizer = model.processor.tokenizer
        super().__init__(
            card,
            model.processor,
            model,
            decoder=model.llm.model,
            head=model.llm.lm_head,
            eos_ids=end_ids(*(tokenizer.convert_tokens_to_ids(t) for t in model.terminators)),
        )
        # What stands for a clip depends on its length alone: by number of placeholder rows.
        self._places: dict[int, str] = {}

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        inputs = self._processed(AUDIO_TAG, [samples])
        bounds = inputs["audio_bounds"][0].tolist()
        if not any(stop > start for start, stop in bounds):
            return torch.zeros(0, 0), 0.0
        ids = inputs["input_ids"].long()
        embeds = self.model.get_omni_embedding(
            inputs,
            input_embeddings=self.decoder.get_input_embeddings()(ids).clone(),
            chunk_length=self.model.config.audio_chunk_length,
        )
        first, last = bounds[0][0] - 1, bounds[-1][1] + 1
        unknown = "<unk>"
        self._places[last - first] = "".join(
            f"{self.tokenizer.audio_start}{unknown * (stop - start)}{self.tokenizer.audio_end}"
            for start, stop in bounds
        )
        frames = int(sum(int(lens.sum()) for lens in inputs["audio_feature_lens"]))
        return embeds[0, first:last], frames * self._hop / RATE_HZ

    def layout(self, prompt: Prompt, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        text = self._text(prompt)
        for count in rows:
            text = text.replace(AUDIO_TAG, self._places[count], 1)
        ids: list[int] = self.tokenizer.encode(text)
        starts: list[int] = []
        place = 0
        for count in rows:
            place = ids.index(self.tokenizer.audio_start_id, place)
            starts.append(place)
            place += count
        return ids, starts

    def vendor_pass(self, prompt: Prompt) -> tuple[list[int], Tensor]:
        inputs = self._processed(self._text(prompt), [clip.samples for clip in prompt.clips])
        length = inputs["input_ids"].shape[1]
        inputs["position_ids"] = torch.arange(length, device=self.device)[None]
        logits: Tensor = self.model(inputs, use_cache=False).logits
        return inputs["input_ids"][0].tolist(), logits[0, -1]

    def control_tokens(self) -> list[str]:
        return [*super().control_tokens(), AUDIO_TAG, IMAGE_TAG]

    def text(self, ids: Sequence[int]) -> str:
        # The mark that ends the spoken part of an answer, which `chat` takes out too.
        return super().text(ids).replace(self.tokenizer.tts_end, "")

    @property
    def _hop(self) -> int:
        return int(self.processor.feature_extractor.hop_length)

    def _text(self, prompt: Prompt) -> str:
        content = "\n".join(words(prompt, [AUDIO_TAG] * len(prompt.clips)))
        turns = [{"role": "user", "content": content}]
        if prompt.system:
            turns.insert(0, {"role": "system", "content": prompt.system})
        return str(
            self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=True,
                chat_template=self.model.default_tts_chat_template if prompt.clips else None,
            )
        )

    def _processed(self, text: str, clips: list[Samples]) -> Any:
        # Texts, images, audios, and the message each audio is in: clips of one are joined.
        return self.processor(
            [text],
            [[]],
            [clips],
            [list(range(len(clips)))],
            max_slice_nums=None,
            use_image_id=None,
            chunk_input=True,
            return_tensors="pt",
            max_length=MOST_POSITIONS,
            sampling_rate=RATE_HZ,
        ).to(self.device)


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`. Raises LoadError."""
    model = load_remote(
        card,
        weights / card.repos[0].folder,
        "AutoModel",
        transformers_version=TRANSFORMERS,
        precision=precision,
        device_map=device_map,
        left_out=LEFT_OUT,
        attn_implementation="sdpa",
        init_vision=False,
        init_audio=True,
        init_tts=False,
    )
    adapter: Adapter = MiniCPMO(card, model)
    return adapter
