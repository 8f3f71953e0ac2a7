"""SALMONN in small, in the layout of its four releases, with random weights."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tiny.parts import loud

BEATS_CFG = {
    "input_patch_size": 16,
    "embed_dim": 12,
    "conv_bias": False,
    "encoder_layers": 3,
    "encoder_embed_dim": 24,
    "encoder_ffn_embed_dim": 40,
    "encoder_attention_heads": 3,
    "activation_fn": "gelu",
    "layer_norm_first": False,
    "deep_norm": True,
    "conv_pos": 8,
    "conv_pos_groups": 4,
    "relative_position_embedding": True,
    "num_buckets": 32,
    "max_distance": 60,
    "gru_rel_pos": True,
    "finetuned_model": True,
    "predictor_class": 5,
    "dropout": 0.1,
}
WORDS = (
    "USER: <Speech> </Speech> ASSISTANT: Yes No A B 1 2 3 4 5 Is the speaker angry? Playing Role"
)


def save(folder: Path, *, hidden: int = 32, layers: int = 2, seed: int = 0) -> None:
    """Write the weights folder; `hidden` and `layers` are the decoder's."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    folder.mkdir(parents=True)
    _save_llama(folder / "llama", hidden, layers, seed)
    _save_whisper(folder / "whisper", seed)
    cfg = BEATS_CFG
    torch.save({"cfg": cfg, "model": released_beats(cfg, drawn)}, folder / "BEATs_tiny.pt")
    trained = _trained(hidden, layers, lambda *shape: torch.randn(shape, generator=generator))
    torch.save({"model": trained}, folder / "salmonn_tiny.pth")
    (folder / "bert-base-uncased").mkdir()
    (folder / "bert-base-uncased/config.json").write_text(json.dumps({"num_attention_heads": 2}))


def drawn(name: str, shape: tuple[int, ...]):
    """Values that depend on the name alone, at a scale where every part matters."""
    import torch

    values = np.random.default_rng(sum(name.encode())).standard_normal(shape)
    if name.endswith("norm.weight"):
        values = 1 + 0.2 * values
    elif name == "table":
        values = 4 * values
    else:
        values = (0.1 if name.endswith("bias") else 0.5) * values
    return torch.from_numpy(values.astype(np.float32))


def released_beats(cfg: dict, draw: Callable) -> dict:
    """Tensors under the names of a fine-tuned BEATs release."""
    width, inner, heads = (
        cfg[f"encoder_{part}"] for part in ("embed_dim", "ffn_embed_dim", "attention_heads")
    )
    shapes: dict[str, tuple[int, ...]] = {
        "patch_embedding.weight": (cfg["embed_dim"], 1, 16, 16),
        "layer_norm.weight": (cfg["embed_dim"],),
        "layer_norm.bias": (cfg["embed_dim"],),
        "post_extract_proj.weight": (width, cfg["embed_dim"]),
        "post_extract_proj.bias": (width,),
        "encoder.layer_norm.weight": (width,),
        "encoder.layer_norm.bias": (width,),
        "encoder.pos_conv.0.weight_g": (1, 1, cfg["conv_pos"]),
        "encoder.pos_conv.0.weight_v": (width, width // cfg["conv_pos_groups"], cfg["conv_pos"]),
        "encoder.pos_conv.0.bias": (width,),
        "predictor.weight": (5, width),
        "predictor.bias": (5,),
    }
    for layer in (f"encoder.layers.{number}." for number in range(cfg["encoder_layers"])):
        for norm in ("self_attn_layer_norm", "final_layer_norm"):
            shapes |= {f"{layer}{norm}.weight": (width,), f"{layer}{norm}.bias": (width,)}
        for name, out, given in (
            *((f"self_attn.{part}_proj", width, width) for part in ("q", "k", "v", "out")),
            ("self_attn.grep_linear", 8, width // heads),
            ("fc1", inner, width),
            ("fc2", width, inner),
        ):
            shapes |= {f"{layer}{name}.weight": (out, given), f"{layer}{name}.bias": (out,)}
        shapes[f"{layer}self_attn.grep_a"] = (1, heads, 1, 1)
        shapes[f"{layer}self_attn.relative_attention_bias.weight"] = (cfg["num_buckets"], heads)
    return {
        name: draw("table" if "relative_attention_bias" in name else name, shape)
        for name, shape in shapes.items()
    }


def _save_llama(folder: Path, hidden: int, layers: int, seed: int) -> None:
    import sentencepiece
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=340,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        minloglevel=2,
    )
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    config = LlamaConfig(
        vocab_size=340,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        rms_norm_eps=1e-5,
    )
    llama = LlamaForCausalLM(config)
    loud(llama, seed)
    config.save_pretrained(folder)
    weights = {name: value.half() for name, value in llama.state_dict().items()}
    for number in range(layers):
        name = f"model.layers.{number}.self_attn.rotary_emb.inv_freq"
        weights[name] = torch.ones(hidden // 4)
    torch.save(weights, folder / "pytorch_model.bin")


def _save_whisper(folder: Path, seed: int) -> None:
    from safetensors.torch import save_file
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=64,
        d_model=16,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    whisper = WhisperForConditionalGeneration(config)
    loud(whisper, seed)
    config.save_pretrained(folder)
    weights = {k: v.contiguous() for k, v in whisper.state_dict().items() if k != "proj_out.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _trained(hidden: int, layers: int, randn: Callable) -> dict:
    """What SALMONN's training changed, under the names of its release."""
    width, inner, whisper, beats, rank = 32, 48, 16, BEATS_CFG["encoder_embed_dim"], 8
    norms = {"ln_speech": whisper, "ln_audio": beats}
    dense = {"speech_llama_proj": (hidden, width)}
    norms["speech_Qformer.bert.embeddings.LayerNorm"] = width
    for layer in (f"speech_Qformer.bert.encoder.layer.{number}." for number in range(2)):
        for attention, seen in (("attention", width), ("crossattention", whisper + beats)):
            for part, given in (("query", width), ("key", seen), ("value", seen)):
                dense[f"{layer}{attention}.self.{part}"] = (width, given)
            dense[f"{layer}{attention}.output.dense"] = (width, width)
            norms[f"{layer}{attention}.output.LayerNorm"] = width
        dense[f"{layer}intermediate_query.dense"] = (inner, width)
        dense[f"{layer}output_query.dense"] = (width, inner)
        norms[f"{layer}output_query.LayerNorm"] = width
    tensors = {"speech_query_tokens": randn(1, 1, width)}
    for name, (out, given) in dense.items():
        tensors[f"{name}.weight"] = randn(out, given) * 1.5 / given**0.5
        tensors[f"{name}.bias"] = randn(out) * 0.1
    for name, size in norms.items():
        tensors[f"{name}.weight"] = 1 + 0.2 * randn(size)
        tensors[f"{name}.bias"] = randn(size) * 0.1
    for number in range(layers):
        for target in ("q_proj", "v_proj"):
            place = f"llama_model.base_model.model.model.layers.{number}.self_attn.{target}.lora_"
            tensors[f"{place}A.default.weight"] = randn(rank, hidden) / hidden**0.5
            tensors[f"{place}B.default.weight"] = randn(hidden, rank) * 0.1
    return tensors
