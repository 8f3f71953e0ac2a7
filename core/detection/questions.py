"""The requests about one dialogue, all behind one opening that they share.

What comes first (definitions if asked for, then the exemplars) is equal for every question
of a condition, so a runtime reads it once; the dialogue follows, then the question.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import pandas as pd

from core.metrics.tactics import TACTICS, gold_tactics
from core.modality import assert_modality
from core.prompts import Template, fill, template
from core.protocol import Part, Request, request_id
from core.seeds import seed_of
from core.tasks import PlannedRequest, TaskError

PROMPTS = ("few_shot", "zero_shot", "definitions", "cot")
VOTES = 5
TEMPERATURE, TOP_P = 0.6, 0.95
"""Of the votes and of the tactic's passes: SpeechMentalManip, section 4.1."""

MOST_WORDS = 12
QUOTE_TOKENS = 48
TACTIC_TOKENS = 16
WORDS_TOKENS = 8
"""Room for what is asked for and a little more, so that an answer in a sentence is seen whole."""

WORD_FORMS: Mapping[str, tuple[str, ...]] = {
    label: tuple(
        f"{space}{form}" for form in (label, label.title(), label.lower()) for space in ("", " ")
    )
    for label in ("YES", "NO")
}
"""The verbalizers: each label's surface forms, whose probabilities are added up."""

SERVANT_OR_VICTIM = "Playing Servant or Victim Role"
"""Two tactics that begin with the same word; by that word alone they are one."""

_LISTED = "\n".join(f"- {tactic}" for tactic in (*TACTICS, "none"))

Row = Mapping[Hashable, Any]


@dataclass(frozen=True)
class Asking:
    """What every request of a run is made with.

    Attributes:
        chosen: the task's settings, complete.
        seed: the run's.
        audio: item id -> clip name, exemplars among them.
        model_digest: part of every id.
        exemplars: rows to show; empty for none.
        clips_per_prompt: as many clips the model takes in one prompt.
    """

    chosen: Mapping[str, str]
    seed: int
    audio: Mapping[str, str]
    model_digest: str
    exemplars: pd.DataFrame
    clips_per_prompt: int
    _openings: dict[tuple[str, bool], tuple[Part, ...]] = field(default_factory=dict)

    @cached_property
    def exemplar_ids(self) -> frozenset[str]:
        """Their items."""
        return frozenset(self.exemplars["item_id"])

    def opening(self, condition: str, *, swapped: bool) -> tuple[Part, ...]:
        """`shared_opening`, made once."""
        if (condition, swapped) not in self._openings:
            self._openings[condition, swapped] = shared_opening(self, condition, swapped=swapped)
        return self._openings[condition, swapped]

    @property
    def plays_exemplars(self) -> bool:
        """Whether the model takes the exemplars' clips beside the one it is asked about."""
        return self.clips_per_prompt > len(self.exemplars)


def letters(*, swapped: bool) -> dict[str, str]:
    """What A and B stand for."""
    return {"A": "NO", "B": "YES"} if swapped else {"A": "YES", "B": "NO"}


def answer_requests(asking: Asking, rows: Sequence[Row], condition: str) -> list[PlannedRequest]:
    """The first question of every dialogue: a letter; in both orders, or reasoned, if asked."""
    if asking.chosen["prompt"] == "cot":
        return [entry for row in rows for entry in _reasoned(asking, row, condition)]
    orders = {"false": (False,), "true": (True,), "both": (False, True)}[asking.chosen["swap"]]
    planned = []
    for row in rows:
        for swapped in orders:
            purpose = "swapped" if swapped and len(orders) == 2 else "answer"
            forms = {label: (at, f" {at}") for at, label in letters(swapped=swapped).items()}
            planned.append(
                _planned(
                    asking,
                    row,
                    condition,
                    purpose,
                    _question(_prompt(asking), swapped),
                    swapped=swapped,
                    choices={label: forms[label] for label in ("YES", "NO")},
                    max_new_tokens=int(asking.chosen["max_new_tokens"]),
                    temperature=TEMPERATURE,
                    top_p=TOP_P,
                )
            )
    return planned


def _reasoned(asking: Asking, row: Row, condition: str) -> list[PlannedRequest]:
    # A chain of thought has no first-token distribution to draw from: each vote is written.
    swapped = asking.chosen["swap"] == "true"
    return [
        _planned(
            asking,
            row,
            condition,
            "vote",
            _question("cot", swapped),
            swapped=swapped,
            vote=vote,
            max_new_tokens=int(asking.chosen["cot_tokens"]),
            temperature=TEMPERATURE,
            top_p=TOP_P,
        )
        for vote in range(VOTES)
    ]


def words_request(asking: Asking, row: Row, condition: str) -> PlannedRequest:
    """YES or NO in words, for where the letters could not be used."""
    return _planned(
        asking,
        row,
        condition,
        "words",
        _same(template("manipulation/words")),
        choices=dict(WORD_FORMS),
        max_new_tokens=WORDS_TOKENS,
    )


def tactic_request(asking: Asking, row: Row, condition: str) -> PlannedRequest:
    """Which tactic, or none."""
    return _planned(
        asking,
        row,
        condition,
        "tactic",
        _same(template("manipulation/tactic"), tactics=_LISTED),
        choices=tactic_forms(asking.chosen["tactic_scoring"]),
        max_new_tokens=TACTIC_TOKENS,
        temperature=TEMPERATURE,
        top_p=TOP_P,
    )


@lru_cache(maxsize=2)
def tactic_forms(scoring: str) -> Mapping[str, tuple[str, ...]]:
    """Surface forms of each tactic and of none.

    With "first_token" each is its first word, and the two that begin with "Playing" are one.
    A word may be several tokens of a model; it is then scored whole, since half a word
    differs from model to model.
    """
    if scoring == "whole_label":
        return {tactic: (tactic, f" {tactic}") for tactic in (*TACTICS, "none")}
    by_word: dict[str, list[str]] = {}
    for tactic in (*TACTICS, "none"):
        by_word.setdefault(tactic.split()[0], []).append(tactic)
    return {
        names[0] if len(names) == 1 else SERVANT_OR_VICTIM: (first, f" {first}")
        for first, names in by_word.items()
    }


def quote_request(asking: Asking, row: Row, condition: str, *, short: bool) -> PlannedRequest:
    """The words that show it; `short` is the one retry with the shortened prompt."""
    return _planned(
        asking,
        row,
        condition,
        "quote_retry" if short else "quote",
        _same(
            template(f"manipulation/{'quote_short' if short else 'quote'}"),
            most_words=str(MOST_WORDS),
        ),
        max_new_tokens=QUOTE_TOKENS,
    )


def used_templates(chosen: Mapping[str, str]) -> tuple[Template, ...]:
    """Every template that requests with these settings may be made from."""
    shows = bool(shots_of(chosen))
    asked = "zero_shot" if chosen["prompt"] == "few_shot" and not shows else chosen["prompt"]
    names = ["opening_ao", "opening_at", "opening_to", asked]
    names += ["words", "tactic", "quote", "quote_short"]
    if chosen["prompt"] == "definitions":
        names.append("meanings")
    if shows:
        names += ["exemplars_begin", "exemplar_audio", "exemplar_both", "exemplar_transcript"]
        names.append("exemplars_end")
    return tuple(template(f"manipulation/{name}") for name in names)


def shots_of(chosen: Mapping[str, str]) -> int:
    """How many exemplars to draw: "auto" is the study's four, and none without few_shot.

    Raises:
        TaskError: exemplars asked for together with a prompt that shows none.
    """
    said, prompt = chosen["shots"], chosen["prompt"]
    if prompt == "zero_shot" and (said not in ("auto", "0") or ids_of(chosen)):
        raise TaskError("prompt: zero_shot shows no exemplars; leave shots and exemplars out.")
    if said == "auto":
        return len(ids_of(chosen)) or (4 if prompt in ("few_shot", "definitions") else 0)
    if ids_of(chosen) and int(said) != len(ids_of(chosen)):
        raise TaskError(
            f"exemplars: expected {said} ids, as shots says, found {len(ids_of(chosen))}."
        )
    return int(said)


def ids_of(chosen: Mapping[str, str]) -> tuple[str, ...]:
    """The exemplars named by id, in order."""
    return tuple(name.strip() for name in chosen["exemplars"].split(",") if name.strip())


def _prompt(asking: Asking) -> str:
    """The prompt's name; one that speaks of examples is not used where there are none."""
    name = asking.chosen["prompt"]
    return "zero_shot" if name == "few_shot" and not len(asking.exemplars) else name


def _question(prompt: str, swapped: bool) -> tuple[Part, ...]:
    return _same(template(f"manipulation/{prompt}"), **_options(swapped))


# What every dialogue is asked in the same words is made once, and held once.
_same = lru_cache(maxsize=64)(fill)


def _options(swapped: bool) -> dict[str, str]:
    said = {"YES": "Yes", "NO": "No"}
    means = letters(swapped=swapped)
    return {"option_a": said[means["A"]], "option_b": said[means["B"]]}


def _planned(
    asking: Asking,
    row: Row,
    condition: str,
    purpose: str,
    question: Sequence[Part],
    *,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    swapped: bool | None = None,
    vote: int = 0,
) -> PlannedRequest:
    item_id = str(row["item_id"])
    order = asking.chosen["swap"] == "true" if swapped is None else swapped
    before = asking.opening(condition, swapped=order)
    names = (purpose, str(vote)) if purpose == "vote" else (purpose,)
    request = Request(
        id="",
        system=None,
        parts=(*before, *_dialogue(asking, row, condition), {"text": "\n\n"}, *question),
        choices=None if choices is None else dict(choices),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=seed_of(asking.seed, item_id, *names),
        prefix_parts=len(before),
    )
    request = replace(request, id=request_id(item_id, request, asking.model_digest))
    _check(asking, request, row, condition)
    return PlannedRequest(request, item_id, condition, purpose, vote)


def shared_opening(asking: Asking, condition: str, *, swapped: bool) -> tuple[Part, ...]:
    """Definitions and exemplars: the parts that all requests of a condition begin with."""
    blocks: list[tuple[Part, ...]] = []
    if asking.chosen["prompt"] == "definitions":
        blocks.append(fill(template("manipulation/meanings")))
    if len(asking.exemplars):
        blocks.append(fill(template("manipulation/exemplars_begin")))
        blocks += [
            _exemplar(asking, row, condition, number, swapped)
            for number, row in enumerate(asking.exemplars.to_dict("records"), start=1)
        ]
        blocks.append(fill(template("manipulation/exemplars_end")))
    return tuple(part for block in blocks for part in (*block, Part(text="\n\n")))


def _exemplar(
    asking: Asking, row: Row, condition: str, number: int, swapped: bool
) -> tuple[Part, ...]:
    played = condition != "TO" and asking.plays_exemplars
    shown = condition != "AO" or not asking.plays_exemplars
    kind = "both" if played and shown else "audio" if played else "transcript"
    # A slot of its own name: were this dialogue the one asked about, it would be found.
    text = {"exemplar": str(row["transcript"])} if shown else {}
    words = fill(
        template(f"manipulation/exemplar_{kind}"),
        number=str(number),
        answer=_shown_answer(row, swapped),
        **_options(swapped),
        **text,
    )
    return (Part(audio=_clip(asking, str(row["item_id"]))), *words) if played else words


def _shown_answer(row: Row, swapped: bool) -> str:
    label = str(row["label"])
    letter = {named: at for at, named in letters(swapped=swapped).items()}[label]
    named = gold_tactics(row.get("techniques")) if label == "YES" else ()
    # MentalManip has no quotes, and one of our choosing would be our reading of the dialogue.
    return f"{letter} ({label})" + (f"\nTactic: {named[0]}" if named else "")


def _dialogue(asking: Asking, row: Row, condition: str) -> tuple[Part, ...]:
    prompt = template(f"manipulation/opening_{condition.lower()}")
    words = fill(prompt, **{slot: str(row["transcript"]) for slot in prompt.slots})
    if condition == "TO":
        return words
    return (Part(audio=_clip(asking, str(row["item_id"]))), *words)


def _clip(asking: Asking, item_id: str) -> str:
    if item_id not in asking.audio:
        raise TaskError(
            f"item {item_id}: expected a clip, found none. Give its recording, drop the item, "
            "or ask in TO alone."
        )
    return asking.audio[item_id]


def _check(asking: Asking, request: Request, row: Row, condition: str) -> None:
    item_id = str(row["item_id"])
    if item_id in asking.exemplar_ids:
        # Asked for by include_exemplars: its words stand in the prefix, as they must.
        request = replace(request, parts=request.parts[request.prefix_parts :], prefix_parts=0)
    assert_modality({item_id: request}, condition, {item_id: str(row["transcript"])})
