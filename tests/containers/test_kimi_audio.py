"""Kimi-Audio: messages, two streams, one prefill; on a stand-in of the vendor's package."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.adapter import LoadError, PromptError
from containers.runtime.card import read_card

pytestmark = pytest.mark.models

CARD = Path(__file__).parents[2] / "containers" / "kimi_audio" / "model.toml"
YES_NO = {"YES": ("Yes", " Yes"), "NO": ("No", " No")}


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    from tiny.remote import clips

    return clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture
def adapter():
    from tiny.kimi_audio import model

    from containers.kimi_audio.adapter import KimiAudio

    return KimiAudio(read_card(CARD), model())


@pytest.fixture
def ask(clips):
    from tiny.remote import ask

    def asked(*parts, **how):
        return ask(clips, *parts, **{"system": None, **how})

    return asked


def test_a_prompt_becomes_the_vendors_messages_in_its_own_order(adapter, ask, clips):
    adapter.next_token_logits([ask("Listen. ", "short", "Rate it, ", "1 to 5.")])
    assert adapter.model.prompt_manager.messages == [
        [
            {"role": "user", "message_type": "text", "content": "Listen. "},
            {"role": "user", "message_type": "audio", "content": clips["short"].path},
            {"role": "user", "message_type": "text", "content": "Rate it, 1 to 5."},
        ]
    ]


def plain_logits(adapter, prompt, ids) -> np.ndarray:
    """(len(ids) + 1, V) text logits along an answer, one forward pass without a cache."""
    import torch

    from containers.kimi_audio.adapter import messages

    content = adapter.model.prompt_manager.get_prompt(messages(prompt))
    audio, text, continuous = content.to_tensor()
    length = audio.shape[1]
    blank = torch.full((1, len(ids)), adapter.tokens.kimia_text_blank)
    said = torch.tensor([ids], dtype=torch.long)
    _, logits, _ = adapter.model.alm.forward(
        input_ids=torch.cat([audio, blank], 1),
        text_input_ids=torch.cat([text, said], 1),
        whisper_input_feature=content.continuous_feature,
        is_continuous_mask=torch.cat([continuous, torch.zeros(1, len(ids)).bool()], 1),
        position_ids=torch.arange(length + len(ids))[None],
        past_key_values=None,
        return_dict=False,
    )
    return logits[0, length - 1 :].double().numpy()


def test_first_logits_are_those_of_the_text_head(adapter, ask):
    prompt = ask("long", "Angry?")
    np.testing.assert_allclose(
        adapter.next_token_logits([prompt])[0], plain_logits(adapter, prompt, [])[0], atol=1e-5
    )


def test_label_scores_equal_a_softmax_over_plain_forward_passes(adapter, ask):
    prompt = ask("long", "Manipulated?", choices=YES_NO)
    answer = adapter.answer([prompt])[0]
    for label, forms in YES_NO.items():
        whole = []
        for form in forms:
            ids = list(form.encode())
            logits = plain_logits(adapter, prompt, ids[:-1])
            likely = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
            whole.append(likely[range(len(ids)), ids].sum())
        assert answer.choice_logprobs[label] == pytest.approx(np.logaddexp.reduce(whole), abs=1e-4)
    expected = sum(np.exp(list(answer.choice_logprobs.values())))
    assert answer.choice_mass == pytest.approx(expected)


def test_greedy_text_takes_the_likeliest_text_token_beside_blank_audio(adapter, ask):
    prompt = ask("long", "Describe it.", max_new_tokens=8)
    answer = adapter.answer([prompt])[0]
    ids: list[int] = []
    while len(ids) < 8:
        token = int(plain_logits(adapter, prompt, ids)[-1].argmax())
        if token in adapter.eos_ids:
            break
        ids.append(token)
    assert answer.text == adapter.model.detokenize_text(ids)
    assert answer.finish_reason == ("length" if len(ids) == 8 else "stop")


def test_labels_and_text_start_from_one_prefill(adapter, ask):
    prompt = ask("long", "Manipulated?", choices=YES_NO, max_new_tokens=1)
    length = adapter.answer([prompt])[0].prompt_tokens
    assert adapter.work.prompt_positions == length
    prefills = [new for before, new in adapter.model.alm.calls if before == 0]
    assert prefills == [length]
    assert all(before == length for before, _ in adapter.model.alm.calls[1:])


def test_logits_change_between_speech_other_speech_and_silence(adapter, ask):
    rows = adapter.next_token_logits([ask(name, "Angry?") for name in ("long", "other", "silence")])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(rows[one] - rows[other]).max() > 0.01 * rows.std()


def test_a_prompt_without_audio_and_one_with_two_clips_are_answered_too(adapter, ask):
    answers = adapter.answer([ask("No audio here."), ask("short", "and", "long", "Which?")])
    assert answers[0].audio_seconds_used == 0
    assert answers[1].audio_seconds_used == pytest.approx(1.3 + 2.9)


def test_audio_the_tokenizer_dropped_is_not_counted_as_used(adapter, ask, monkeypatch):
    from tiny import kimi_audio

    whole = kimi_audio._tokenized
    monkeypatch.setattr(kimi_audio, "_tokenized", lambda s: tuple(x[:10] for x in whole(s)))
    assert adapter.answer([ask("long", "Angry?")])[0].audio_seconds_used == pytest.approx(0.8)


def test_sampled_text_depends_on_the_requests_own_seed_alone(adapter, ask):
    sampled = [ask("long", "Describe.", temperature=1.0, seed=seed) for seed in (1, 2, 1)]
    texts = [answer.text for answer in adapter.answer(sampled)]
    assert texts[0] == texts[2] != texts[1]


def test_more_than_8192_positions_are_refused_with_the_figures(adapter, ask):
    with pytest.raises(PromptError, match=r"reads 8192 positions; this prompt takes 83\d\d"):
        adapter.next_token_logits([ask("x" * 8300)])


def test_a_system_text_that_was_not_moved_is_refused(adapter, ask):
    with pytest.raises(PromptError, match="no system role"):
        adapter.next_token_logits([ask("short", system="Be brief.")])
    assert not read_card(CARD).capabilities.system_prompt


def test_the_runtime_moves_the_system_text_and_records_it(clips):
    from containers.runtime.prompts import prompt_of
    from core.protocol import Request

    request = Request("id", "Be brief.", ({"audio": "short.wav"}, {"text": "?"}), None)
    prompt, fallbacks = prompt_of(
        request, {"short.wav": clips["short"]}, read_card(CARD).capabilities
    )
    assert prompt.system is None
    assert prompt.parts[0].text == "Be brief.\n\n"
    assert fallbacks == ("system_in_user_turn",)


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """The vendor's package, importable for one test."""
    from tiny.kimi_audio import package

    package(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("kimia_infer")]:
        del sys.modules[name]


def test_its_hub_tokenizer_is_a_local_folder_and_nothing_that_makes_sound_is_loaded(vendors):
    from containers.kimi_audio.adapter import vendor_model

    here = Path.cwd()
    weights, tokenizer = vendors / "kimi-audio", vendors / "glm-4-voice-tokenizer"
    model = vendor_model(read_card(CARD), weights, tokenizer)
    assert model.model_path == str(weights)
    assert model.tokenizer.path == str(tokenizer)
    assert model.load_detokenizer is False
    assert Path.cwd() == here
    assert not (here / "kimia_audio.log").exists()


def test_a_missing_package_names_the_vendors_image(tmp_path):
    from containers.kimi_audio.adapter import vendor_model

    with pytest.raises(
        LoadError, match=r"(?s)kimia_infer comes with the vendor's image.*build_cont"
    ):
        vendor_model(read_card(CARD), tmp_path, tmp_path)


def test_another_package_than_the_one_it_was_written_for_is_said(vendors):
    from containers.kimi_audio.adapter import vendor_model

    (vendors / "site" / "kimia_infer" / "api" / "prompt_manager.py").write_text("")
    with pytest.raises(LoadError, match="not the one the adapter was written for"):
        vendor_model(read_card(CARD), vendors, vendors)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"precision": "fp32", "device_map": "auto"}, "bf16 alone, not 'fp32'"),
        ({"precision": "bf16", "device_map": "cpu"}, "first NVIDIA GPU only; device_map 'cpu'"),
    ],
)
def test_what_the_vendors_code_does_not_run_on_is_refused(tmp_path, how, match):
    from containers.kimi_audio.adapter import load

    with pytest.raises(LoadError, match=match):
        load(read_card(CARD), tmp_path, **how)


def test_sound_makers_are_not_fetched():
    from fnmatch import fnmatch

    patterns = read_card(CARD).repos[0].files
    fetched = ("config.json", "model-1-of-36.safetensors", "tiktoken.model", "whisper-large-v3/x")
    left = ("audio_detokenizer/model.pt", "vocoder/model.pt")
    assert all(any(fnmatch(name, p) for p in patterns) for name in fetched)
    assert not any(fnmatch(name, p) for p in patterns for name in left)


def test_a_batch_is_its_prompts_one_by_one(adapter, ask):
    prompts = [ask("short", "Angry?"), ask("long", "Is the speaker angry or calm?")]
    singles = [adapter.next_token_logits([replace(prompt)])[0] for prompt in prompts]
    np.testing.assert_array_equal(adapter.next_token_logits(prompts), singles)
