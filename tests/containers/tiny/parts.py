"""What the tiny checkpoints have in common: a byte vocabulary, loud weights, clips.

Random weights at the usual 0.02 barely react to their input; `loud` scales them
up, so that a wrong clip, mask or position shows in the logits.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import soundfile

RATE_HZ = 16_000

CHATML = """{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for content in message['content'] %}{% if content['type'] == 'audio' %}AUDIO_HERE{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def byte_vocabulary(words: tuple[str, ...] = ("Yes", "No", " Yes", " No", " the", "Play", "ing")):
    """All bytes as the byte-level pre-tokenizer writes them, and merges that make the words."""
    from tokenizers.pre_tokenizers import ByteLevel

    vocabulary = {symbol: number for number, symbol in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in words:
        symbols = list(word.replace(" ", "Ġ"))
        while len(symbols) > 1:
            pair = (symbols[0], symbols[1])
            if pair not in merges:
                merges.append(pair)
            vocabulary.setdefault("".join(pair), len(vocabulary))
            symbols = ["".join(pair), *symbols[2:]]
    return vocabulary, merges


def loud(model, seed: int = 0, embedding: float = 1.0) -> None:
    """Random weights at a scale where the output depends on everything that goes in."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim < 2:
                continue
            fan_in = math.prod(weight.shape[1:])
            scale = embedding if "embed_tokens" in name else 1.5 / math.sqrt(fan_in)
            weight.copy_(torch.randn(weight.shape, generator=generator) * scale)


def voice(seconds: float, pitch_hz: float, seed: int = 0) -> np.ndarray:
    """A harmonic tone with syllables and some breath, (n,) float32 on the 16-bit grid."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    glide = pitch_hz * (1 + 0.2 * np.sin(2 * np.pi * rng.uniform(0.5, 2) * time))
    phase = 2 * np.pi * np.cumsum(glide) / RATE_HZ
    tone = sum(np.sin(k * phase) / k for k in range(1, 9))
    syllables = np.maximum(0, np.sin(2 * np.pi * rng.uniform(2, 4) * time)) ** 2
    samples = 0.2 * syllables * tone + 0.005 * rng.standard_normal(len(time))
    # Voxtral's tokenizer rewrites clips as 16 bit; on the grid that changes nothing.
    return (np.round(samples * 32768) / 32768).astype(np.float32)


def write_clip(folder: Path, name: str, samples: np.ndarray):
    """A clip as the runtime hands it over, its file beside it."""
    from containers.runtime.adapter import Clip

    path = folder / f"{name}.wav"
    soundfile.write(path, samples, RATE_HZ, subtype="FLOAT")
    return Clip(path.name, str(path), samples)
