"""Reading an A or B, or a yes or no, from text.

"A" is an article far more often than an answer, so a letter counts only where it is
stated as one. Where both a letter and a yes or no are given they have to agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

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
    settle,
)
from core.parsing.vocabulary import CHOICE_CUES

_LETTER = re.compile(r"(?<![\w'/])[AB](?![\w'/])|(?<=\()[ab](?=\))")
_WORD = re.compile(r"\b(?:yes|yeah|yep|no|nope)\b", re.IGNORECASE)
_NEITHER = re.compile(
    r"\b(?:A ?(?:or|and|/|-) ?B|B ?(?:or|and|/|-) ?A|(?i:yes ?(?:or|and|/|-) ?no))\b"
)


def letter(text: str, *, cut: bool = False) -> Parsed[str]:
    """The "A" or "B" a text states; arguments and status as in `core.parsing.rating`."""
    return _read(text, cut, "A or B", {"A": "A", "B": "B"}, words=False)


def yes_no(text: str, *, cut: bool = False) -> Parsed[str]:
    """The "YES" or "NO" a text states; arguments and status as in `core.parsing.rating`."""
    return _read(text, cut, "yes or no", {}, words=True)


def verdict(text: str, letters: Mapping[str, str], *, cut: bool = False) -> Parsed[str]:
    """The "YES" or "NO" a text states by a letter, in words, or both.

    Args:
        letters: what A and B stand for, e.g. {"A": "YES", "B": "NO"}.
    """
    return _read(text, cut, "A or B, yes or no", letters, words=True)


def _read(
    text: str, cut: bool, question: str, letters: Mapping[str, str], *, words: bool
) -> Parsed[str]:
    try:
        answer = plain(checked(text))
    except NoAnswerError as error:
        return error.parsed(cut)
    if len(answer.strip(" \n.()\"'")) == 1:
        answer = answer.upper()
    answer = _without_options(_NEITHER.sub(MARK, answer))
    mentions = sorted(_mentions(answer, letters, words), key=lambda mention: mention.start)
    stated: list[Mention[str]] = []
    for place, mention in enumerate(mentions):
        floor = mentions[place - 1].end if place else 0
        if not is_terminated(answer, mention.end) and not _restated(answer, mentions, place):
            continue
        if is_stated(answer, mention, floor, CHOICE_CUES) or (
            stated
            and not is_negated(answer, mention.start, floor)
            and (mention.said.lower() not in "ab" or _right_behind(answer, floor, mention))
        ):
            stated.append(mention)
    return settle(stated, answer, question=question, cut=cut)


def _mentions(text: str, letters: Mapping[str, str], words: bool) -> Iterator[Mention[str]]:
    if letters:
        for match in _LETTER.finditer(text):
            said = match[0].upper()
            yield Mention(match.start(), match.end(), letters[said], said)
    if words:
        for match in _WORD.finditer(text):
            value = "YES" if match[0][0] in "yY" else "NO"
            yield Mention(match.start(), match.end(), value, match[0])


def _restated(text: str, mentions: list[Mention[str]], place: int) -> bool:
    """Whether the next mention follows at once, as in "A Yes"."""
    following = mentions[place + 1 : place + 2]
    return bool(following) and not text[mentions[place].end : following[0].start].strip()


def _right_behind(text: str, floor: int, mention: Mention[str]) -> bool:
    """Whether only signs or "or", "and", "maybe" part a letter from the answer before it."""
    between = re.findall(r"[^\W_]+", text[floor : mention.start].lower())
    return set(between) <= {"or", "and", "maybe", "also", "possibly", "then", "option"}


def _without_options(text: str) -> str:
    """Text with the question's two options marked out, where both were repeated."""
    options = [re.compile(rf"\b{option}[.):=]+ ?(?:yes|no)\b", re.IGNORECASE) for option in "AB"]
    if all(option.search(text) for option in options):
        for option in options:
            text = option.sub(MARK, text, count=1)
    return text
