"""A stand-in for `kimia_infer`: prompts of two streams, two heads, a cache of plain tuples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import soundfile
from tiny.remote import log_frames

TOKENS = {
    "msg_end": 300,
    "media_begin": 301,
    "media_end": 302,
    "kimia_text_blank": 303,
    "kimia_text_eos": 304,
    "kimia_user_msg_start": 305,
    "kimia_assistant_msg_start": 306,
    "kimia_speech_ct_id": 307,
}
CODES = 320


class TextTokenizer:
    """Bytes; never a control token, whatever the words look like."""

    def encode(self, text: str, *, bos: bool, eos: bool) -> list[int]:
        assert not bos
        assert not eos
        return list(text.encode())

    def decode(self, ids) -> str:
        return bytes(id for id in ids if id < 256).decode(errors="replace")


class PromptManager:
    """Messages to aligned streams, as `KimiAPromptManager.get_prompt` documents."""

    def __init__(self) -> None:
        self.text_tokenizer = TextTokenizer()
        self.messages: list[list[dict]] = []

    def get_prompt(self, messages, output_type="text"):
        import torch

        assert output_type == "text"
        self.messages.append(messages)
        blank = TOKENS["kimia_text_blank"]
        audio, text, continuous, features = [TOKENS["kimia_user_msg_start"]], [blank], [False], []
        for place, message in enumerate(messages):
            assert set(message) == {"role", "message_type", "content"}
            assert message["role"] == "user"
            if message["message_type"] == "text":
                ids = self.text_tokenizer.encode(message["content"], bos=False, eos=False)
                audio += [blank] * len(ids)
                text += ids
                continuous += [False] * len(ids)
                continue
            samples, rate_hz = soundfile.read(message["content"], dtype="float32")
            assert rate_hz == 16_000
            codes, rows = _tokenized(samples)
            features.append(torch.from_numpy(rows)[None])
            audio += [TOKENS["media_begin"], *codes, TOKENS["media_end"]]
            continuous += [False, *[True] * len(codes), False]
            if place == len(messages) - 1:
                audio.append(TOKENS["kimia_speech_ct_id"])
                continuous.append(False)
            text += [blank] * (len(audio) - len(text))
        audio += [TOKENS["msg_end"], TOKENS["kimia_assistant_msg_start"]]
        text += [blank] * 2
        continuous += [False] * 2
        tensors = tuple(torch.tensor([stream]) for stream in (audio, text, continuous))
        return SimpleNamespace(to_tensor=lambda: tensors, continuous_feature=features)


def _tokenized(samples) -> tuple[list[int], np.ndarray]:
    """12.5 codes a second and as many continuous rows."""
    frames = log_frames(samples)
    count = -(-len(frames) // 8)
    padded = np.pad(frames, ((0, 8 * count - len(frames)), (0, 0)))
    rows = padded.reshape(count, 8, 8).mean(1).astype(np.float32)
    codes = CODES + (np.abs(rows).sum(1) * 7).astype(int) % 64
    return codes.tolist(), rows


def model(positions: int = 8_192):
    """`KimiAudio` with a small causal decoder; `alm.forward` gives audio and text logits."""
    import torch
    from tiny.parts import loud

    class Alm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(CODES + 64, 32)
            self.place = torch.nn.Embedding(positions, 32)
            self.adaptor = torch.nn.Linear(8, 32)
            self.qkv = torch.nn.Linear(32, 96)
            self.out = torch.nn.Linear(32, 32)
            self.lm_head = torch.nn.Linear(32, CODES + 64)
            self.mimo_output = torch.nn.Linear(32, CODES + 64)
            self.calls: list[tuple[int, int]] = []

        def forward(
            self, input_ids, text_input_ids, whisper_input_feature, is_continuous_mask,
            position_ids, past_key_values, return_dict,
        ):  # fmt: skip
            assert return_dict is False
            assert input_ids.shape == text_input_ids.shape == position_ids.shape
            assert len(input_ids) == 1
            before = 0 if past_key_values is None else past_key_values[0].shape[1]
            assert position_ids[0, 0] == before
            self.calls.append((before, input_ids.shape[1]))
            audio = self.embed(input_ids)
            if whisper_input_feature:
                rows = torch.cat([feature[0] for feature in whisper_input_feature])
                heard = audio[is_continuous_mask] + self.adaptor(rows)
                audio = audio.clone()
                audio[is_continuous_mask] = heard * 2**0.5
            hidden = audio + self.embed(text_input_ids) + self.place(position_ids)
            query, keys, values = self.qkv(hidden).chunk(3, dim=-1)
            if past_key_values is not None:
                keys = torch.cat([past_key_values[0], keys], dim=1)
                values = torch.cat([past_key_values[1], values], dim=1)
            seen = torch.ones(query.shape[1], keys.shape[1]).tril(before).bool()
            scores = (query @ keys.transpose(1, 2) / 32**0.5).masked_fill(~seen, float("-inf"))
            hidden = hidden + self.out(scores.softmax(-1) @ values)
            return self.mimo_output(hidden), self.lm_head(hidden), (keys, values)

    alm = Alm().eval()
    loud(alm)
    for parameter in alm.parameters():
        parameter.requires_grad_(False)
    manager = PromptManager()

    def detokenize_text(ids) -> str:
        return manager.text_tokenizer.decode(ids)

    return SimpleNamespace(
        alm=alm,
        prompt_manager=manager,
        extra_tokens=SimpleNamespace(**TOKENS),
        detokenize_text=detokenize_text,
    )


def package(folder: Path) -> None:
    """Write a `kimia_infer` that behaves at load as the vendor's does."""
    api = folder / "kimia_infer" / "api"
    api.mkdir(parents=True)
    for place in (api.parent, api):
        (place / "__init__.py").write_text("")
    (api / "prompt_manager.py").write_text(
        "class Glm4Tokenizer:\n    def __init__(self, path):\n        self.path = path\n"
    )
    (api / "kimia.py").write_text(
        "from pathlib import Path\n"
        "from types import SimpleNamespace\n"
        "from . import prompt_manager\n"
        "Path('kimia_audio.log').write_text('opened on import')\n"
        "class KimiAudio:\n"
        "    def __init__(self, model_path, load_detokenizer=True):\n"
        "        self.model_path, self.load_detokenizer = model_path, load_detokenizer\n"
        "        self.tokenizer = prompt_manager.Glm4Tokenizer('THUDM/glm-4-voice-tokenizer')\n"
        "        self.alm = SimpleNamespace(eval=lambda: None)\n"
    )
