"""The model of seeded draws: the same on every repeat, another for every seed, and cheap."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from containers.null.adapter import NullAdapter
from containers.runtime.adapter import Clip, Prompt, Words
from containers.runtime.canary import check_hearing
from containers.runtime.card import read_card

NOISE = np.random.default_rng(0).normal(0, 0.1, 48_000).astype("f4")
ASKED = Prompt(
    "q",
    None,
    (Clip("a.wav", "a.wav", NOISE), Words("Rate.")),
    {level: (level, f" {level}") for level in "12345"},
    8,
    0.0,
    1.0,
    seed=1,
)


def logprobs(prompt: Prompt) -> list[float]:
    return list(NullAdapter(0).answer([prompt])[0].choice_logprobs.values())


def test_a_draw_is_a_distribution_and_the_text_its_likeliest_label():
    (answer,) = NullAdapter(0).answer([ASKED])
    assert abs(sum(np.exp(list(answer.choice_logprobs.values()))) - 1) < 1e-12
    assert answer.text == max(answer.choice_logprobs, key=answer.choice_logprobs.get)


def test_the_draw_depends_on_seed_words_and_samples_and_on_nothing_else():
    silence = Clip("a.wav", "a.wav", np.zeros_like(NOISE))
    assert logprobs(ASKED) == logprobs(replace(ASKED, id="another"))
    others = [
        replace(ASKED, seed=2),
        replace(ASKED, parts=(silence, *ASKED.parts[1:])),
        replace(ASKED, parts=(ASKED.parts[0], Words("Judge."))),
    ]
    assert len({tuple(logprobs(prompt)) for prompt in (ASKED, *others)}) == 4


def test_over_many_seeds_no_label_is_preferred():
    texts = [
        NullAdapter(0).answer([replace(ASKED, seed=seed, parts=())])[0].text
        for seed in range(2_000)
    ]
    shares = [texts.count(level) / len(texts) for level in "12345"]
    # Four standard deviations of a share of 0.2 in 2,000 draws.
    assert max(abs(share - 0.2) for share in shares) < 0.036


def test_a_batch_equals_its_singles():
    batch = [replace(ASKED, seed=seed) for seed in range(3)]
    assert NullAdapter(0).answer(batch) == [NullAdapter(0).answer([p])[0] for p in batch]


def test_it_takes_the_canary_like_any_model(tmp_path):
    check_hearing(NullAdapter(0), ASKED, [], tmp_path)


def test_it_can_be_slowed_down():
    started = time.perf_counter()
    NullAdapter(0.02).answer([ASKED, ASKED])
    assert time.perf_counter() - started >= 0.04


def test_free_text_is_words():
    (answer,) = NullAdapter(0).answer([replace(ASKED, choices=None)])
    assert (answer.text.isalpha(), answer.choice_logprobs) == (True, None)


def test_its_card_says_that_it_understands_nothing():
    card = read_card(Path(__file__).parents[2] / "containers/null/model.toml")
    assert "understands nothing" in " ".join(card.notes)
