"""Reading a level 1-5 from text.

Accepted: a number that is stated as the answer ("4", "3/5", "I'd say 4", "Level: four",
JSON). Not accepted: a number that counts something, a range, a fraction of a level,
another scale, the question's scale repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from core.parsing.answer import (
    MARK,
    Mention,
    NoAnswerError,
    Parsed,
    checked,
    is_negated,
    is_stated,
    is_terminated,
    plain,
    same_sentence,
    settle,
)
from core.parsing.vocabulary import BEFORE_ONE, OTHER_KEYS, RATING_CUES, RATING_KEYS

QUESTION = "a level from 1 to 5"

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ANY_WORD = "|".join(WORDS)
_NUMBER = re.compile(
    rf"(?<![\w.$£€<>≥≤])-?\d++(?:[.,:/-]\d++)*+(?![\w%]| ?%)|\b(?:{_ANY_WORD})\b", re.IGNORECASE
)
_OF = re.compile(
    rf" ?(?:/|out of|of)(?: a possible)? ?(\d++(?:\.0+)?|{_ANY_WORD})(?![\w%])", re.IGNORECASE
)

_ONE, _FIVE = r"(?<![\w.,/-])(?:1|one)", r"(?:5|five)(?![\w/%]|[.,]\d|-\d)"
_NOTE = r"(?: ?\([^()\n]{0,60}\))?"
_SCALE = re.compile(
    rf"{_ONE}{_NOTE} ?(?:-|to|through|and|\.\.\.?) ?{_FIVE}{_NOTE}"
    rf"|\bscale of {_FIVE}|\b{_FIVE}[- ]points?\b"
    r"|(?:(?<=where )|(?<=with )|(?<=and )|(?<=[,(] )|(?<=\())(?:1|5|one|five) "
    r"(?:is|being|=|means|meaning|indicat\w+|represent\w+)",
    re.IGNORECASE,
)
_ANCHORS = ("calm", "slight", "moderate", "significant", "overwhelm")
_ANCHORED = re.compile(rf"(?<![\w.,/-])([1-5]) ?[=:.)(-]+ ?({'|'.join(_ANCHORS)})", re.IGNORECASE)
_NUMBERING = re.compile(r"(?m)^[1-9]\d?[.)][ \t]+(?=\S*[^\W\d_])")
_RANGE = re.compile(r" ?(?:-|/|,|to|or|and|through|vs\.?) ?(?:a |an |even |maybe )?", re.IGNORECASE)
_LIST_GOES_ON = re.compile(r" (?:and|or)\b", re.IGNORECASE)


def rating(text: str, *, cut: bool = False) -> Parsed[int]:
    """The level a text states.

    Args:
        text: as the model wrote it.
        cut: it ended at its limit of tokens, not by itself.

    Never raises; the value is in 1-5 or absent. Without a digit or a number word there
    is no value.
    """
    return _read(text, cut, _ANCHORS)


def reversed_rating(text: str, *, cut: bool = False) -> Parsed[int]:
    """The level a text states where 1 was the most distressed, as a level where 5 is.

    Args:
        text, cut: as in `rating`. Reasons speak of the numbers as they were written.
    """
    found = _read(text, cut, _ANCHORS[::-1])
    return found if found.value is None else replace(found, value=6 - found.value)


def _read(text: str, cut: bool, anchors: tuple[str, ...]) -> Parsed[int]:
    try:
        answer = checked(text)
        if (found := _json(answer)) is not None:
            levels = list(_levels_in(found, anchors))
            return settle(levels, answer, question=QUESTION, cut=cut, whole=True)
    except NoAnswerError as error:
        return error.parsed(cut)
    return _in_prose(plain(answer), cut, anchors)


def _in_prose(text: str, cut: bool, anchors: tuple[str, ...]) -> Parsed[int]:
    text, anchored = _without_scale(text, anchors)
    if not anchored and re.search(r"(?m)^1[.)]", text):
        text = _NUMBERING.sub("", text)
    mentions = list(_mentions(text))
    if range_said := _range(text, mentions):
        return Parsed(None, "unparsed", f"more than one answer: {range_said}")
    stated: list[Mention[int]] = []
    for place, mention in enumerate(mentions):
        floor = mentions[place - 1].end if place else 0
        if mention.start in anchored or _is_stated(text, mention, floor):
            if cut and mention.start in anchored and mention.value == 1:
                # The scale, repeated, begins just like this.
                return Parsed(None, "truncated", "the text was cut in what may be the scale")
            stated.append(mention)
        elif stated and _rivals(text, stated[-1], mention, floor):
            stated.append(mention)
    return settle(stated, text, question=QUESTION, cut=cut)


def _without_scale(text: str, anchors: tuple[str, ...]) -> tuple[str, set[int]]:
    """The text with the question's scale marked out, and where a level has its own anchor."""
    text = _SCALE.sub(MARK, text)
    found = list(_ANCHORED.finditer(text))
    if len({match[1] for match in found}) > 1:
        return _ANCHORED.sub(rf"{MARK} \2", text), set()
    fitting = (m for m in found if anchors[int(m[1]) - 1] == m[2].lower())
    return text, {match.start() for match in fitting}


def _mentions(text: str) -> Iterator[Mention[int]]:
    reached = 0
    for match in _NUMBER.finditer(text):
        start, end, said = match.start(), match.end(), match[0]
        if start < reached:
            continue
        if said[0] == "-" and start and text[start - 1].isalnum():
            said = said[1:]
        value = _level(said)
        if of := _OF.match(text, end):
            end, said = of.end(), text[start : of.end()]
            value = value if _level(of[1]) == 5 else None
        reached = end
        yield Mention(start, end, value, said)


def _level(said: str) -> int | None:
    """1-5 as digits, a word or a share of five; None for every other number."""
    said = said.lower()
    if said in WORDS:
        number = WORDS.index(said)
    elif match := re.fullmatch(r"0{0,2}(\d)(?:\.0+)?(?:/5(?:\.0+)?)?", said):
        number = int(match[1])
    else:
        return None
    return number if 1 <= number <= 5 else None


def _is_stated(text: str, mention: Mention[int], floor: int) -> bool:
    if not is_terminated(text, mention.end):
        return False
    if mention.said.lower() == "one" and not _may_be_one(text[floor : mention.start]):
        return False
    is_share = "/" in mention.said or " of " in mention.said
    if is_share and not is_negated(text, mention.start, floor):
        return mention.value is not None or is_stated(text, mention, floor, RATING_CUES)
    return is_stated(text, mention, floor, RATING_CUES)


def _may_be_one(before: str) -> bool:
    words = re.findall(r"[a-z']+", before.lower())
    return not words or words[-1] in BEFORE_ONE


def _rivals(text: str, stated: Mention[int], mention: Mention[int], floor: int) -> bool:
    """Whether a number behind a stated one, in the same sentence, may be meant as well."""
    return (
        mention.value is not None
        and (mention.said.lower() != "one" or _may_be_one(text[floor : mention.start]))
        and same_sentence(text, stated.end, mention.start)
        and is_terminated(text, mention.end)
        and not is_negated(text, mention.start, floor)
    )


def _range(text: str, mentions: list[Mention[int]]) -> str | None:
    for mention in mentions:
        ends = re.fullmatch(r"([1-5])-([1-5])", mention.said)
        if ends and is_terminated(text, mention.end):
            return mention.said
    for low, high in pairwise(mentions):
        both = low.value is not None and high.value is not None and low.value != high.value
        ends_there = is_terminated(text, high.end) or _LIST_GOES_ON.match(text, high.end)
        if both and ends_there and _RANGE.fullmatch(text[low.end : high.start]):
            return text[low.start : high.end]
    return None


_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL | re.IGNORECASE)


def _json(text: str) -> Any | None:
    """The object or list the text consists of, or None where it is no JSON."""
    fenced = _FENCE.fullmatch(text)
    body = (fenced[1] if fenced else text).strip()
    if not body.startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _levels_in(found: Any, anchors: tuple[str, ...], depth: int = 0) -> Iterator[Mention[int]]:
    if isinstance(found, dict) and depth < 4:
        for key, value in found.items():
            words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()))
            if words & RATING_KEYS and not words & OTHER_KEYS:
                yield from _levels_in(value, anchors, depth + 1)
    elif isinstance(found, list) and depth < 4:
        for value in found:
            yield from _levels_in(value, anchors, depth + 1)
    elif isinstance(found, str):
        parsed = _in_prose(plain(found), False, anchors)
        if parsed.value is not None or re.search(r"\d", found):
            yield Mention(0, 0, parsed.value, found[:40])
    elif isinstance(found, (int, float)) and not isinstance(found, bool):
        whole = found in (1, 2, 3, 4, 5)
        yield Mention(0, 0, int(found) if whole else None, format(found, ".10g"))
