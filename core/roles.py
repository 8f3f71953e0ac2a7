"""Who is the therapist and who the patient, told from what anonymous speakers say.

Four cues, each a log-odds with limits, add up to a confidence; under a threshold the
answer is refused, and somebody has to listen. Nothing leaves the machine.

Source: CBT-Audio, section 3, asks Claude Sonnet 4.5 "based on conversational content and
turn-taking patterns"; these cues are our own, and their rates are set by hand, not fitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from core.turns import OTHER, PATIENT, THERAPIST

LEAST_CONFIDENCE = 0.9
# With less than this share of the words somebody is an announcer or a slip of the diarizer.
LEAST_SHARE = 0.05
# No cue alone may decide: a patient may ask a great deal, a therapist tell a story.
MOST_LOG_ODDS = 2.0
# The cues are not independent: whoever asks also says "you". Half of their sum is believed.
BELIEVED = 0.5

# (of a therapist, of a patient): how often a sentence is a question; how often a pronoun
# is "you" rather than "I"; how often a telling phrase is one of the first list.
QUESTION_RATES = (0.40, 0.08)
YOU_RATES = (0.65, 0.15)
PHRASE_RATES = (0.85, 0.15)

_YOU = re.compile(r"\b(?:you|your|yours|yourself|you're|you've|you'd|you'll)\b", re.I)
_I = re.compile(r"\b(?:i|me|my|mine|myself|i'm|i've|i'd|i'll)\b", re.I)
_OF_THERAPIST = re.compile(
    r"\b(?:how (?:did|does|do) (?:that|it|you)|what (?:went|goes|was going) through|"
    r"what (?:would|could|might) you|what do you (?:think|make|notice)|let's|let us|"
    r"i wonder|i'm wondering|i hear|sounds like|it seems|on a scale|from (?:zero|0|one|1) to|"
    r"evidence|homework|thought record|take a (?:deep )?breath|good to see you|"
    r"tell me|can you (?:tell|say|describe)|this week we|next (?:week|session))\b",
    re.I,
)
_OF_PATIENT = re.compile(
    r"\b(?:i (?:feel|felt|can't|cannot|couldn't|just|don't know|guess|keep|kept|hate|tried)|"
    r"i'm (?:so|just|not|scared|afraid|worried|tired)|my (?:husband|wife|mother|mom|mum|father|"
    r"dad|boss|sister|brother|son|daughter|friend|friends|kids|heart|head|chest|stomach))\b",
    re.I,
)
_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


@dataclass(frozen=True)
class Roles:
    """The roles of a recording's speakers.

    Attributes:
        of: speaker -> therapist, patient or other; empty where the answer is refused.
        confidence: in [0, 1], that therapist and patient are these two; not calibrated on
            sessions. NaN where there is nothing to choose.
        refused: why there is no answer, or None.
        notes: what was odd, e.g. further speakers.
        cues: speaker -> log-odds of being the therapist, in all and by cue.
        by: who says so: "offline", or a model's name.
    """

    of: Mapping[str, str]
    confidence: float
    refused: str | None
    notes: tuple[str, ...]
    cues: Mapping[str, Mapping[str, float]]
    by: str = "offline"


def roles(turns: pd.DataFrame, least_confidence: float = LEAST_CONFIDENCE) -> Roles:
    """Roles by the cues.

    Args:
        turns: of one recording, columns `speaker` and `text` at least.
        least_confidence: under this the answer is refused.
    """
    said = {str(name): list(group["text"]) for name, group in turns.groupby("speaker", sort=True)}
    words = {name: sum(len(text.split()) for text in texts) for name, texts in said.items()}
    total = sum(words.values())
    major = [name for name in said if words[name] >= LEAST_SHARE * total and words[name] > 0]
    cues = {name: _cues(name, {one: said[one] for one in major}) for name in major}
    notes = _notes(said, words, major, total)
    if len(major) < 2:
        reason = f"expected two speakers, found {len(major)} with 5 % of the words or more"
        return Roles({}, float("nan"), reason, notes, cues)
    odds = {name: sum(of.values()) for name, of in cues.items()}
    therapist, patient, confidence = _likeliest(odds)
    if odds[patient] > 0:
        notes += (f"{patient}, the likeliest patient, speaks more like a therapist",)
    if odds[therapist] < 0:
        notes += (f"{therapist}, the likeliest therapist, speaks more like a patient",)
    if confidence < least_confidence:
        reason = (
            f"{therapist} as the therapist and {patient} as the patient has a confidence of "
            f"{confidence:.2f}, under {least_confidence:g}"
        )
        return Roles({}, confidence, reason, notes, cues)
    of = dict.fromkeys(said, OTHER) | {therapist: THERAPIST, patient: PATIENT}
    return Roles(of, confidence, None, notes, cues)


def _likeliest(odds: Mapping[str, float]) -> tuple[str, str, float]:
    """Therapist, patient, and the probability of the pair among all pairs of these speakers."""
    pairs = list(permutations(odds, 2))
    scores = np.array([BELIEVED * (odds[one] - odds[other]) / 2 for one, other in pairs])
    shares = np.exp(scores - scores.max())
    best = int(np.argmax(shares))
    return (*pairs[best], float(shares[best] / shares.sum()))


def _cues(name: str, said: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Log-odds of being the therapist, by cue."""
    text = " ".join(said[name]).replace("’", "'")
    sentences = [one for one in _SENTENCE.findall(text) if re.search(r"\w", one)]
    questions = sum(one.rstrip().endswith("?") for one in sentences)
    you, i = len(_YOU.findall(text)), len(_I.findall(text))
    own, others = len(_OF_THERAPIST.findall(text)), len(_OF_PATIENT.findall(text))
    lengths = {one: np.mean([len(turn.split()) for turn in turns]) for one, turns in said.items()}
    rest = [length for one, length in lengths.items() if one != name]
    # A patient's turns are the longer ones; twice as long is worth half a nat to each.
    longer = float(np.log(np.mean(rest) / lengths[name])) * 0.7 if rest else 0.0
    return {
        "questions": _log_odds(questions, len(sentences) - questions, QUESTION_RATES),
        "pronouns": _log_odds(you, i, YOU_RATES),
        "phrases": _log_odds(own, others, PHRASE_RATES),
        "turn_length": float(np.clip(longer, -1.0, 1.0)),
    }


def _log_odds(yes: int, no: int, rates: tuple[float, float]) -> float:
    therapist, patient = rates
    odds = yes * np.log(therapist / patient) + no * np.log((1 - therapist) / (1 - patient))
    return float(np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS))


def _notes(
    said: Mapping[str, Sequence[str]], words: Mapping[str, int], major: Sequence[str], total: int
) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if len(said) == 1:
        notes += ("one speaker",)
    if len(said) > 2:
        shares = ", ".join(f"{name} {words[name] / max(total, 1):.0%}" for name in said)
        notes += (f"{len(said)} speakers, words: {shares}",)
    if minor := [name for name in said if name not in major]:
        notes += (f"hardly heard, so neither therapist nor patient: {', '.join(minor)}",)
    return notes
