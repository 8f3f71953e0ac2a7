"""A Gemma 4 repository in small: sliding layers, shared keys and values, per-layer inputs."""

from __future__ import annotations

from pathlib import Path

from tiny.parts import loud

SPECIAL = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "sot_token": "<|turn>",
    "eot_token": "<turn|>",
}
# As in the release, texts are trimmed and thinking is asked for in the system turn.
TEMPLATE = """{{ bos_token }}{% if enable_thinking %}<|turn>system
Think.<turn|>
{% endif %}{% for message in messages %}<|turn>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] | trim }}{% else %}{% for content in message['content'] %}{% if content['type'] == 'audio' %}<|audio|>{% elif 'text' in content %}{{ content['text'] | trim }}{% endif %}{% endfor %}{% endif %}<turn|>
{% endfor %}{% if add_generation_prompt %}<|turn>model
{% endif %}"""
WINDOW = 24


def save(folder: Path, seed: int = 0) -> None:
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4Config,
        Gemma4ForConditionalGeneration,
        Gemma4ImageProcessor,
        Gemma4Processor,
        Gemma4VideoProcessor,
        GemmaTokenizer,
    )

    tokenizer = GemmaTokenizer(*_vocabulary(), extra_special_tokens=SPECIAL)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|video|>"]})
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in SPECIAL.items()}
    config = Gemma4Config(
        text_config={
            "vocab_size": len(tokenizer),
            "vocab_size_per_layer_input": len(tokenizer),
            "hidden_size": 32,
            "hidden_size_per_layer_input": 8,
            "intermediate_size": 64,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "global_head_dim": 16,
            "sliding_window": WINDOW,
            "num_kv_shared_layers": 2,
            "layer_types": [
                "sliding_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "full_attention",
            ],
            "final_logit_softcapping": 30.0,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "position_embedding_size": 64,
        },
        audio_config={
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "output_proj_dims": 32,
            "subsampling_conv_channels": [128, 8],
        },
        image_token_id=ids["image_token"],
        boi_token_id=ids["boi_token"],
        eoi_token_id=ids["eoi_token"],
        audio_token_id=ids["audio_token"],
        boa_token_id=ids["boa_token"],
        eoa_token_index=ids["eoa_token"],
        video_token_id=tokenizer.convert_tokens_to_ids("<|video|>"),
    )
    model = Gemma4ForConditionalGeneration(config)
    # Embeddings are tied to the head and scaled up: at 1.0 every token would repeat itself.
    loud(model, seed, embedding=0.15)
    model.generation_config.eos_token_id = [1, ids["eot_token"]]
    model.save_pretrained(folder)
    Gemma4Processor(
        Gemma4AudioFeatureExtractor(),
        Gemma4ImageProcessor(),
        tokenizer,
        Gemma4VideoProcessor(),
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


def _vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Byte fallback as in the release, printable ASCII, and a few merges."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tokens += [f"<0x{value:02X}>" for value in range(256)]
    tokens += [chr(code) for code in range(33, 127)] + ["▁", "\n"]
    merges = [("Y", "e"), ("Ye", "s"), ("N", "o"), ("▁", "Yes"), ("▁", "No")]
    tokens += [left + right for left, right in merges]
    return {token: number for number, token in enumerate(tokens)}, merges
