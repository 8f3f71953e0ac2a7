"""MiniCPM-o 2.6: how a prompt is written for it, on a stand-in of its processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from containers.runtime.card import read_card

pytestmark = pytest.mark.models

CARD = Path(__file__).parents[2] / "containers" / "minicpm_o" / "model.toml"


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    from tiny.remote import clips

    return clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture
def adapter():
    from tiny.minicpm_o import adapter

    return adapter(read_card(CARD))


def written(adapter, prompt) -> str:
    """The prompt as the decoder reads it, a run of placeholders as one word."""
    text = adapter.tokenizer.decode(adapter.render(prompt).ids)
    while "<unk><unk>" in text:
        text = text.replace("<unk><unk>", "<unk>")
    return text


def test_a_clip_stands_in_seconds_and_the_answer_begins_in_the_speech_template(adapter, clips):
    from tiny.remote import ask

    prompt = ask(clips, "short", "Rate it, ", "1 to 5.", system="You are a rater.")
    second = "<|audio_start|><unk><|audio_end|>"
    assert written(adapter, prompt) == (
        "<|im_start|>system\nYou are a rater.<|im_end|>\n"
        f"<|im_start|>user\n{second}{second}\nRate it, 1 to 5.<|im_end|>\n"
        "<|im_start|>assistant\n<|spk_bos|><|spk|><|spk_eos|><|tts_bos|>"
    )


def test_25_placeholders_for_each_second(adapter, clips):
    from tiny.remote import ask

    rendered = adapter.render(ask(clips, "long", "?"))
    unknown = adapter.tokenizer.convert_tokens_to_ids("<unk>")
    # 2.9 s are 290 frames of 10 ms, 145 after the convolution, 72 after pooling.
    assert (rendered.ids == unknown).sum() == 72
    # Three begun seconds, each with a mark before and behind.
    (span,) = rendered.spans
    assert span.stop - span.start == 72 + 2 * 3


def test_without_audio_the_vendors_text_template_is_taken(adapter, clips):
    from tiny.remote import ask

    prompt = ask(clips, "Patient: I cannot sleep.", system=None)
    assert written(adapter, prompt) == (
        "<|im_start|>user\nPatient: I cannot sleep.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_clips_of_one_message_are_never_joined_to_one_recording(adapter, clips):
    from tiny.remote import ask

    adapter.render(ask(clips, "short", "and", "long", "Which?"))
    assert [call["parts"] for call in adapter.processor.calls] == [[[0]], [[0]]]
    assert all(call["chunk_input"] is True for call in adapter.processor.calls)


def test_the_mark_that_ends_speech_is_no_part_of_the_answer(adapter):
    ids = adapter.token_ids("Yes") + adapter.token_ids("<|tts_eos|>")
    assert adapter.text(ids) == "Yes"


def test_an_answer_ends_at_either_of_the_vendors_terminators(adapter):
    tokenizer = adapter.tokenizer
    ends = {tokenizer.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>")}
    assert adapter.eos_ids == ends


def test_image_encoder_and_speech_synthesis_stay_on_the_disk(adapter, monkeypatch, tmp_path):
    import transformers

    from containers.minicpm_o import adapter as module

    seen = {}
    report = {"unexpected_keys": ["vpm.encoder.weight", "resampler.query", "tts.emb_text.weight"]}

    def from_pretrained(folder, **options):
        seen.update(options)
        return adapter.model, report

    monkeypatch.setattr(transformers, "__version__", "4.44.2")
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", from_pretrained)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    module.load(read_card(CARD), tmp_path, precision="bf16", device_map="cpu")
    assert (seen["init_vision"], seen["init_audio"], seen["init_tts"]) == (False, True, False)


def test_equal_lengths_share_a_placeholder_and_unequal_ones_do_not(adapter, clips):
    from tiny.remote import ask

    rows = [
        adapter.render(replace(ask(clips, name, "?"), system=None)).spans[0]
        for name in ("long", "other", "short")
    ]
    lengths = [span.stop - span.start for span in rows]
    assert lengths[0] == lengths[1] != lengths[2]
