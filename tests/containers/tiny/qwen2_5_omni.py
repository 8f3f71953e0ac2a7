"""A Qwen2.5-Omni repository in small: Thinker weights under `thinker.`, talker weights beside."""

from __future__ import annotations

import json
from pathlib import Path

from tiny.parts import CHATML, byte_vocabulary, loud

SPECIAL = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}


def save(
    folder: Path,
    *,
    hidden: int = 32,
    layers: int = 2,
    heads: int = 4,
    key_heads: int = 2,
    seed: int = 0,
) -> None:
    """Write the checkpoint; `hidden` and `layers` are the decoder's."""
    import torch
    from safetensors.torch import save_file
    from transformers import (
        Qwen2_5OmniConfig,
        Qwen2_5OmniProcessor,
        Qwen2_5OmniThinkerConfig,
        Qwen2_5OmniThinkerForConditionalGeneration,
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
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
    config = Qwen2_5OmniThinkerConfig(
        audio_config={
            "d_model": 32,
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "n_window": 100,
            "output_dim": hidden,
        },
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": hidden,
            "fullatt_block_indexes": [0],
        },
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": key_heads,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": _sections(hidden // heads),
            },
        },
        audio_token_index=ids["audio_token"],
        image_token_index=ids["image_token"],
        video_token_index=ids["video_token"],
        audio_start_token_id=ids["audio_bos_token"],
        audio_end_token_id=ids["audio_eos_token"],
        vision_start_token_id=ids["vision_bos_token"],
        vision_end_token_id=ids["vision_eos_token"],
    )
    model = Qwen2_5OmniThinkerForConditionalGeneration(config)
    loud(model, seed)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    weights = {f"thinker.{name}": value for name, value in _released_names(model).items()}
    weights["talker.codec_head.weight"] = torch.zeros(2, 2)
    weights["token2wav.code2wav_bigvgan_model.conv_pre.weight"] = torch.zeros(2, 2)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    whole = Qwen2_5OmniConfig(thinker_config=config.to_dict())
    (folder / "config.json").write_text(json.dumps(whole.to_dict(), indent=1))
    model.generation_config.save_pretrained(folder)
    Qwen2_5OmniProcessor(
        Qwen2VLImageProcessor(),
        Qwen2VLVideoProcessor(),
        WhisperFeatureExtractor(feature_size=128, chunk_length=300, return_attention_mask=True),
        tokenizer,
        chat_template=CHATML.replace("AUDIO_HERE", "<|audio_bos|><|AUDIO|><|audio_eos|>"),
    ).save_pretrained(folder)


def _sections(head_dim: int) -> list[int]:
    """Rotary sections for time, height and width in the release's proportion 16 : 24 : 24."""
    half = head_dim // 2
    return [half - 2 * (3 * half // 8), 3 * half // 8, 3 * half // 8]


def _released_names(model) -> dict:
    """Weights under the names of the release: `model.layers`, `audio_tower`, `lm_head`."""
    renamed = {}
    for name, value in model.state_dict().items():
        name = name.replace("model.language_model.", "model.", 1)
        name = name.replace("model.audio_tower.", "audio_tower.", 1)
        name = name.replace("model.visual.", "visual.", 1)
        renamed[name] = value.contiguous()
    return renamed
