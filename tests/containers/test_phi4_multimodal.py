"""Phi-4-Multimodal: its layout, its two sets of weights, its two rotary scalings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.adapter import PromptError
from containers.runtime.card import read_card

pytestmark = pytest.mark.models

CARD = Path(__file__).parents[2] / "containers" / "phi4_multimodal" / "model.toml"


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    from tiny.remote import clips

    return clips(tmp_path_factory.mktemp("clips"))


def build(**options):
    from tiny.phi4_multimodal import adapter

    return adapter(read_card(CARD), **options)


def written(adapter, prompt) -> str:
    text = adapter.tokenizer.decode(adapter.render(prompt).ids)
    while "<|endoftext11|><|endoftext11|>" in text:
        text = text.replace("<|endoftext11|><|endoftext11|>", "<|endoftext11|>")
    return text


def test_the_layout_is_the_model_cards(clips):
    from tiny.remote import ask

    adapter = build()
    prompt = ask(clips, "short", "Rate it.", system="You are a rater.")
    assert written(adapter, prompt) == (
        "<|system|>You are a rater.<|end|><|user|><|endoftext11|>Rate it.<|end|><|assistant|>"
    )
    adapter.next_token_logits([prompt])
    assert adapter.processor.texts == [
        "<|system|>You are a rater.<|end|><|user|><|audio_1|>Rate it.<|end|><|assistant|>"
    ]


def test_a_row_for_each_80_ms(clips):
    from tiny.remote import ask

    (span,) = build().render(ask(clips, "long", "?")).spans
    # 2.9 s: 288 windows of 25 ms every 10 ms, 36 rows of eight.
    assert span.stop - span.start == 36


def test_prompts_with_audio_are_read_with_the_speech_weights_and_others_without(clips):
    from tiny.remote import ask

    adapter = build()
    adapter.answer([ask(clips, "long", "Angry?"), ask(clips, "No audio here."), ask(clips, "long")])
    calls = adapter.model.lora.calls
    assert [name for place, name in enumerate(calls) if calls[place - 1 : place] != [name]] == [
        "speech",
        "none",
        "speech",
    ]


def test_nothing_read_with_one_set_of_weights_is_used_with_the_other(clips):
    from tiny.remote import ask

    words_alone = ask(clips, "No audio here.", system="A long system text for both of them.")
    heard = ask(clips, "long", "Angry?", system="A long system text for both of them.")
    expected = build().next_token_logits([words_alone])
    mixed = build()
    mixed.next_token_logits([heard])
    np.testing.assert_allclose(mixed.next_token_logits([words_alone]), expected, atol=1e-5)


def long_rope(turn: int) -> dict:
    """Rotary scaling that changes beyond `turn` positions, as the release's does at 4096."""
    return {
        "original_max_position_embeddings": turn,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10_000.0,
            "short_factor": [1.0] * 4,
            "long_factor": [4.0] * 4,
            "original_max_position_embeddings": turn,
        },
    }


def test_a_long_prompt_is_read_in_one_piece_under_its_own_scaling(clips):
    import torch
    from tiny.remote import ask

    adapter = build(**long_rope(turn=100))
    short = ask(clips, "short", "Angry?", system="Read " * 20)
    long = ask(clips, "short", "Is the speaker angry? " * 8, system="Read " * 20)
    assert len(adapter.render(short).ids) < 160 < len(adapter.render(long).ids)
    adapter = build(**long_rope(turn=160))
    adapter.next_token_logits([short])
    rendered = adapter.render(long)
    inputs = adapter.inputs(rendered, 0, len(rendered.ids))
    adapter.model.set_lora_adapter("speech")
    with torch.no_grad():
        expected = adapter.model.stock(**inputs).logits[0, -1].numpy()
    np.testing.assert_allclose(adapter.next_token_logits([long])[0], expected, atol=1e-5)


def test_an_answer_that_would_cross_the_change_of_scaling_is_refused(clips):
    from tiny.remote import ask

    prompt = ask(clips, "short", "Angry?", max_new_tokens=2)
    length = len(build().render(prompt).ids)
    adapter = build(**long_rope(turn=length + 2))
    assert len(adapter.answer([prompt])) == 1
    with pytest.raises(PromptError, match=f"{length} positions and 3 for its answer"):
        adapter.answer([replace(prompt, max_new_tokens=3)])


def test_each_clip_is_encoded_as_if_it_were_alone(clips):
    from tiny.remote import ask

    adapter = build()
    pair = adapter.render(ask(clips, "short", "and", "long", "?"))
    alone = type(adapter)(adapter.card, adapter.processor, adapter.model)
    single = alone.render(ask(clips, "short", "?"))
    both, one = (
        model.inputs(rendered, rendered.spans[0].start, rendered.spans[0].stop)["inputs_embeds"]
        for model, rendered in ((adapter, pair), (alone, single))
    )
    np.testing.assert_array_equal(both.detach().numpy(), one.detach().numpy())


def test_it_is_asked_one_prompt_at_a_time():
    card = read_card(CARD)
    assert not card.capabilities.batch
    assert card.budget.items == 1


def test_it_loads_with_eager_attention(clips, tmp_path, monkeypatch):
    import transformers

    from containers.phi4_multimodal import adapter as module

    built = build()
    seen = {}

    def from_pretrained(folder, **options):
        seen.update(options)
        return built.model, {}

    monkeypatch.setattr(transformers, "__version__", "4.48.2")
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", from_pretrained)
    monkeypatch.setattr(
        transformers.AutoProcessor, "from_pretrained", lambda *_, **__: built.processor
    )
    for name in ("config.json", "model-00001-of-00003.safetensors"):
        (tmp_path / name).write_text("{}")
    module.load(read_card(CARD), tmp_path, precision="bf16", device_map="cpu")
    assert seen["_attn_implementation"] == "eager"
