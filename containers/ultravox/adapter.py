"""Ultravox v0.5 8B: `trust_remote_code` on transformers 4.57, its backbones from local folders.

What the layout rests on, in `fixie-ai/ultravox` (ultravox/model): the pipeline
writes `<|audio|>` into a message's text and applies the tokenizer's template;
`UltravoxProcessor` splits the text at `<|audio|>`, tokenizes the pieces apart
and puts as many end tokens between them as the projector gives rows, one for
160 ms; `UltravoxModel.forward` overwrites those embeddings. The pipeline's
generation has a repetition penalty of 1.1; it is not used.

The repository holds the projector and the audio encoder. Its code loads the text
backbone (and the encoder's configuration and feature extractor) from the hub by
name, without a revision: the load goes through a copy of `config.json` in which
these names are local folders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from containers.runtime.adapter import Adapter, LoadError, Prompt, Samples
from containers.runtime.card import Card
from containers.runtime.loading import check_folder
from containers.runtime.remote_code import (
    RemoteCodeAdapter,
    end_ids,
    load_processor,
    load_remote,
    words,
)
from containers.runtime.transformers_adapter import RATE_HZ

TRANSFORMERS = "4.57."
AUDIO = "<|audio|>"


class Ultravox(RemoteCodeAdapter):
    """6.25 rows a second, in pieces of 30 s."""

    def __init__(self, card: Card, processor: Any, model: Any) -> None:
        tokenizer = processor.tokenizer
        language_model = model.language_model
        super().__init__(
            card,
            processor,
            model,
            decoder=language_model.model,
            head=language_model.lm_head,
            eos_ids=end_ids(
                model.generation_config.eos_token_id,
                language_model.generation_config.eos_token_id,
                tokenizer.eos_token_id,
                # The pipeline ends an answer there too.
                tokenizer.get_vocab().get("<|eot_id|>"),
            ),
        )

    def encode(self, samples: Samples) -> tuple[Tensor, float]:
        features = self.processor(audio=samples, sampling_rate=RATE_HZ)
        tower = self.model.audio_tower
        lengths = features["audio_lens"].to(self.device)
        states = tower(
            features["audio_values"].to(self.device, tower.dtype), audio_len=lengths
        ).last_hidden_state
        pieces = self.model.multi_modal_projector(states.to(self.model.dtype))
        rows = zip(pieces, features["audio_token_len"].tolist(), strict=True)
        hop = self.processor.audio_processor.feature_extractor.hop_length
        # Only a piece's own rows: behind them is padding.
        return torch.cat([piece[:count] for piece, count in rows]), (
            int(lengths.sum()) * hop / RATE_HZ
        )

    def layout(self, prompt: Prompt, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        ids: list[int] = []
        starts: list[int] = []
        for place, piece in enumerate(self._text(prompt).split(AUDIO)):
            if place:
                starts.append(len(ids))
                ids += [self.tokenizer.eos_token_id] * rows[place - 1]
            ids += self.token_ids(piece)
        return ids, starts

    def vendor_pass(self, prompt: Prompt) -> tuple[list[int], Tensor]:
        (clip,) = prompt.clips
        inputs = self.processor(
            text=self._text(prompt), audio=clip.samples, sampling_rate=RATE_HZ
        ).to(self.device)
        logits: Tensor = self.model(**inputs, use_cache=False).logits
        return inputs["input_ids"][0].tolist(), logits[0, -1]

    def control_tokens(self) -> list[str]:
        return [*super().control_tokens(), AUDIO]

    def _text(self, prompt: Prompt) -> str:
        said = "".join(words(prompt, [AUDIO] * len(prompt.clips)))
        turns = [{"role": "user", "content": said}]
        if prompt.system:
            turns.insert(0, {"role": "system", "content": prompt.system})
        return str(
            self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        )


def redirected(folder: Path, whisper: Path, llama: Path, into: Path) -> None:
    """Link a snapshot's files into another folder, its backbones named by local paths.

    The vendor's code tells a Whisper encoder by the word in its path.

    Raises:
        LoadError: the path of the encoder has no "whisper" in it.
    """
    if "whisper" not in str(whisper).lower():
        raise LoadError(f'{whisper}: the audio encoder\'s folder must have "whisper" in its path.')
    for path in folder.iterdir():
        if path.name != "config.json":
            (into / path.name).symlink_to(path.resolve())
    config = json.loads((folder / "config.json").read_text())
    for kind, local in (("audio", whisper), ("text", llama)):
        nested = config.get(f"{kind}_config")
        if isinstance(nested, dict):
            nested["_name_or_path"] = str(local.resolve())
        # Where the release names no model, it describes one, and nothing is fetched.
        if config.get(f"{kind}_model_id") or not isinstance(nested, dict):
            config[f"{kind}_model_id"] = str(local.resolve())
    (into / "config.json").write_text(json.dumps(config, indent=1))


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`. Raises LoadError."""
    folder, whisper, llama = (weights / repo.folder for repo in card.repos)
    for place in (folder, whisper, llama):
        check_folder(card, place)
    with TemporaryDirectory(prefix="ultravox-") as temporary:
        redirected(folder, whisper, llama, Path(temporary))
        model = load_remote(
            card,
            Path(temporary),
            "AutoModel",
            transformers_version=TRANSFORMERS,
            precision=precision,
            device_map=device_map,
        )
        processor = load_processor(card, Path(temporary))
    adapter: Adapter = Ultravox(card, processor, model)
    return adapter
