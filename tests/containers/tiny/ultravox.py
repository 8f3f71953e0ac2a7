"""A stand-in for Ultravox v0.5: its processor, audio tower and projector over a stock Llama."""

from __future__ import annotations

import math
from types import SimpleNamespace

from tiny.remote import HOP, chat_tokenizer, checked, decoder, log_frames

TEMPLATE = (
    "<|begin_of_text|>{% for message in messages %}<|start_header_id|>{{ message['role'] }}"
    "<|end_header_id|>\n\n{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
CONTEXT = 3_000


class Processor:
    """One text and one clip a call, as `UltravoxProcessor`; clips in pieces of 30 s."""

    def __init__(self) -> None:
        self.tokenizer = chat_tokenizer(
            "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
            eos="<|eot_id|>", template=TEMPLATE,
        )  # fmt: skip
        self.audio_processor = SimpleNamespace(feature_extractor=SimpleNamespace(hop_length=HOP))
        self.texts: list[str] = []

    def __call__(self, text=None, audio=None, sampling_rate=None, return_tensors="pt"):
        import torch
        from transformers import BatchFeature

        assert sampling_rate == 16_000
        frames = torch.from_numpy(log_frames(checked(audio))).T
        pieces = [
            frames[:, first : first + CONTEXT] for first in range(0, frames.shape[1], CONTEXT)
        ]
        lengths = torch.tensor([piece.shape[1] for piece in pieces])
        widest = int(lengths.max())
        data = {
            "audio_values": torch.stack(
                [torch.nn.functional.pad(piece, (0, widest - piece.shape[1])) for piece in pieces]
            ),
            "audio_lens": lengths,
            "audio_token_len": torch.tensor([math.ceil(n / 16) for n in lengths.tolist()]),
            "audio_batch_size": torch.tensor([len(pieces)]),
        }
        if text is not None:
            self.texts.append(text)
            before, after = text.split("<|audio|>")
            ids = self.tokenizer(before, add_special_tokens=False).input_ids
            starts = []
            for count in data["audio_token_len"].tolist():
                starts.append(len(ids))
                ids = [*ids, *[self.tokenizer.eos_token_id] * count]
            ids += self.tokenizer(after, add_special_tokens=False).input_ids
            data["audio_token_start_idx"] = torch.tensor(starts)
            data["input_ids"] = torch.tensor([ids])
            data["attention_mask"] = torch.ones(1, len(ids), dtype=torch.long)
        return BatchFeature(data)


def model(processor):
    """`UltravoxModel` as an adapter sees it."""
    import torch
    from tiny.parts import loud
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Linear(8, 16)

        @property
        def dtype(self):
            return self.conv.weight.dtype

        def forward(self, values, audio_len=None):
            assert values.shape[-1] <= CONTEXT
            inside = torch.arange(values.shape[-1])[None, :, None] < audio_len[:, None, None]
            states = self.conv(values.transpose(1, 2)) * inside
            states = states + states.sum(1, keepdim=True) / audio_len[:, None, None]
            return SimpleNamespace(last_hidden_state=states[:, ::2])

    class Projector(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8 * 16, 32)

        def forward(self, states):
            states = torch.nn.functional.pad(states, (0, 0, 0, -states.shape[1] % 8))
            return self.linear(states.reshape(len(states), -1, 8 * 16))

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size = len(processor.tokenizer)
            self.language_model = decoder(LlamaConfig, LlamaForCausalLM, size)
            self.audio_tower = Tower()
            self.multi_modal_projector = Projector()
            eos = processor.tokenizer.eos_token_id
            self.generation_config = GenerationConfig(eos_token_id=[eos])

        @property
        def dtype(self):
            return self.language_model.dtype

        def forward(
            self, input_ids, audio_values, audio_lens, audio_token_len, audio_batch_size,
            audio_token_start_idx, attention_mask, use_cache,
        ):  # fmt: skip
            embeds = self.language_model.get_input_embeddings()(input_ids).clone()
            states = self.audio_tower(audio_values, audio_len=audio_lens).last_hidden_state
            for piece, start, count in zip(
                self.multi_modal_projector(states), audio_token_start_idx, audio_token_len,
                strict=True,
            ):  # fmt: skip
                embeds[0, start : start + count] = piece[:count]
            return self.language_model(
                inputs_embeds=embeds, attention_mask=attention_mask, use_cache=use_cache
            )

    built = Model().eval()
    loud(built.audio_tower)
    loud(built.multi_modal_projector)
    return built


def adapter(card):
    from containers.ultravox.adapter import Ultravox

    processor = Processor()
    return Ultravox(card, processor, model(processor))
