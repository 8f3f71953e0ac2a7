"""A stand-in for MiniCPM-o 2.6: its processor's and its model's published ways with audio."""

from __future__ import annotations

import math
import re
from collections import UserDict
from types import SimpleNamespace

from tiny.remote import CHATML, HOP, chat_tokenizer, checked, decoder, log_frames

TAG = "(<audio>./</audio>)"
SPOKEN = CHATML.replace(
    "<|im_start|>assistant\n", "<|im_start|>assistant\n<|spk_bos|><|spk|><|spk_eos|><|tts_bos|>"
)


class Features(UserDict):
    """Like the vendor's own batch: lists of tensors go to a device too."""

    def to(self, device):
        def moved(value):
            return (
                [moved(entry) for entry in value] if isinstance(value, list) else value.to(device)
            )

        return Features({name: moved(value) for name, value in self.items()})


class Processor:
    """Texts with tags and clips in; ids with marked placeholders and features out."""

    def __init__(self) -> None:
        self.tokenizer = chat_tokenizer(
            "<|im_start|>", "<|audio_start|>", "<|audio_end|>", "<|spk_bos|>", "<|spk|>",
            "<|spk_eos|>", "<|tts_bos|>", "<|tts_eos|>", "<|endoftext|>",
            eos="<|im_end|>", template=CHATML,
        )  # fmt: skip
        for name, token in (("audio_start", "<|audio_start|>"), ("audio_end", "<|audio_end|>")):
            setattr(self.tokenizer, name, token)
            setattr(self.tokenizer, f"{name}_id", self.tokenizer.convert_tokens_to_ids(token))
        self.tokenizer.tts_end = "<|tts_eos|>"
        self.feature_extractor = SimpleNamespace(hop_length=HOP)
        self.calls: list[dict] = []

    def __call__(self, text, images=None, audios=None, audio_parts=None, **options):
        import torch

        assert [type(entry) for entry in (text, images, audios, audio_parts)] == [list] * 4
        assert options["sampling_rate"] == 16_000
        self.calls.append({"text": text, "parts": audio_parts, **options})
        (said,), (heard,), (parts,) = text, audios, audio_parts
        assert len(said.split(TAG)) == len(heard) + 1 == len(parts) + 1
        pieces = re.split(re.escape(TAG), said)
        for place, samples in enumerate(heard, start=1):
            pieces[place] = self._placeholder(len(checked(samples))) + pieces[place]
        ids = torch.tensor(self.tokenizer.encode("".join(pieces)), dtype=torch.int32)
        starts = torch.where(ids == self.tokenizer.audio_start_id)[0] + 1
        stops = torch.where(ids == self.tokenizer.audio_end_id)[0]
        features = [torch.from_numpy(log_frames(samples)) for samples in heard]
        return Features(
            {
                "input_ids": ids[None],
                "audio_bounds": [torch.stack([starts, stops], dim=1)],
                "audio_features": features,
                "audio_feature_lens": [torch.tensor([len(f) for f in features])] if heard else [],
            }
        )

    @staticmethod
    def _placeholder(samples: int) -> str:
        frames = (math.ceil(samples / HOP) - 1) // 2 + 1
        rows = (frames - 2) // 2 + 1
        pieces = [min(25, rows - first) for first in range(0, rows, 25)]
        return "".join(f"<|audio_start|>{'<unk>' * piece}<|audio_end|>" for piece in pieces)


def model():
    """`MiniCPMO` as an adapter sees it, over a stock Qwen2."""
    import torch
    from tiny.parts import loud
    from transformers import Qwen2Config, Qwen2ForCausalLM

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.processor = Processor()
            size = len(self.processor.tokenizer)
            self.llm = decoder(Qwen2Config, Qwen2ForCausalLM, size)
            self.apm = torch.nn.Linear(8, 32)
            self.config = SimpleNamespace(audio_chunk_length=1.0)
            self.terminators = ["<|im_end|>", "<|endoftext|>"]
            self.default_tts_chat_template = SPOKEN

        def get_omni_embedding(self, data, input_embeddings, chunk_length=-1):
            assert chunk_length == 1.0
            bounds = data["audio_bounds"][0].tolist()
            rows = []
            for features in data["audio_features"]:
                count = ((len(features) - 1) // 2 + 1 - 2) // 2 + 1
                encoded = self.apm(features)
                encoded = encoded + encoded.mean(0)
                rows.append(encoded[: 4 * count].reshape(count, 4, 32).mean(1))
            rows = torch.cat(rows)
            for start, stop in bounds:
                input_embeddings[0, start:stop], rows = rows[: stop - start], rows[stop - start :]
            assert not len(rows)
            return input_embeddings

        def forward(self, data, **options):
            embeds = self.llm.model.embed_tokens(data["input_ids"].long())
            if len(data["audio_features"]):
                embeds = self.get_omni_embedding(data, embeds.clone(), chunk_length=1.0)
            return self.llm(
                input_ids=None, inputs_embeds=embeds, position_ids=data["position_ids"], **options
            )

        def chat(self, *_, **__):
            raise AssertionError("three beams and a repetition penalty")

    built = Model().eval()
    loud(built.apm)
    return built


def adapter(card):
    from containers.minicpm_o.adapter import MiniCPMO

    return MiniCPMO(card, model())
