"""Which tactic: five passes over exact probabilities, under the study's rules.

The study scores the options "by first-token probabilities" in each of five sampled passes.
Those probabilities are a property of the prompt, so as written all five passes are one.
What sampling can change is which options a pass finds on top: here a pass draws the options
one after the other, without putting back, from the distribution that temperature 0.6 and
top-p 0.95 leave. The first drawn is its top option and the second its runner-up; margins and
means are of the exact probabilities. At temperature 0 each pass is the ranking itself.

Probabilities are over the twelve options (they sum to 1), so that the study's margins of
0.03 and 0.02 mean the same for every model. The study is silent on a tie without "none": the
higher mean probability wins it, and of equal ones the earlier of the list.

Source: SpeechMentalManip, section 4.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.detection.questions import TEMPERATURE, TOP_P, VOTES
from core.predictions import distribution, unusable
from core.protocol import Response
from core.seeds import points, seed_of
from core.votes import sampling_distribution

NONE = "none"
LEAST_MARGIN = 0.03
LEAST_LEAD_OVER_NONE = 0.02


@dataclass(frozen=True)
class Tactic:
    """What was named; `reason` where nothing could be.

    Attributes:
        votes: one a pass; a single one where the tactic was read from text.
        path: "probabilities" or "text", "" where nothing was named.
        shares: option -> exact probability over the options; empty where not known.
    """

    named: str | None
    reason: str | None = None
    votes: tuple[str, ...] = ()
    path: str = ""
    shares: Mapping[str, float] | None = None


def name_tactic(response: Response | None, options: Sequence[str], *, seed: int) -> Tactic:
    """The tactic of one dialogue.

    Args:
        options: tactics and "none", as the request had them.
        seed: of the request.
    """
    if fault := unusable(response):
        return Tactic(None, fault.reason)
    assert response is not None
    if response.choice_mass == 0:
        return Tactic(None, "no probability on any tactic")
    shares = distribution(response, options)
    if not shares:
        return _stated(response.text, options)
    seeds = [seed_of(seed, "pass", str(number)) for number in range(VOTES)]
    votes = tuple(vote_of(order, shares) for order in orders(shares, seeds=seeds))
    return Tactic(decided(votes, [shares] * VOTES), None, votes, "probabilities", shares)


def orders(
    shares: Mapping[str, float],
    *,
    seeds: Sequence[int],
    temperature: float = TEMPERATURE,
    top_p: float = TOP_P,
) -> list[list[str]]:
    """All options in the order of each pass: those drawn, then the others by probability.

    Args:
        shares: option -> probability.
        seeds: one a pass.
    """
    logs = {option: math.log(p) if p else -math.inf for option, p in shares.items()}
    kept = sampling_distribution(logs, temperature=temperature, top_p=top_p)
    weights = [math.log(p) if p else -math.inf for p in kept.values()]
    if sum(p > 0 for p in kept.values()) == 1:
        # Noise cannot put anything before the only option that is left.
        return [_by_key(dict(zip(shares, weights, strict=True)), shares) for _ in seeds]
    found = []
    for seed in seeds:
        # The largest of log p + Gumbel noise is a draw by p; in order, draws without putting back.
        noise = (-math.log(-math.log(point)) for point in points(seed, len(shares)))
        drawn = {
            option: weight + by for option, weight, by in zip(shares, weights, noise, strict=True)
        }
        found.append(_by_key(drawn, shares))
    return found


def _by_key(drawn: Mapping[str, float], shares: Mapping[str, float]) -> list[str]:
    return sorted(shares, key=lambda option: (drawn[option], shares[option]), reverse=True)


def vote_of(order: Sequence[str], shares: Mapping[str, float]) -> str:
    """The vote of a pass: the top option, or the second best if it is none or hardly ahead.

    Args:
        order: options as the pass found them, at least two.
        shares: their probabilities.
    """
    top, second = order[:2]
    margin = shares[top] - shares[second]
    return second if top == NONE or margin < LEAST_MARGIN else top


def decided(votes: Sequence[str], passes: Sequence[Mapping[str, float]]) -> str:
    """The majority of the passes, ties with none resolved by mean probability.

    Args:
        votes: one a pass.
        passes: each pass's probabilities.
    """
    counted = Counter(votes)
    most = max(counted.values())
    order = list(passes[0])
    tied = sorted((vote for vote, count in counted.items() if count == most), key=order.index)
    if len(tied) == 1:
        return tied[0]
    means = {vote: sum(shares[vote] for shares in passes) / len(passes) for vote in tied}
    best = max((vote for vote in tied if vote != NONE), key=lambda vote: means[vote])
    if NONE in tied and means[best] - means[NONE] < LEAST_LEAD_OVER_NONE:
        return NONE
    return best


def _stated(text: str, options: Sequence[str]) -> Tactic:
    """An endpoint without probabilities: the one option its text names."""
    said = text.casefold()
    found = [option for option in options if option.casefold() in said]
    # "none" is an everyday word too; beside a tactic it names nothing.
    found = [option for option in found if option != NONE] or found
    if len(found) != 1:
        reason = f"{len(found)} tactics in its text" if found else "no tactic in its text"
        return Tactic(None, reason)
    return Tactic(found[0], None, (found[0],), "text")
