"""Five votes on YES or NO, each with the path it was reached by.

- letters: drawn from the exact distribution over A and B at the first answer token, with
  temperature and top-p applied; five draws are five votes, at one request.
- words: the letters could not be used, so YES iff p(YES) > p(NO) over the verbalizers. There
  is no draw in that rule: its five votes agree.
- text: no probabilities at all, or a chain of thought; what the text states.

Source: SpeechMentalManip, section 4.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.detection.questions import TEMPERATURE, TOP_P, VOTES, letters
from core.parsing import Parsed, verdict, yes_no
from core.predictions import Outcome, distribution, unusable
from core.protocol import Response
from core.seeds import seed_of
from core.tasks import PlannedRequest
from core.votes import draws, majority

LABELS = ("YES", "NO")
_ANSWER = re.compile(r"\banswer\W{0,4}:", re.IGNORECASE)
MASS_FLOOR = 1 - TOP_P
"""Least probability of A and B together at which votes are drawn from it: 0.05.

Below it both letters may lie outside the nucleus of top-p 0.95, so a sampler without
the constraint would never say one, and their ratio is about words the model does not mean.
"""


@dataclass(frozen=True)
class Verdict:
    """What became of one dialogue in one condition.

    Attributes:
        prediction: the majority, or None.
        votes: YES, NO or None each; empty where nothing usable came back.
        paths: letters, words or text, one a vote.
        shares: label -> probability, exact and before temperature; empty where none is known.
        expected: p(YES); the share of YES among votes where only votes are known.
        position_bias: p(YES) with Yes as A minus with Yes as B; NaN where not asked.
    """

    prediction: str | None
    status: str
    reason: str | None
    votes: tuple[str | None, ...] = ()
    paths: tuple[str, ...] = ()
    shares: Mapping[str, float] | None = None
    expected: float = math.nan
    position_bias: float = math.nan


def judge(
    entries: Sequence[PlannedRequest], responses: Mapping[str, Response], *, swapped: bool
) -> Verdict:
    """The verdict on one dialogue from all that was asked about it.

    Args:
        entries: of one item and condition.
        swapped: whether A stands for No in the request of purpose "answer".
    """
    asked = {entry.purpose: entry for entry in entries if entry.purpose != "vote"}
    if "answer" not in asked:
        return _from_texts([e for e in entries if e.purpose == "vote"], responses, swapped)
    first = asked["answer"]
    response = responses.get(first.request.id)
    if fault := unusable(response):
        return Verdict(None, fault.status, fault.reason)
    assert response is not None
    orders = [
        responses.get(asked[name].request.id) for name in ("answer", "swapped") if name in asked
    ]
    if all(letters_usable(each) for each in orders):
        return _drawn(orders, first.request.seed)
    if "words" in asked:
        return _from_words(responses.get(asked["words"].request.id))
    return _stated(verdict(response.text, letters(swapped=swapped), cut=_cut(response)))


def letters_usable(response: Response | None) -> bool:
    """Whether votes may be drawn from its distribution over A and B."""
    if response is None or unusable(response) or not distribution(response, LABELS):
        return False
    return response.choice_mass is None or response.choice_mass >= MASS_FLOOR


def needs_words(entries: Sequence[PlannedRequest], responses: Mapping[str, Response]) -> bool:
    """Whether the letters were answered and cannot be used, and words were not asked yet."""
    found = {e.purpose: responses.get(e.request.id) for e in entries if e.purpose != "vote"}
    if "answer" not in found or "words" in found or unusable(found["answer"]):
        return False
    return not all(letters_usable(found[name]) for name in ("answer", "swapped") if name in found)


def _drawn(orders: Sequence[Response | None], seed: int) -> Verdict:
    each = [distribution(response, LABELS) for response in orders]
    # Both orders count alike, so that what favours the first option cancels.
    shares = {label: sum(one[label] for one in each) / len(each) for label in LABELS}
    votes = _votes(shares["YES"], shares["NO"], seed)
    return Verdict(
        prediction=majority(votes),
        status="ok",
        reason=None,
        votes=votes,
        paths=("letters",) * VOTES,
        shares=shares,
        expected=shares["YES"],
        position_bias=each[0]["YES"] - each[1]["YES"] if len(each) == 2 else math.nan,
    )


def _votes(yes: float, no: float, seed: int) -> tuple[str, ...]:
    logs = {label: math.log(p) if p else -math.inf for label, p in (("YES", yes), ("NO", no))}
    seeds = [seed_of(seed, "vote", str(vote)) for vote in range(VOTES)]
    return tuple(draws(logs, temperature=TEMPERATURE, top_p=TOP_P, seeds=seeds))


def _from_words(response: Response | None) -> Verdict:
    if fault := unusable(response):
        return Verdict(None, fault.status, fault.reason)
    assert response is not None
    if response.choice_mass == 0:
        return Verdict(None, "unparsed", "no probability on a letter, nor on yes or no")
    if not (shares := distribution(response, LABELS)):
        return _stated(yes_no(response.text, cut=_cut(response)))
    vote = "YES" if shares["YES"] > shares["NO"] else "NO"
    return Verdict(vote, "ok", None, (vote,) * VOTES, ("words",) * VOTES, shares, shares["YES"])


def _stated(parsed: Parsed[str]) -> Verdict:
    if parsed.value is None:
        return Verdict(None, parsed.status, parsed.reason)
    return Verdict(parsed.value, "ok", None, (parsed.value,) * VOTES, ("text",) * VOTES)


def _from_texts(
    entries: Sequence[PlannedRequest], responses: Mapping[str, Response], swapped: bool
) -> Verdict:
    ordered = sorted(entries, key=lambda each: each.vote)
    read = [_conclusion(responses.get(entry.request.id), swapped) for entry in ordered]
    votes = tuple(each.value for each in read)
    given = [vote for vote in votes if vote is not None]
    if not given:
        return Verdict(None, read[0].status, read[0].reason, votes, ("text",) * len(votes))
    winner = majority(votes)
    return Verdict(
        prediction=winner,
        status="ok" if winner else "unparsed",
        reason=None if winner else f"as many votes for YES as for NO: {given.count('YES')}",
        votes=votes,
        paths=("text",) * len(votes),
        expected=given.count("YES") / len(given),
    )


def _conclusion(response: Response | None, swapped: bool) -> Outcome:
    """The vote of a chain of thought: its last "Answer:" line, or the whole text."""
    if fault := unusable(response):
        return fault
    assert response is not None
    *_, last = _ANSWER.split(response.text)
    said = f"Answer: {last.strip()}" if _ANSWER.search(response.text) else response.text
    parsed = verdict(said, letters(swapped=swapped), cut=_cut(response))
    return Outcome(parsed.status, parsed.reason, parsed.value)


def _cut(response: Response) -> bool:
    return response.finish_reason == "length"
