"""What every kind of answer has in common: its cleaned words, and what counts as stated.

A mention (a number, a letter, a yes) is a candidate only where the sentence leads up
to it as its answer and nothing behind it makes it part of something else. All
candidates must agree; everything else is a status with a reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from core.parsing.refusal import is_refusal
from core.parsing.vocabulary import CUE_PAIRS, LINKS, NEGATIONS, OPENINGS

V = TypeVar("V")

LONGEST = 10_000
"""Characters of an answer that is still read; longer ones are no answer to a closed question."""

MARK = "\x1a"
"""Stands where the question's own options were repeated; no text holds it after cleaning."""


@dataclass(frozen=True)
class Parsed(Generic[V]):
    """An answer read from text: `value` where status is "ok", else None and a `reason`.

    Status "truncated" means that the text was cut at its limit and what is there
    cannot be told from the beginning of another answer.
    """

    value: V | None
    status: Literal["ok", "refused", "unparsed", "truncated"]
    reason: str | None = None


@dataclass(frozen=True)
class Mention(Generic[V]):
    """A place in a text that may be its answer.

    Attributes:
        start, end: span in the cleaned text.
        value: what it says, or None where that is outside the question (3.5, 10, -1).
        said: as written.
    """

    start: int
    end: int
    value: V | None
    said: str


class NoAnswerError(Exception):
    """Inside this package only: the text cannot hold an answer.

    Attributes:
        reason: why.
        unfinished: whether more text might have held one.
    """

    def __init__(self, reason: str, *, unfinished: bool) -> None:
        super().__init__(reason)
        self.reason, self.unfinished = reason, unfinished

    def parsed(self, cut: bool) -> Parsed[Any]:
        """The status of such a text; `cut` as in `settle`."""
        return Parsed(None, "truncated" if cut and self.unfinished else "unparsed", self.reason)


_THINKING = re.compile(
    r"<(/?)(?:think|thinking|thought|reasoning|reflection|analysis)>|\[(/?)THINK\]", re.IGNORECASE
)
_SPECIAL_TOKEN = re.compile(
    r"<\|[^|<>\n]{0,40}\|>|</?(?:s|eos|bos|pad|unk|end_of_turn|answer|rating|b|i|em|strong|p|span)>"
)
# zero-width characters, joiners, variation selectors, the keycap of an emoji digit
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff\u20e3\u00ad]|[\x00-\x08\x0e-\x1f]")
_LINE_START = re.compile(r"(?m)^[ \t]*(?:[-*•·>][ \t]+|#{1,6}[ \t]*)+")
_ERROR = re.compile(
    r"^\W*(?:\w+\.)*\w*(?:error|exception|traceback)\b"
    r"|^\W*(?:http|status(?: code)?|code)\W{0,3}\d"
    r"|\b(?:rate limit|too many requests|quota exceeded|bad gateway|service unavailable)\b"
    r"|\berror(?: code)?\W{0,3}\d{3}\b",
    re.IGNORECASE,
)

_PLAIN_SIGNS = str.maketrans("‘’ʼ´“”„«»‐‑‒–—―−", "'" * 4 + '"' * 5 + "-" * 7)


def without_thinking(text: str) -> str:
    """The text without its thinking blocks; a block only closed began before the text.

    Raises:
        NoAnswerError: the last block is never closed, so the answer was not reached.
    """
    kept: list[str] = []
    position, inside = 0, False
    for tag in _THINKING.finditer(text):
        closes = bool(tag[1] or tag[2])
        if closes and not inside:
            kept.clear()
        elif not closes and not inside:
            kept.append(text[position : tag.start()])
        inside = not closes
        position = tag.end()
    if inside:
        raise NoAnswerError("a thinking block is never closed", unfinished=True)
    kept.append(text[position:])
    return "".join(kept)


def checked(text: str) -> str:
    """The answer's own characters: no thinking, no special tokens, plain digits and signs.

    Raises:
        NoAnswerError: nothing there, too long, or an error message instead of an answer.
    """
    text = _SPECIAL_TOKEN.sub("", without_thinking(text))
    if not text.strip():
        raise NoAnswerError("the answer is empty", unfinished=True)
    if len(text) > LONGEST:
        raise NoAnswerError(
            f"{len(text)} characters are no answer to this question", unfinished=False
        )
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    text = text.translate(_PLAIN_SIGNS)
    if _ERROR.search(text):
        raise NoAnswerError("an error message, not an answer", unfinished=False)
    return text


def plain(text: str) -> str:
    """Checked text without its markup: emphasis, code signs, headings, bullets, formulas."""
    text = re.sub(r"\$([^$\n]{1,20})\$", r"\1", text)
    text = _LINE_START.sub("", re.sub(r"[*~`]", "", text).replace("_", " "))
    return text.lstrip()


_TOKEN = re.compile(rf"[^\W\d_]+(?:'[^\W\d_]+)*|[,→{MARK}]|[-=]>")
_SENTENCE_END = re.compile(r"[.!?;\n]")
_LONG_WORD_BEFORE = re.compile(rf"(?:(?:[^\W\d_]{{5,}}|\d)[\"')\]]*[.!]|{MARK}[.!?])[\"')\]]*\s*$")
_CLOSING = re.compile(r"[\s.!)\]}\"']*$")
_TERMINATED = re.compile(
    rf"[ \t]*(?:$|\n|[,:;!)\]}}\"'(<|\\={MARK}]|\.(?!\.)|-(?!\w)"
    r"|(?:on|out|because|since|as|for|due|given|based|which|indicating|reflecting|overall|here"
    r"|but|from|with|rather than|instead of|not)\b"
    r"|(?:is|would be) (?:my|the|correct|right)\b)",
    re.IGNORECASE,
)


def is_terminated(text: str, end: int) -> bool:
    """Whether a mention ends a phrase there, and does not count or qualify what follows."""
    return _TERMINATED.match(text, end) is not None


def is_stated(text: str, mention: Mention[V], floor: int, cues: frozenset[str]) -> bool:
    """Whether the sentence before a mention announces it as the answer.

    Args:
        floor: end of the mention before; words before it belong to that one.
        cues: words that announce an answer ("rating", "option").

    True after a cue with nothing but linking words between, and for a line that holds
    nothing before the mention but an opening such as "Definitely a".
    """
    if _is_quoted(text, mention.start):
        return False
    begin = _sentence_start(text, mention.start, floor)
    tokens = [token.lower() for token in _TOKEN.findall(text[begin : mention.start])]
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        if token in ("→", "->", "=>", MARK):
            return True
        is_a = token in ("is", "it's", "that's", "be") and tokens[place + 1 :] in (["a"], ["an"])
        if token in cues or is_a or (tokens[max(place - 1, 0)], token) in CUE_PAIRS:
            return not _negated(tokens[:place])
        if token not in LINKS and token not in OPENINGS and token != ",":
            return False
    opened = OPENINGS.issuperset(token for token in tokens if token != ",")
    return opened and _stands_apart(text, begin, mention.end)


def _is_quoted(text: str, start: int) -> bool:
    """Whether it is in someone's words: behind a quotation mark that a speaker's line opened."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    *outside, inside = before.split('"')
    return len(outside) % 2 == 1 and all(_TOKEN.search(side) for side in (outside[-1], inside))


def is_negated(text: str, start: int, floor: int) -> bool:
    """Whether one of the three words before says that this is not the answer."""
    begin = _sentence_start(text, start, floor)
    return _negated([token.lower() for token in _TOKEN.findall(text[begin:start])][-3:])


def _negated(tokens: Sequence[str]) -> bool:
    since_comma = tokens[
        max((i + 1 for i, t in enumerate(tokens) if t in (",", "but")), default=0) :
    ]
    return any(token in NEGATIONS or token.endswith("n't") for token in since_comma)


def _sentence_start(text: str, start: int, floor: int) -> int:
    begin = floor
    for end in _SENTENCE_END.finditer(text, floor, start):
        begin = end.end()
    return begin


def _stands_apart(text: str, begin: int, end: int) -> bool:
    """Whether a sentence opens a line, or is the last and only a mention."""
    if begin == 0 or text[begin - 1] == "\n":
        return True
    # "Her voice shakes. 4" ends in an answer; "see p. 4" and "at 9 a.m. 3 of them" do not.
    before = text[max(begin - 60, 0) : begin]
    return bool(_CLOSING.match(text, end) and _LONG_WORD_BEFORE.search(before))


def same_sentence(text: str, first: int, second: int) -> bool:
    """Whether no sentence ends between two positions."""
    return _SENTENCE_END.search(text, min(first, second), max(first, second)) is None


def settle(
    stated: Sequence[Mention[V]], text: str, *, question: str, cut: bool, whole: bool = False
) -> Parsed[V]:
    """One answer from all that were stated.

    Args:
        stated: the candidates.
        text: cleaned.
        question: what was asked for, for reasons.
        cut: the text ended at its limit of tokens. A candidate then counts only where
            the text went on to another line or word: "1" may have become "10".
        whole: the text is complete in itself (JSON that parses), cut or not.
    """
    said = sorted({mention.said for mention in stated})
    values = {mention.value for mention in stated}
    if len(values) > 1:
        return Parsed(None, "unparsed", f"more than one answer: {', '.join(said)}")
    if stated and None in values:
        return Parsed(None, "unparsed", f"{', '.join(said)} is not {question}")
    if not stated and is_refusal(text):
        return Parsed(None, "refused", "the model declined to answer")
    if cut and not whole and not any(_goes_on(text, mention.end) for mention in stated):
        return Parsed(None, "truncated", "the text was cut before its answer was complete")
    if not stated:
        return Parsed(None, "unparsed", f"{question} is not stated")
    return Parsed(stated[0].value, "ok")


def _goes_on(text: str, end: int) -> bool:
    return re.search(r"\n|[^\W\d_]", text[end:]) is not None
