"""Parts of the stand-ins for models whose code comes with their weights.

A stand-in follows the vendor's published processor and model as far as an
adapter sees them: names, argument checks, placeholders, the arithmetic of
lengths. Its decoder is the stock class that the vendor's is built on, its
encoder a small one whose output depends on all samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tiny.parts import RATE_HZ, byte_vocabulary, loud, voice, write_clip

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HOP = 160


def chat_tokenizer(*special: str, eos: str, template: str):
    """A byte-level tokenizer with these control tokens, in any transformers."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    bytes_to_words = Tokenizer(models.BPE(*byte_vocabulary()))
    bytes_to_words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_to_words.decoder = decoders.ByteLevel()
    control = [
        AddedToken(text, special=True, normalized=False) for text in ("<unk>", eos, *special)
    ]
    bytes_to_words.add_special_tokens(control)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_to_words,
        unk_token="<unk>",
        eos_token=eos,
        pad_token=eos,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = template
    return tokenizer


def decoder(config_class, model_class, vocabulary: int, **more):
    """A tiny stock decoder with loud weights."""
    config = config_class(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=0,
        **more,
    )
    model = model_class(config).eval()
    loud(model)
    return model


def checked(samples) -> np.ndarray:
    """What every vendor's extractor wants of a clip: one row of float32 in [-1, 1]."""
    assert isinstance(samples, np.ndarray), type(samples)
    assert samples.dtype == np.float32, samples.dtype
    assert samples.ndim == 1, samples.shape
    assert np.abs(samples).max(initial=0) <= 1
    return samples


def log_frames(samples: np.ndarray, bands: int = 8) -> np.ndarray:
    """(frames, bands) log energies, one frame of 10 ms a row, the last one padded."""
    count = -(-len(samples) // HOP)
    padded = np.pad(samples, (0, count * HOP - len(samples)))
    energy = (padded.reshape(count, bands, HOP // bands) ** 2).mean(-1)
    return (np.log(energy + 1e-6) / 4).astype(np.float32)


def clips(folder: Path) -> dict:
    """Clips by the names the tests use."""
    spoken = {
        "short": voice(1.3, 110, 0),
        "long": voice(2.9, 210, 1),
        "other": voice(2.9, 150, 2),
        "silence": np.zeros(round(2.9 * RATE_HZ), np.float32),
        "exemplar": voice(1.7, 180, 3),
    }
    return {name: write_clip(folder, name, samples) for name, samples in spoken.items()}


def ask(clips: dict, *parts: str, system: str | None = "Be brief.", choices=None, **more):
    """A prompt of texts and clip names."""
    from containers.runtime.adapter import Prompt, Words

    settings = {"max_new_tokens": 6, "temperature": 0.0, "top_p": 1.0, "seed": 0, **more}
    said = tuple(clips.get(part) or Words(part) for part in parts)
    return Prompt("id", system, said, choices, **settings)
