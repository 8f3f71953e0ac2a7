"""A Voxtral repository in small, with a hand-made tekken.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tiny.parts import byte_vocabulary, loud

AUDIO = {24: "[AUDIO]", 25: "[BEGIN_AUDIO]", 34: "[TRANSCRIBE]"}
SPECIALS = 40


def save(folder: Path, seed: int = 0) -> None:
    from transformers import (
        MistralCommonBackend,
        VoxtralConfig,
        VoxtralForConditionalGeneration,
        VoxtralProcessor,
        WhisperFeatureExtractor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    tekken = _tekken()
    (folder / "tekken.json").write_text(json.dumps(tekken))
    config = VoxtralConfig(
        audio_config={
            "hidden_size": 16,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": tekken["config"]["default_vocab_size"],
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 11,
        },
        audio_token_id=24,
    )
    model = VoxtralForConditionalGeneration(config)
    loud(model, seed)
    model.save_pretrained(folder)
    VoxtralProcessor(
        WhisperFeatureExtractor(feature_size=128), MistralCommonBackend(folder / "tekken.json")
    ).save_pretrained(folder)


def _tekken() -> dict:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    named = {s["rank"]: s["token_str"] for s in Tekkenizer.DEPRECATED_SPECIAL_TOKENS} | AUDIO
    byte_of = {symbol: byte for byte, symbol in bytes_to_unicode().items()}
    words = [word for word in byte_vocabulary()[0] if len(word) > 1]
    tokens = [bytes([value]) for value in range(256)]
    tokens += [bytes(byte_of[symbol] for symbol in word) for word in words]
    return {
        "config": {
            "pattern": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+",
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": len(tokens) + SPECIALS,
            "default_num_special_tokens": SPECIALS,
            "version": "v7",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": named.get(rank, f"<SPECIAL_{rank}>"), "is_control": True}
            for rank in range(SPECIALS)
        ],
        "audio": {
            "sampling_rate": 16000,
            "frame_rate": 12.5,
            "audio_encoding_config": {"num_mel_bins": 128, "hop_length": 160, "window_size": 400},
            "chunk_length_s": 30.0,
        },
    }
