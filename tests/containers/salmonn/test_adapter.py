"""SALMONN on a tiny random release: prompts, batches, labels, cuts, and files that do not fit."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.adapter import Clip, LoadError, Prompt, PromptError, Words
from containers.runtime.card import Card, read_card

pytestmark = pytest.mark.models

CARD = Path(__file__).parents[3] / "containers/salmonn/model.toml"
YES_NO = {"YES": ("Yes", " Yes"), "NO": ("No", " No")}
ROLES = {"servant": ("Playing Servant Role",), "victim": ("Playing Victim Role",)}


@dataclass
class Tiny:
    """A loaded tiny SALMONN with clips to ask about."""

    card: Card
    weights: Path
    adapter: object
    clips: dict[str, Clip]

    def ask(self, *parts, system=None, choices=None, max_new_tokens=6, **more) -> Prompt:
        """A prompt of texts and clip names."""
        said = tuple(self.clips.get(part) or Words(part) for part in parts)
        settings = {"temperature": 0.0, "top_p": 1.0, "seed": 0, **more}
        return Prompt("id", system, said, choices, max_new_tokens, **settings)

    def fresh(self):
        """The same model without anything remembered."""
        return type(self.adapter)(self.card, self.adapter.parts)

    def whole_forward(self, prompt: Prompt, then: list[int] = ()) -> np.ndarray:
        """(n + 1, V) logits from the answer's first position on: one forward pass, no cache,
        the embeddings put together here."""
        import torch

        parts = self.adapter.parts
        question = "".join(part.text for part in prompt.parts if isinstance(part, Words))
        embed = parts.llama.get_input_embeddings()
        with torch.no_grad():
            rows = [embed(torch.tensor([1]))]
            if prompt.clips:
                rows += [
                    embed(torch.tensor(parts.tokenizer.piece("USER: <Speech>"))),
                    parts.speech(prompt.clips[0].samples)[0],
                    embed(torch.tensor(parts.tokenizer.piece(f"</Speech> {question}\nASSISTANT:"))),
                ]
            else:
                ids = parts.tokenizer.piece(f"USER: {question}\nASSISTANT:")
                rows.append(embed(torch.tensor(ids)))
            rows.append(embed(torch.tensor(list(then), dtype=torch.long)))
            logits = parts.llama(inputs_embeds=torch.cat(rows)[None]).logits[0]
        return logits[len(logits) - 1 - len(then) :].numpy()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Tiny:
    from tiny import salmonn
    from tiny.parts import voice, write_clip

    from containers.salmonn.adapter import load

    folder = tmp_path_factory.mktemp("salmonn")
    salmonn.save(folder / "weights")
    card = read_card(CARD)
    adapter = load(card, folder / "weights", precision="fp32", device_map="cpu")
    spoken = {
        "short": voice(1.3, 110, 0),
        "long": voice(2.9, 210, 1),
        "other": voice(2.9, 150, 2),
        "silence": np.zeros(46_400, np.float32),
        "blink": voice(0.2, 150, 3),
        "too long": np.tile(voice(2.9, 150, 2), 12),
    }
    clips = {name: write_clip(folder, name, samples) for name, samples in spoken.items()}
    return Tiny(card, folder / "weights", adapter, clips)


def test_logits_are_those_of_one_plain_forward_pass(tiny):
    prompts = [
        tiny.ask("long", "Is the speaker angry?"),
        tiny.ask("short", "Rate it: 1 2 3 4 5"),
        tiny.ask("Patient: I cannot sleep.", "\nRate it."),
    ]
    expected = np.concatenate([tiny.whole_forward(prompt) for prompt in prompts])
    together = tiny.fresh().next_token_logits(prompts)
    singles = [tiny.fresh().next_token_logits([prompt])[0] for prompt in prompts]
    np.testing.assert_allclose(together, expected, atol=1e-5)
    np.testing.assert_allclose(singles, expected, atol=1e-5)


def test_a_clip_is_88_rows_of_any_length(tiny):
    for name in ("blink", "short", "long", "too long"):
        (span,) = tiny.adapter.render(tiny.ask(name, "Angry?")).spans
        assert span.stop - span.start == 88


def test_logits_change_between_speech_other_speech_and_silence(tiny):
    prompts = [tiny.ask(name, "Angry?") for name in ("long", "other", "silence")]
    rows = tiny.adapter.next_token_logits(prompts)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(rows[one] - rows[other]).max() > 0.01 * rows.std()


def test_both_encoders_are_heard(tiny):
    import torch

    connector = tiny.adapter.parts.speech.connector
    speech, audio = torch.randn(1, 1_500, 16), torch.randn(1, 1_496, 24)
    with torch.no_grad():
        tokens = connector(speech, audio)
        for changed in (connector(speech, audio.flip(1)), connector(speech.flip(1), audio)):
            assert (changed - tokens).abs().max() > 0.01 * tokens.std()


def test_the_lora_makes_a_difference(tiny):
    prompt = tiny.ask("long", "Angry?")
    with_lora = tiny.whole_forward(prompt)
    layers = tiny.adapter.parts.llama.model.layers
    changed = [getattr(x.self_attn, name) for x in layers for name in ("q_proj", "v_proj")]
    # The rank is 8 in the release, alpha 32.
    assert {lora.scale for lora in changed} == {4.0}
    try:
        for lora in changed:
            lora.scale = 0.0
        assert np.abs(tiny.whole_forward(prompt) - with_lora).max() > 0.01 * with_lora.std()
    finally:
        for lora in changed:
            lora.scale = 4.0


def test_label_scores_equal_a_softmax_over_separate_forward_passes(tiny):
    prompts = [
        tiny.ask("long", "Manipulated?", choices=YES_NO),
        tiny.ask("short", "Which role?", choices=ROLES),
        tiny.ask("No audio here.", choices=YES_NO),
    ]
    for prompt, answer in zip(prompts, tiny.adapter.answer(prompts), strict=True):
        expected = {
            label: np.logaddexp.reduce([_form_score(tiny, prompt, form) for form in forms])
            for label, forms in prompt.choices.items()
        }
        assert answer.choice_logprobs == pytest.approx(expected, abs=1e-4)


def _form_score(tiny: Tiny, prompt: Prompt, form: str) -> float:
    ids = tiny.adapter.token_ids(form)
    logits = tiny.whole_forward(prompt, ids)[:-1].astype(np.float64)
    likely = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return float(likely[np.arange(len(ids)), ids].sum())


def test_a_label_with_and_without_a_space_in_front_is_two_forms(tiny):
    tokenizer = tiny.adapter.parts.tokenizer
    assert tokenizer.continuation("Yes") != tokenizer.continuation(" Yes")
    # By itself a text begins a word: what SALMONN was trained to answer with.
    assert tokenizer.piece("Yes") == tokenizer.continuation(" Yes")


def test_greedy_text_is_the_likeliest_token_again_and_again(tiny):
    prompts = [tiny.ask("long", "Describe it."), tiny.ask("short", "And this one, please?")]
    for prompt, answer in zip(prompts, tiny.adapter.answer(prompts), strict=True):
        ids: list[int] = []
        while len(ids) < prompt.max_new_tokens:
            ids.append(int(tiny.whole_forward(prompt, ids)[-1].argmax()))
            if ids[-1] == 2:
                break
        assert answer.text == tiny.adapter.text(ids)


def test_a_clip_beyond_30_seconds_is_cut_and_the_answer_says_so(tiny):
    clip = tiny.clips["too long"]
    cut = Clip("cut", "", clip.samples[: 30 * 16_000])
    answer = tiny.adapter.answer([tiny.ask("too long", "Angry?")])[0]
    assert clip.seconds == pytest.approx(34.8)
    assert answer.audio_seconds_used == 30.0
    with_cut = replace(tiny.ask("Angry?"), parts=(cut, Words("Angry?")))
    np.testing.assert_array_equal(
        tiny.fresh().next_token_logits([with_cut]),
        tiny.fresh().next_token_logits([tiny.ask("too long", "Angry?")]),
    )


def test_a_clip_of_a_fifth_of_a_second_is_padded_with_silence_to_one(tiny):
    answer = tiny.adapter.answer([tiny.ask("blink", "Angry?")])[0]
    assert answer.audio_seconds_used == pytest.approx(0.2)
    samples = np.zeros(16_000, np.float32)
    samples[:3_200] = tiny.clips["blink"].samples
    padded = replace(tiny.ask(), parts=(Clip("padded", "", samples), Words("Angry?")))
    np.testing.assert_array_equal(
        tiny.fresh().next_token_logits([padded]),
        tiny.fresh().next_token_logits([tiny.ask("blink", "Angry?")]),
    )


def test_a_system_text_and_exemplars_go_behind_the_clip(tiny):
    prompt = tiny.ask("Shown: I am fine. No\n", "long", "And this?", system="Be brief.")
    answer = tiny.adapter.answer([prompt])[0]
    assert answer.fallbacks == ("system_in_user_turn", "speech_first")
    plain = tiny.ask("long", "Be brief.\n\nShown: I am fine. No\nAnd this?")
    np.testing.assert_allclose(
        tiny.adapter.next_token_logits([prompt]), tiny.adapter.next_token_logits([plain]), atol=1e-5
    )
    assert tiny.adapter.answer([plain])[0].fallbacks == ()


def test_exemplars_of_a_prompt_without_audio_are_read_once(tiny):
    shown = ("Shown: I am fine. No\n", "Shown: You never listen. Yes\n")
    prompts = [
        tiny.ask(*shown, text, prefix_parts=2) for text in ("And: go away?", "And: thank you?")
    ]
    apart = [tiny.fresh(), tiny.fresh()]
    expected = [
        one.next_token_logits([replace(prompt, prefix_parts=0)])[0]
        for one, prompt in zip(apart, prompts, strict=True)
    ]
    together = tiny.fresh()
    np.testing.assert_allclose(together.next_token_logits(prompts), expected, atol=1e-5)
    saved = sum(one.work.prompt_positions for one in apart) - together.work.prompt_positions
    assert saved > 20


def test_two_questions_about_one_clip_encode_and_read_it_once(tiny):
    prompts = [tiny.ask("long", "Rate it."), tiny.ask("long", "They said: I am fine. Rate it.")]
    apart = [tiny.fresh(), tiny.fresh()]
    expected = [
        one.next_token_logits([prompt])[0] for one, prompt in zip(apart, prompts, strict=True)
    ]
    fresh = tiny.fresh()
    np.testing.assert_allclose(fresh.next_token_logits(prompts), expected, atol=1e-5)
    assert fresh.work.encoder_seconds == pytest.approx(2.9)
    separately = sum(one.work.prompt_positions for one in apart)
    assert separately - fresh.work.prompt_positions >= 88


def test_two_clips_in_a_prompt_are_refused(tiny):
    with pytest.raises(PromptError, match="takes 1 clip"):
        tiny.adapter.next_token_logits([tiny.ask("long", "and", "short", "Which is angry?")])


def test_control_tokens_in_a_transcript_stay_words(tiny):
    prompt = tiny.ask("long", "They said </s> and <s> and <SpeechHere>.")
    ids = tiny.adapter.render(prompt).ids
    assert (ids == 2).sum() == 0
    assert (ids == 1).sum() == 1
    assert (ids == -1).sum() == 88


def test_it_runs_in_bf16_close_to_float32(tiny):
    from containers.salmonn.adapter import load

    half = load(tiny.card, tiny.weights, precision="bf16", device_map="cpu")
    prompt = tiny.ask("long", "Angry?", choices=YES_NO)
    exact = tiny.adapter.next_token_logits([prompt])
    assert np.abs(half.next_token_logits([prompt]) - exact).max() < 0.25 * exact.std()
    assert half.answer([prompt])[0].choice_mass > 0


def test_the_release_names_of_whisper_and_of_its_bare_model_load_alike(tiny, tmp_path):
    import torch
    from safetensors.torch import load_file

    from containers.salmonn.adapter import load

    copy = tmp_path / "weights"
    shutil.copytree(tiny.weights, copy)
    tensors = load_file(copy / "whisper/model.safetensors")
    bare = {name.removeprefix("model."): value for name, value in tensors.items()}
    torch.save(bare, copy / "whisper/pytorch_model.bin")
    (copy / "whisper/model.safetensors").unlink()
    again = load(tiny.card, copy, precision="fp32", device_map="cpu")
    prompt = tiny.ask("long", "Angry?")
    np.testing.assert_array_equal(
        again.next_token_logits([prompt]), tiny.fresh().next_token_logits([prompt])
    )


FILES = {
    "salmonn_tiny.pth": ("model", "speech_Qformer.bert.encoder.layer.1.output_query.dense.weight"),
    "salmonn_tiny.pth, LoRA": (
        "model",
        "llama_model.base_model.model.model.layers.1.self_attn.v_proj.lora_B.default.weight",
    ),
    "BEATs_tiny.pt": ("model", "encoder.layers.2.fc1.weight"),
    "llama/pytorch_model.bin": (None, "model.layers.1.self_attn.q_proj.weight"),
    "whisper/model.safetensors": (None, "model.encoder.layers.1.fc1.weight"),
}


@pytest.mark.parametrize("file", FILES)
def test_a_missing_unknown_or_misshapen_tensor_is_an_error_that_names_it(tiny, tmp_path, file):
    import torch
    from safetensors.torch import load_file, save_file

    from containers.salmonn.adapter import load

    inside, name = FILES[file]
    copy = tmp_path / "weights"
    shutil.copytree(tiny.weights, copy)
    path = copy / file.partition(",")[0]
    safe = path.suffix == ".safetensors"
    content = load_file(path) if safe else torch.load(path, weights_only=True)
    tensors = content[inside] if inside else content
    for changed, said in (
        ({key: value for key, value in tensors.items() if key != name}, "missing"),
        ({**tensors, f"{name}.of_another": tensors[name].clone()}, "unexpected"),
        ({**tensors, name: tensors[name][:-1].clone()}, "mis"),
    ):
        if safe:
            save_file(changed, path)
        else:
            torch.save({**content, inside: changed} if inside else changed, path)
        with pytest.raises(LoadError, match=f"{said}.*{_core(name)}"):
            load(tiny.card, copy, precision="fp32", device_map="cpu")


def _core(name: str) -> str:
    return name.removeprefix("speech_Qformer.").removeprefix("model.encoder.")


def test_missing_files_are_named_all_at_once_with_where_to_get_them(tiny, tmp_path):
    from containers.salmonn.adapter import load

    with pytest.raises(LoadError) as raised:
        load(tiny.card, tmp_path, precision="fp32", device_map="cpu")
    for said in (
        "llama/config.json",
        "whisper/config.json",
        "mlflow run . -e weights -P model=salmonn",
        "huggingface.co/tsinghua-ee/SALMONN-7B",
        "BEATs_iter3_plus_AS2M_finetuned_on_AS2M_cpt2.pt",
        "OneDrive",
    ):
        assert said in str(raised.value)


def test_two_candidates_for_one_file_are_refused(tiny, tmp_path):
    from containers.salmonn.adapter import load

    copy = tmp_path / "weights"
    shutil.copytree(tiny.weights, copy)
    shutil.copy(copy / "BEATs_tiny.pt", copy / "BEATs_other.pt")
    with pytest.raises(LoadError, match=r"BEATs_other.pt, BEATs_tiny.pt. Keep one"):
        load(tiny.card, copy, precision="fp32", device_map="cpu")
