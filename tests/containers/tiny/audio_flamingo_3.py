"""An Audio Flamingo 3 repository in small."""

from __future__ import annotations

from pathlib import Path

from tiny.parts import CHATML, byte_vocabulary, loud


def save(folder: Path, seed: int = 0) -> None:
    from transformers import (
        AudioFlamingo3Config,
        AudioFlamingo3ForConditionalGeneration,
        AudioFlamingo3Processor,
        Qwen2Tokenizer,
        WhisperFeatureExtractor,
    )

    vocabulary, merges = byte_vocabulary()
    tokenizer = Qwen2Tokenizer(
        vocabulary,
        merges,
        eos_token="<|im_end|>",
        extra_special_tokens={"sound": "<sound>", "im_start": "<|im_start|>"},
    )
    config = AudioFlamingo3Config(
        audio_config={
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
        text_config={
            "model_type": "qwen2",
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "tie_word_embeddings": False,
        },
        audio_token_id=tokenizer.convert_tokens_to_ids("<sound>"),
    )
    model = AudioFlamingo3ForConditionalGeneration(config)
    loud(model, seed)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    AudioFlamingo3Processor(
        WhisperFeatureExtractor(feature_size=128),
        tokenizer,
        chat_template=CHATML.replace("AUDIO_HERE", "<sound>"),
    ).save_pretrained(folder)
