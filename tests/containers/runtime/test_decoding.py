"""Picking tokens and reading labels: what needs no model beyond its tokenizer."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from containers.runtime.adapter import PromptError

pytestmark = pytest.mark.models


class Letters:
    """A vocabulary of single characters."""

    def token_ids(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


def draws(probabilities: list[float], times: int = 4000, **how) -> Counter:
    import torch

    from containers.runtime.decoding import Sampling, next_token

    logits = torch.tensor([math.log(p) for p in probabilities])
    generator = torch.Generator().manual_seed(7)
    sampling = Sampling(max_new_tokens=1, **how)
    return Counter(next_token(logits, sampling, generator) for _ in range(times))


def test_temperature_zero_takes_the_likeliest_token():
    assert draws([0.2, 0.5, 0.3], times=5, temperature=0.0) == {1: 5}


def test_draws_follow_the_distribution_at_temperature_one():
    found = draws([0.2, 0.5, 0.3], temperature=1.0)
    # Three standard errors of a share of 0.5 in 4000 draws: 0.024.
    assert found[1] / 4000 == pytest.approx(0.5, abs=0.024)
    assert found[0] / 4000 == pytest.approx(0.2, abs=0.024)


def test_temperature_sharpens_before_top_p_cuts():
    # At temperature 0.5 shares are squared: 4 : 25 : 9 of 38, so 25 and 9 make 0.89.
    found = draws([0.2, 0.5, 0.3], temperature=0.5, top_p=0.85)
    assert set(found) == {1, 2}
    assert found[1] / 4000 == pytest.approx(25 / 34, abs=0.024)


def test_top_p_keeps_the_token_that_crosses_it_and_at_least_one():
    assert set(draws([0.2, 0.5, 0.3], temperature=1.0, top_p=0.6)) == {1, 2}
    assert set(draws([0.2, 0.5, 0.3], temperature=1.0, top_p=0.01)) == {1}


def test_a_form_that_begins_with_another_of_its_label_counts_once():
    from containers.runtime.decoding import label_forms

    forms = label_forms(Letters(), {"yes": ("ye", "yes", "Y"), "no": ("no",)})
    assert forms["yes"] == ((ord("Y"),), (ord("y"), ord("e")))


def test_labels_that_begin_with_each_other_are_refused_by_name():
    from containers.runtime.decoding import label_forms

    with pytest.raises(PromptError, match="'10' and '1'"):
        label_forms(Letters(), {"1": ("1",), "10": ("10",)})
    with pytest.raises(PromptError, match="has no tokens"):
        label_forms(Letters(), {"1": ("",)})
