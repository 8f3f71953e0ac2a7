"""The five models native in transformers, on tiny random checkpoints of their real classes.

What transformers itself gives for a prompt, through its own processor and its
own forward pass or `generate`, is the reference throughout.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.adapter import Clip, LoadError, Prompt, PromptError, Words
from containers.runtime.card import Card, read_card

pytestmark = pytest.mark.models

MODELS = ("qwen2_5_omni", "qwen3_omni", "voxtral", "audio_flamingo_3", "gemma4")
CONTAINERS = Path(__file__).parents[2] / "containers"
YES_NO = {"YES": ("Yes", " Yes"), "NO": ("No", " No")}
TACTICS = {"servant": ("Playing Servant Role",), "victim": ("Playing Victim Role",)}


@dataclass
class Native:
    """One loaded tiny model with clips to ask about."""

    name: str
    card: Card
    weights: Path
    adapter: object
    clips: dict[str, Clip]

    def ask(self, *parts, system="Be brief.", choices=None, max_new_tokens=6, **more) -> Prompt:
        """A prompt of texts and clip names."""
        said = tuple(self.clips.get(part) or Words(part) for part in parts)
        if self.name == "voxtral" and any(isinstance(part, Clip) for part in said):
            system = None
        settings = {"temperature": 0.0, "top_p": 1.0, "seed": 0, **more}
        return Prompt("id", system, said, choices, max_new_tokens, **settings)

    def logits(self, *prompts: Prompt) -> np.ndarray:
        return self.adapter.next_token_logits(prompts)

    def fresh(self):
        """The same model without anything remembered."""
        return type(self.adapter)(self.card, self.adapter.processor, self.adapter.model)

    def vendor_inputs(self, prompt: Prompt):
        """The prompt through the vendor's processor alone."""
        from containers.runtime.transformers_adapter import conversation

        options = {} if self.name == "voxtral" else {"add_generation_prompt": True}
        return self.adapter.processor.apply_chat_template(
            [conversation(prompt)], tokenize=True, return_dict=True, return_tensors="pt", **options
        )


@pytest.fixture(scope="module", params=MODELS)
def native(request, tmp_path_factory) -> Native:
    from tiny.parts import voice, write_clip

    folder = tmp_path_factory.mktemp(request.param)
    weights = folder / "weights"
    importlib.import_module(f"tiny.{request.param}").save(weights)
    card = read_card(CONTAINERS / request.param / "model.toml")
    module = importlib.import_module(f"containers.{request.param}.adapter")
    adapter = module.load(card, weights, precision="fp32", device_map="cpu")
    spoken = {
        "short": voice(1.3, 110, 0),
        "long": voice(2.9, 210, 1),
        "other": voice(2.9, 150, 2),
        "silence": np.zeros(46_400, np.float32),
        "exemplar": voice(1.7, 180, 3),
        "second exemplar": voice(1.1, 130, 4),
    }
    clips = {name: write_clip(folder, name, samples) for name, samples in spoken.items()}
    return Native(request.param, card, weights, adapter, clips)


def test_tokens_and_logits_are_those_of_the_vendors_processor(native):
    import torch

    prompt = native.ask("long", "How distressed is the speaker, 1 to 5?")
    vendor = native.vendor_inputs(prompt)
    with torch.no_grad():
        expected = native.adapter.model(**vendor).logits[0, -1].numpy()
    assert native.adapter.render(prompt).ids.tolist() == vendor["input_ids"][0].tolist()
    np.testing.assert_allclose(native.logits(prompt)[0], expected, atol=1e-5)


def test_a_prompt_without_audio_is_answered_too(native):
    import torch

    prompt = native.ask("Patient: I cannot sleep.", "\nHow distressed, 1 to 5?")
    with torch.no_grad():
        expected = native.adapter.model(**native.vendor_inputs(prompt)).logits[0, -1].numpy()
    np.testing.assert_allclose(native.logits(prompt)[0], expected, atol=1e-5)


def test_a_batch_of_unequal_clips_equals_singles(native):
    prompts = [
        native.ask("short", "Angry?"),
        native.ask("long", "Is the speaker angry or calm?"),
        native.ask("other", "Sad?"),
        native.ask("No audio here: is it sad?"),
    ]
    singles = np.stack([native.fresh().next_token_logits([prompt])[0] for prompt in prompts])
    np.testing.assert_allclose(native.fresh().next_token_logits(prompts), singles, atol=1e-5)


def test_logits_change_between_speech_other_speech_and_silence(native):
    rows = native.logits(*(native.ask(name, "Angry?") for name in ("long", "other", "silence")))
    spread = rows.std()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(rows[one] - rows[other]).max() > 0.01 * spread


def test_label_scores_equal_a_softmax_over_separate_forward_passes(native):
    prompts = [
        native.ask("long", "Manipulated?", choices=YES_NO),
        native.ask("short", "Which tactic is it?", choices=TACTICS),
    ]
    unasked = native.adapter.answer([replace(prompt, choices=None) for prompt in prompts])
    answers = native.adapter.answer(prompts)
    assert [answer.text for answer in answers] == [answer.text for answer in unasked]
    for prompt, answer in zip(prompts, answers, strict=True):
        expected = {
            label: np.logaddexp.reduce([_whole_form(native, prompt, form) for form in forms])
            for label, forms in prompt.choices.items()
        }
        assert answer.choice_logprobs == pytest.approx(expected, abs=1e-4)
        assert answer.choice_mass == pytest.approx(sum(np.exp(list(expected.values()))), abs=1e-6)


def _whole_form(native: Native, prompt: Prompt, form: str) -> float:
    """Log-probability of a surface form after the prompt, one forward pass without a cache."""
    import torch

    inputs = dict(native.vendor_inputs(prompt))
    said = torch.tensor([native.adapter.token_ids(form)])
    length = inputs["input_ids"].shape[1]
    inputs["input_ids"] = torch.cat([inputs["input_ids"], said], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs.pop("mm_token_type_ids", None)
    with torch.no_grad():
        logits = native.adapter.model(**inputs).logits[0, length - 1 : -1]
    return float(torch.log_softmax(logits.double(), -1).gather(1, said.T).sum())


def test_greedy_text_equals_transformers_generate(native):
    prompts = [native.ask("long", "Describe it."), native.ask("short", "And this one, please?")]
    answers = native.adapter.answer([replace(p, max_new_tokens=12) for p in prompts])
    for prompt, answer in zip(prompts, answers, strict=True):
        vendor = native.vendor_inputs(prompt)
        written = native.adapter.model.generate(
            **vendor, max_new_tokens=12, do_sample=False, eos_token_id=list(native.adapter.eos_ids)
        )[0, vendor["input_ids"].shape[1] :]
        assert answer.text == native.adapter.text(written.tolist())
        assert answer.finish_reason == ("length" if len(written) == 12 else "stop")
        assert answer.prompt_tokens == vendor["input_ids"].shape[1]


def test_sampled_text_depends_on_the_requests_own_seed_alone(native):
    sampled = [
        native.ask("long", "Describe it.", temperature=1.0, top_p=0.9, seed=seed)
        for seed in (1, 2, 1)
    ]
    texts = [answer.text for answer in native.adapter.answer(sampled)]
    assert texts[0] == texts[2] == native.adapter.answer(sampled[:1])[0].text
    assert texts[0] != texts[1]


def exemplars(native: Native) -> tuple[str, ...]:
    if native.card.capabilities.clips_per_prompt == 1:
        return (
            "First dialogue: I am fine. ",
            "Answer: No\n",
            "Second: You never listen. ",
            "Yes\n",
        )
    return ("exemplar", "Answer: No\n", "second exemplar", "Answer: Yes\n")


def test_a_shared_prefix_is_read_once_and_changes_no_logit(native):
    shown = exemplars(native)
    prompts = [
        native.ask(*shown, clip, text, prefix_parts=len(shown))
        for clip, text in (("short", "Angry?"), ("long", "Is the speaker calm?"), ("other", "Sad?"))
    ]
    apart = [native.fresh() for _ in prompts]
    expected = [
        one.next_token_logits([replace(prompt, prefix_parts=0)])[0]
        for one, prompt in zip(apart, prompts, strict=True)
    ]
    together = native.fresh()
    first = together.next_token_logits(prompts[:2])
    later = together.next_token_logits(prompts[2:])
    np.testing.assert_allclose(np.concatenate([first, later]), expected, atol=1e-5)
    saved = sum(one.work.prompt_positions for one in apart) - together.work.prompt_positions
    prefix = together.store.get(next(iter(together.store._kept)))[0]
    assert len(prefix) > 20
    assert saved == 2 * len(prefix)


def test_another_exemplar_is_another_prefix(native):
    shown = exemplars(native)
    other = ("other" if "exemplar" in shown[0] else "Another dialogue. ", *shown[1:])
    rows = native.logits(
        native.ask(*shown, "long", "Angry?", prefix_parts=len(shown)),
        native.ask(*other, "long", "Angry?", prefix_parts=len(shown)),
    )
    assert np.abs(rows[0] - rows[1]).max() > 0.01 * rows.std()


def test_two_questions_about_one_clip_encode_and_read_it_once(native):
    audio_only = native.ask("long", "Rate it.", choices=TACTICS)
    with_words = native.ask("long", "They said: I am fine. Rate it.", choices=TACTICS)
    fresh = native.fresh()
    both = fresh.next_token_logits([audio_only, with_words])
    apart = [native.fresh(), native.fresh()]
    expected = [
        one.next_token_logits([prompt])[0]
        for one, prompt in zip(apart, (audio_only, with_words), strict=True)
    ]
    np.testing.assert_allclose(both, expected, atol=1e-5)
    assert fresh.work.encoder_seconds == pytest.approx(2.9)
    spoken = fresh.render(audio_only).spans[0]
    separately = sum(one.work.prompt_positions for one in apart)
    assert separately - fresh.work.prompt_positions >= spoken.stop
    alone = [native.fresh().answer([prompt])[0] for prompt in (audio_only, with_words)]
    for one, other in zip(alone, native.fresh().answer([audio_only, with_words]), strict=True):
        assert one.text == other.text
        assert one.choice_logprobs == pytest.approx(other.choice_logprobs, abs=1e-5)


def test_two_clips_in_a_prompt_are_both_heard_or_refused(native):
    prompt = native.ask("long", "and", "short", "Which one is angry?")
    if native.card.capabilities.clips_per_prompt == 1:
        with pytest.raises(PromptError, match="takes 1 clip"):
            native.logits(prompt)
        return
    prompts = [
        prompt,
        native.ask("other", "and", "short", "Which one is angry?"),
        native.ask("long", "and", "exemplar", "Which one is angry?"),
    ]
    rows = native.fresh().next_token_logits(prompts)
    singles = [native.fresh().next_token_logits([one])[0] for one in prompts]
    np.testing.assert_allclose(rows, singles, atol=1e-5)
    assert np.abs(rows[0] - rows[1]).max() > 0.01 * rows.std()
    assert np.abs(rows[0] - rows[2]).max() > 0.01 * rows.std()
    vendor = native.vendor_inputs(prompt)["input_ids"][0].tolist()
    assert native.adapter.render(prompt).ids.tolist() == vendor


def test_seconds_used_are_seconds_given_up_to_the_models_limit(native):
    for name in ("short", "long"):
        answer = native.adapter.answer([native.ask(name, "Angry?", max_new_tokens=1)])[0]
        assert answer.audio_seconds_used == native.clips[name].seconds
    limit = native.card.capabilities.longest_clip_s
    too_long = np.tile(native.clips["long"].samples, 1 + int((limit or 60) / 2.9))
    clip = Clip("too long", str(native.weights.parent / "too long.wav"), too_long)
    _write(clip)
    used = native.adapter.render(native.ask("Angry?", system=None)).seconds_used
    assert used == 0.0
    used = native.adapter.render(
        replace(native.ask("Angry?"), system=None, parts=(clip,))
    ).seconds_used
    assert used == pytest.approx(limit or clip.seconds, abs=0.05)


def _write(clip: Clip) -> None:
    import soundfile

    soundfile.write(clip.path, clip.samples, 16_000, subtype="FLOAT")


def test_control_tokens_in_a_transcript_stay_words(native):
    audio_token = native.adapter.processor.audio_token
    answer = native.adapter.answer([native.ask("long", f"They said {audio_token} twice.")])[0]
    expected = () if native.name == "voxtral" else ("control_token_in_text",)
    assert answer.fallbacks == expected


def test_it_runs_in_bf16_close_to_float32(native):
    module = importlib.import_module(f"containers.{native.name}.adapter")
    half = module.load(native.card, native.weights, precision="bf16", device_map="cpu")
    prompt = native.ask("long", "Angry?", choices=YES_NO)
    exact = native.logits(prompt)
    assert np.abs(half.next_token_logits([prompt]) - exact).max() < 0.25 * exact.std()
    assert half.answer([prompt])[0].choice_mass > 0


def test_a_missing_unknown_or_misshapen_tensor_is_an_error_that_names_it(native, tmp_path):
    from safetensors.torch import load_file, save_file

    module = importlib.import_module(f"containers.{native.name}.adapter")
    copy = tmp_path / "weights"
    copy.mkdir()
    for path in native.weights.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    tensors = load_file(copy / "model.safetensors")
    gone = next(name for name in tensors if "layers.0.self_attn.q_proj.weight" in name)
    for changed, named in (
        ({k: v for k, v in tensors.items() if k != gone}, "missing keys"),
        ({**tensors, f"{gone}.of_another_model": tensors[gone].clone()}, "unexpected keys"),
        ({**tensors, gone: tensors[gone][:-1].clone()}, "mismatched keys"),
    ):
        save_file(changed, copy / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(LoadError, match=named):
            module.load(native.card, copy, precision="fp32", device_map="cpu")


def test_missing_weights_and_packages_say_how_to_get_them(native, tmp_path):
    module = importlib.import_module(f"containers.{native.name}.adapter")
    with pytest.raises(LoadError, match=f"mlflow run . -e weights -P model={native.name}"):
        module.load(native.card, tmp_path / "none", precision="fp32", device_map="cpu")
    with pytest.raises(LoadError, match="bitsandbytes"):
        module.load(native.card, native.weights, precision="nf4", device_map="cpu")
    with pytest.raises(LoadError, match="finds no GPU"):
        module.load(native.card, native.weights, precision="fp32", device_map="cuda:0")
