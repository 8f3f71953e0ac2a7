"""Sampled answers without sampling passes: seeded draws from one exact distribution.

The distribution of the first answer token is known, so five votes are five draws from it.
Temperature and top-p are applied as Hugging Face's generation does: the labels are the
only tokens (the constraint comes first), then temperature, then top-p.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from core.seeds import points

V = TypeVar("V", bound=Hashable)


def sampling_distribution(
    logprobs: Mapping[str, float], *, temperature: float, top_p: float
) -> dict[str, float]:
    """The probabilities a sampler would draw labels with.

    Args:
        logprobs: label -> log probability, up to a common constant; -inf for none.
        temperature: divides the log probabilities; 0 leaves the likeliest label alone.
        top_p: in (0, 1]. Labels are kept from the likeliest on, until they hold at least
            this much; what is kept sums to 1 again. The likeliest is always kept.

    Returns:
        Label -> probability, in the order given; 0 for labels cut off. Of equally likely
        labels the earlier one counts as likelier.

    Raises:
        ValueError: no label has a probability, or a setting is out of range.

    Source: Holtzman et al. (2020), The curious case of neural text degeneration.
    """
    if temperature < 0 or not 0 < top_p <= 1:
        raise ValueError(
            f"expected temperature >= 0 and 0 < top_p <= 1, found {temperature} and {top_p}."
        )
    found = dict(logprobs)
    if any(map(math.isnan, found.values())) or not any(p > -math.inf for p in found.values()):
        raise ValueError(f"expected a log probability for a label at least, found {found}.")
    # Plain floats: for a dozen labels an array costs ten times its arithmetic.
    likeliest_first = sorted(found, key=found.__getitem__, reverse=True)
    most = found[likeliest_first[0]]
    if temperature == 0:
        kept = {likeliest_first[0]: 1.0}
    else:
        # A tiny temperature sends all but the likeliest to -inf, which is meant.
        weights = {label: math.exp((p - most) / temperature) for label, p in found.items()}
        kept = _nucleus(weights, likeliest_first, top_p)
    held = sum(kept.values())
    return {label: kept.get(label, 0.0) / held for label in found}


def _nucleus(
    weights: Mapping[str, float], likeliest_first: Sequence[str], top_p: float
) -> dict[str, float]:
    total, before = sum(weights.values()), 0.0
    kept: dict[str, float] = {}
    for label in likeliest_first:
        if before >= top_p:
            break
        kept[label] = weights[label]
        before += weights[label] / total
    return kept


def draw(logprobs: Mapping[str, float], *, temperature: float, top_p: float, seed: int) -> str:
    """One label drawn as a sampler would; the same seed draws the same label.

    Args:
        logprobs, temperature, top_p: as in `sampling_distribution`.
        seed: of this draw alone (`core.seeds.seed_of` of run, item and vote).
    """
    return draws(logprobs, temperature=temperature, top_p=top_p, seeds=[seed])[0]


def draws(
    logprobs: Mapping[str, float], *, temperature: float, top_p: float, seeds: Sequence[int]
) -> list[str]:
    """A label for each seed; equal to as many calls of `draw`."""
    shares = sampling_distribution(logprobs, temperature=temperature, top_p=top_p)
    labels = list(shares)
    reached = list(accumulate(shares.values()))
    if max(shares.values()) == reached[-1]:
        # Wherever the draw fell, it would find the only label that is left.
        return [max(shares, key=shares.__getitem__)] * len(seeds)
    return [labels[bisect_right(reached, points(seed, 1)[0] * reached[-1])] for seed in seeds]


def majority(votes: Sequence[V | None]) -> V | None:
    """The value with the most votes; None where there is no vote or the lead is shared.

    Votes of None (a vote without an answer) count for nobody.
    """
    counted = Counter(vote for vote in votes if vote is not None).most_common(2)
    if not counted or (len(counted) == 2 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]
