"""A Qwen3-Omni repository in small: Thinker weights under `thinker.`, talker weights beside."""

from __future__ import annotations

import json
from pathlib import Path

from tiny.parts import CHATML, byte_vocabulary, loud

SPECIAL = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|audio_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}


def save(folder: Path, seed: int = 0) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import (
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3OmniMoeConfig,
        Qwen3OmniMoeProcessor,
        Qwen3OmniMoeThinkerConfig,
        Qwen3OmniMoeThinkerForConditionalGeneration,
        WhisperFeatureExtractor,
    )

    vocabulary, merges = byte_vocabulary()
    tokenizer = Qwen2Tokenizer(
        vocabulary,
        merges,
        eos_token="<|im_end|>",
        extra_special_tokens={**SPECIAL, "im_start": "<|im_start|>"},
    )
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in SPECIAL.items()}
    config = Qwen3OmniMoeThinkerConfig(
        audio_config={
            "d_model": 32,
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "output_dim": 32,
            "downsample_hidden_size": 8,
        },
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 32,
            "deepstack_visual_indexes": [0],
        },
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "moe_intermediate_size": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [2, 1, 1],
                "mrope_interleaved": True,
            },
        },
        audio_token_id=ids["audio_token"],
        image_token_id=ids["image_token"],
        video_token_id=ids["video_token"],
        audio_start_token_id=ids["audio_bos_token"],
        audio_end_token_id=ids["audio_eos_token"],
        vision_start_token_id=ids["vision_bos_token"],
        vision_end_token_id=ids["vision_eos_token"],
    )
    model = Qwen3OmniMoeThinkerForConditionalGeneration(config)
    loud(model, seed)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    saved = load_file(folder / "model.safetensors")
    weights = {f"thinker.{name}": value for name, value in saved.items()}
    weights["talker.codec_head.weight"] = torch.zeros(2, 2)
    weights["code2wav.code_embedding.weight"] = torch.zeros(2, 2)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    whole = Qwen3OmniMoeConfig(thinker_config=config.to_dict())
    (folder / "config.json").write_text(json.dumps(whole.to_dict(), indent=1))
    Qwen3OmniMoeProcessor(
        Qwen2VLImageProcessor(),
        Qwen2VLVideoProcessor(),
        WhisperFeatureExtractor(feature_size=128, return_attention_mask=True),
        tokenizer,
        chat_template=CHATML.replace("AUDIO_HERE", "<|audio_start|><|audio_pad|><|audio_end|>"),
    ).save_pretrained(folder)
