"""A stand-in for Phi-4-Multimodal: its processor, its input modes and its two sets of weights."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
from tiny.remote import chat_tokenizer, decoder, log_frames

AUDIO_TOKEN = "<|endoftext11|>"


class AudioProcessor:
    """(array, rate) pairs in, features of 10 ms and sizes in rows of 80 ms out."""

    def __call__(self, audios, return_tensors=None):
        import torch
        from torch.nn.utils.rnn import pad_sequence
        from transformers import BatchFeature

        for samples, rate_hz in audios:
            assert isinstance(samples, np.ndarray)
            assert rate_hz == 16_000
        # Windows of 25 ms every 10 ms, no padding.
        features = [
            torch.from_numpy(log_frames(samples)[: (len(samples) - 400) // 160 + 1])
            for samples, _ in audios
        ]
        sizes = torch.tensor([-(-len(rows) // 8) for rows in features])
        padded = pad_sequence(features, batch_first=True)
        return BatchFeature({"input_audio_embeds": padded, "audio_embed_sizes": sizes})


class Processor:
    """`Phi4MMProcessor.__call__` for prompts without pictures."""

    def __init__(self) -> None:
        self.tokenizer = chat_tokenizer(
            "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext10|>", AUDIO_TOKEN,
            eos="<|endoftext|>", template="",
        )  # fmt: skip
        self.audio_processor = AudioProcessor()
        self.texts: list[str] = []

    def __call__(self, text, images=None, audios=None, return_tensors="pt"):
        import torch
        from transformers import BatchFeature

        assert images is None
        assert isinstance(text, str)
        self.texts.append(text)
        audio = self.audio_processor(audios)
        assert re.findall(r"<\|audio_(\d+)\|>", text) == [str(n + 1) for n in range(len(audios))]
        sizes = iter(audio["audio_embed_sizes"].tolist())
        mark = self.tokenizer.convert_tokens_to_ids(AUDIO_TOKEN)
        ids: list[int] = []
        for token in self.tokenizer(re.sub(r"<\|audio_\d+\|>", AUDIO_TOKEN, text)).input_ids:
            ids += [token] * (next(sizes) if token == mark else 1)
        both = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids)).bool()}
        return BatchFeature({**both, **audio, "input_mode": torch.tensor([2])})


def model(**decoder_options):
    """`Phi4MMForCausalLM` as an adapter sees it, over a stock Phi-3."""
    import torch
    from tiny.parts import loud
    from transformers import Phi3Config, Phi3ForCausalLM

    processor = Processor()
    size = len(processor.tokenizer)
    built = decoder(
        Phi3Config, Phi3ForCausalLM, size, attn_implementation="eager", **decoder_options
    )

    class AudioEmbed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Linear(8, 32)

        def forward(
            self, input_ids, input_embeds, audio_embed_sizes, audio_attention_mask,
            audio_projection_mode, wte,
        ):  # fmt: skip
            assert audio_projection_mode == "speech"
            encoded = self.encoder(input_embeds)
            # Over the whole call, so that a clip's rows depend on its padding.
            encoded = encoded + encoded.mean(1, keepdim=True)
            hidden = wte(input_ids).clone()
            rows = [
                torch.nn.functional.pad(clip, (0, 0, 0, -len(clip) % 8)).reshape(-1, 8, 32).mean(1)
                for clip in encoded
            ]
            kept = [clip[:size] for clip, size in zip(rows, audio_embed_sizes, strict=True)]
            mark = processor.tokenizer.convert_tokens_to_ids(AUDIO_TOKEN)
            hidden[input_ids == mark] = torch.cat(kept).to(hidden)
            return hidden

    extend = torch.nn.Module()
    extend.audio_embed = AudioEmbed()
    loud(extend)
    built.model.embed_tokens_extend = extend

    lora = torch.nn.Linear(32, 32, bias=False)
    loud(lora, seed=5)
    built.lora = SimpleNamespace(on=None, calls=[])

    def adapted(_, inputs, output):
        assert built.lora.on is not None, "no input mode was chosen"
        return output + lora(inputs[0]) if built.lora.on else output

    for layer in built.model.layers:
        layer.self_attn.o_proj.register_forward_hook(adapted)

    def set_lora_adapter(name: str) -> None:
        assert name == "speech"
        built.lora.on = True
        built.lora.calls.append("speech")

    def unset_lora_adapter() -> None:
        built.lora.on = False
        built.lora.calls.append("none")

    built.set_lora_adapter, built.unset_lora_adapter = set_lora_adapter, unset_lora_adapter
    stock = built.forward

    def forward(
        input_ids, attention_mask, input_audio_embeds, audio_embed_sizes, audio_attention_mask,
        input_mode, use_cache,
    ):  # fmt: skip
        assert input_mode == 2
        set_lora_adapter("speech")
        embeds = extend.audio_embed(
            input_ids, input_audio_embeds, audio_embed_sizes, audio_attention_mask, "speech",
            built.model.embed_tokens,
        )  # fmt: skip
        return stock(inputs_embeds=embeds, attention_mask=attention_mask, use_cache=use_cache)

    built.forward = forward
    built.stock = stock
    built.generation_config.eos_token_id = [
        processor.tokenizer.convert_tokens_to_ids("<|end|>"),
        processor.tokenizer.eos_token_id,
    ]
    return processor, built


def adapter(card, **decoder_options):
    from containers.phi4_multimodal.adapter import Phi4Multimodal

    return Phi4Multimodal(card, *model(**decoder_options))
