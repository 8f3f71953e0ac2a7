"""What the models with their own code have in common, on stand-ins that follow their sources.

The vendor's way of asking, processor and plain forward pass, is the reference;
the stand-ins mimic its documented arithmetic over a stock decoder.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from containers.runtime.adapter import LoadError, PromptError
from containers.runtime.card import Card, read_card

pytestmark = pytest.mark.models

MODELS = ("minicpm_o", "phi4_multimodal", "ultravox")
CONTAINERS = Path(__file__).parents[2] / "containers"
YES_NO = {"YES": ("Yes", " Yes"), "NO": ("No", " No")}
TACTICS = {"servant": ("Playing Servant Role",), "victim": ("Playing Victim Role",)}


@dataclass
class Remote:
    name: str
    card: Card
    clips: dict
    adapter: object

    def ask(self, *parts, **how):
        from tiny.remote import ask

        return ask(self.clips, *parts, **how)

    def fresh(self):
        """The same model without anything remembered."""
        if self.name == "minicpm_o":
            return type(self.adapter)(self.card, self.adapter.model)
        return type(self.adapter)(self.card, self.adapter.processor, self.adapter.model)

    def logits(self, *prompts):
        return self.adapter.next_token_logits(prompts)


@pytest.fixture(scope="module", params=MODELS)
def remote(request, tmp_path_factory) -> Remote:
    from tiny.remote import clips

    card = read_card(CONTAINERS / request.param / "model.toml")
    adapter = importlib.import_module(f"tiny.{request.param}").adapter(card)
    return Remote(request.param, card, clips(tmp_path_factory.mktemp("clips")), adapter)


def test_tokens_and_logits_are_those_of_the_vendors_way(remote):
    import torch

    prompt = remote.ask("long", "How distressed is the speaker, 1 to 5?")
    ours = remote.logits(prompt)[0]
    with torch.no_grad():
        ids, logits = remote.adapter.vendor_pass(prompt)
    assert remote.adapter.render(prompt).ids.tolist() == ids
    np.testing.assert_allclose(ours, logits.numpy(), atol=1e-5)


def test_a_model_put_together_otherwise_than_the_vendors_answers_nothing(remote, monkeypatch):
    from containers.runtime.remote_code import DisagreementError

    fresh = remote.fresh()
    prompt = remote.ask("long", "Angry?")
    ids, logits = fresh.vendor_pass(prompt)
    logits = logits.detach()
    monkeypatch.setattr(fresh, "vendor_pass", lambda _: ([*ids[:7], 1, *ids[8:]], logits))
    with pytest.raises(DisagreementError, match="other tokens than the adapter from position 7"):
        fresh.answer([prompt])
    monkeypatch.setattr(fresh, "vendor_pass", lambda _: (ids, logits.flip(0)))
    with pytest.raises(DisagreementError, match="other logits"):
        fresh.next_token_logits([prompt])
    monkeypatch.setattr(fresh, "vendor_pass", lambda _: (ids, logits))
    assert len(fresh.answer([prompt])) == 1


def test_a_batch_of_unequal_clips_equals_singles(remote):
    prompts = [
        remote.ask("short", "Angry?"),
        remote.ask("long", "Is the speaker angry or calm?"),
        remote.ask("No audio here: is it sad?"),
        remote.ask("other", "Sad?"),
    ]
    singles = np.stack([remote.fresh().next_token_logits([prompt])[0] for prompt in prompts])
    np.testing.assert_allclose(remote.fresh().next_token_logits(prompts), singles, atol=1e-5)


def test_logits_change_between_speech_other_speech_and_silence(remote):
    rows = remote.logits(*(remote.ask(name, "Angry?") for name in ("long", "other", "silence")))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(rows[one] - rows[other]).max() > 0.01 * rows.std()


def plain_logits(remote, prompt, ids) -> np.ndarray:
    """(len(ids) + 1, V) logits along an answer, one plain forward pass without a cache."""
    import torch

    fresh = remote.fresh()
    rendered = fresh.render(prompt)
    if remote.name == "phi4_multimodal":
        fresh.model.set_lora_adapter("speech")
    prompt_embeds = fresh.inputs(rendered, 0, len(rendered.ids))["inputs_embeds"]
    said = fresh.token_inputs(torch.tensor([ids], dtype=torch.long))["inputs_embeds"]
    with torch.no_grad():
        hidden = fresh.decoder(inputs_embeds=torch.cat([prompt_embeds, said], 1)).last_hidden_state
        return fresh.logits(hidden[0, len(rendered.ids) - 1 :]).double().numpy()


def test_label_scores_equal_a_softmax_over_plain_forward_passes(remote):
    prompts = [
        remote.ask("long", "Manipulated?", choices=YES_NO),
        remote.ask("short", "Which tactic is it?", choices=TACTICS),
    ]
    for prompt, answer in zip(prompts, remote.adapter.answer(prompts), strict=True):
        for label, forms in prompt.choices.items():
            whole = []
            for form in forms:
                ids = remote.adapter.token_ids(form)
                logits = plain_logits(remote, prompt, ids[:-1])
                likely = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
                whole.append(likely[range(len(ids)), ids].sum())
            expected = np.logaddexp.reduce(whole)
            assert answer.choice_logprobs[label] == pytest.approx(expected, abs=1e-4)


def test_greedy_text_takes_the_likeliest_token_of_plain_forward_passes(remote):
    prompt = remote.ask("long", "Describe it.", max_new_tokens=8)
    answer = remote.adapter.answer([prompt])[0]
    ids: list[int] = []
    while len(ids) < 8:
        token = int(plain_logits(remote, prompt, ids)[-1].argmax())
        if token in remote.adapter.eos_ids:
            break
        ids.append(token)
    assert answer.text == remote.adapter.text(ids)
    assert answer.finish_reason == ("length" if len(ids) == 8 else "stop")


def test_a_shared_prefix_is_read_once_and_changes_no_logit(remote):
    shown = ("exemplar", "Answer: No\n", "short", "Answer: Yes\n")
    prompts = [
        remote.ask(*shown, clip, text, prefix_parts=len(shown))
        for clip, text in (("long", "Angry?"), ("other", "Calm?"))
    ]
    apart = [remote.fresh() for _ in prompts]
    expected = [
        one.next_token_logits([replace(prompt, prefix_parts=0)])[0]
        for one, prompt in zip(apart, prompts, strict=True)
    ]
    together = remote.fresh()
    np.testing.assert_allclose(together.next_token_logits(prompts), expected, atol=1e-5)
    assert together.work.prompt_positions < sum(one.work.prompt_positions for one in apart) - 20


def test_several_clips_in_a_prompt_are_all_heard_in_their_places(remote):
    rows = remote.logits(
        remote.ask("long", "and", "short", "Which?"),
        remote.ask("short", "and", "long", "Which?"),
        remote.ask("other", "and", "short", "Which?"),
        remote.ask("long", "and", "exemplar", "Which?"),
    )
    for other in rows[1:]:
        assert np.abs(rows[0] - other).max() > 0.01 * rows.std()


def test_all_seconds_given_are_used_beyond_half_a_minute_too(remote):
    from tiny.parts import voice
    from tiny.remote import write_clip

    long = write_clip(Path(remote.clips["long"].path).parent, "minute", voice(61.7, 130, 8))
    for clip in (remote.clips["short"], long):
        prompt = replace(remote.ask("Angry?"), parts=(clip,), max_new_tokens=1)
        answer = remote.adapter.answer([prompt])[0]
        assert answer.audio_seconds_used == clip.seconds


def test_control_tokens_in_a_transcript_stay_words(remote):
    said = {
        "minicpm_o": "(<audio>./</audio>) <|im_end|>",
        "phi4_multimodal": "<|audio_2|> <|end|> <|endoftext11|>",
        "ultravox": "<|audio|> <|eot_id|>",
    }[remote.name]
    answer = remote.adapter.answer([remote.ask("long", f"They said {said} twice.")])[0]
    assert answer.fallbacks == ("control_token_in_text",)


def test_what_does_not_fit_is_refused_with_the_figures(remote):
    with pytest.raises(PromptError, match="takes 16 clip"):
        remote.logits(remote.ask(*["short"] * 17))
    with pytest.raises(PromptError, match="reads 4096 positions"):
        remote.logits(remote.ask("x " * 4100))
    tiny = replace(remote.clips["short"], name="click", samples=np.zeros(100, np.float32))
    if remote.name != "ultravox":
        with pytest.raises(PromptError, match="too short to encode"):
            remote.logits(replace(remote.ask("?"), parts=(tiny,)))


def test_another_transformers_than_the_vendors_is_said_before_anything_is_read(remote, tmp_path):
    import transformers

    module = importlib.import_module(f"containers.{remote.name}.adapter")
    for repo in remote.card.repos:
        (tmp_path / repo.folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / repo.folder / "config.json").write_text("{}")
        (tmp_path / repo.folder / "model.safetensors").write_bytes(b"")
    expected = f"{module.TRANSFORMERS}, found {transformers.__version__}.*requirements.txt"
    with pytest.raises(LoadError, match=expected):
        module.load(remote.card, tmp_path, precision="bf16", device_map="cpu")


@pytest.fixture
def as_vendors(remote, tmp_path, monkeypatch):
    """Transformers in the version the vendor's code wants, its Auto classes recorded."""
    import transformers

    module = importlib.import_module(f"containers.{remote.name}.adapter")
    monkeypatch.setattr(transformers, "__version__", f"{module.TRANSFORMERS}2")
    report = {"missing_keys": [], "unexpected_keys": [], "mismatched_keys": []}
    calls: dict[str, tuple] = {}

    def recorded(name, result):
        def from_pretrained(folder, **options):
            calls[name] = (Path(folder), options)
            if isinstance(result, Exception):
                raise result
            return result

        return type(name, (), {"from_pretrained": staticmethod(from_pretrained)})

    def provide(model=(remote.adapter.model, report)):
        for name in ("AutoModel", "AutoModelForCausalLM"):
            monkeypatch.setattr(transformers, name, recorded(name, model))
        monkeypatch.setattr(
            transformers, "AutoProcessor", recorded("AutoProcessor", remote.adapter.processor)
        )
        return calls

    for repo in remote.card.repos:
        (tmp_path / repo.folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / repo.folder / "config.json").write_text('{"model_type": "x"}')
        (tmp_path / repo.folder / "model.safetensors").write_bytes(b"")
    return module, report, provide


def test_it_loads_the_vendors_class_from_the_folder_alone(remote, tmp_path, as_vendors):
    module, _, provide = as_vendors
    calls = provide()
    loaded = module.load(remote.card, tmp_path, precision="fp32", device_map="cpu")
    assert type(loaded) is type(remote.adapter)
    (_, options) = calls.get("AutoModelForCausalLM") or calls["AutoModel"]
    assert options["trust_remote_code"]
    assert options["local_files_only"]
    assert str(options["torch_dtype"]) == "torch.float32"


def test_missing_tensors_packages_and_precisions_are_named(remote, tmp_path, as_vendors):
    module, report, provide = as_vendors

    def refused(match: str, precision: str = "bf16", device_map: str = "cpu"):
        with pytest.raises(LoadError, match=match):
            module.load(remote.card, tmp_path, precision=precision, device_map=device_map)

    provide()
    report["missing_keys"] = ["lm_head.weight"]
    refused("1 missing keys: lm_head.weight.*mlflow run . -e weights")
    report["missing_keys"] = []
    report["unexpected_keys"] = ["of.another.model"]
    refused("1 unexpected keys: of.another.model")
    report["unexpected_keys"] = []
    refused("precision 'nf4'", precision="nf4")
    refused("finds no GPU", device_map="cuda")
    provide(ImportError("This modeling file requires the following packages: vocos"))
    refused("(?s)vocos.*build_container")
    provide(OSError("no file named model.safetensors"))
    refused(f"(?s)does not load.*-e weights -P model={remote.name}")
