"""The quote given as evidence, tidied, and whether anybody said it.

Tidying is the study's: whitespace and quotation marks, no judgement of the words. Looking it
up in the transcript goes beyond the study, so that a reader sees invented evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from core.detection.questions import MOST_WORDS
from core.predictions import unusable
from core.protocol import Response

LEAST_RATIO = 0.8
"""Token-sort ratio from which on a stretch of a turn counts as the quote's source."""

_QUOTES = str.maketrans("“”„«»‘’ʼ", '"' * 5 + "'" * 3)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TURN = re.compile(r"\s*([\w .'-]{1,30}):\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class Quote:
    """The tidied quote, "" with its reason where there is none; `retried` with the short prompt."""

    text: str
    reason: str | None = None
    retried: bool = False


@dataclass(frozen=True)
class Said:
    """Where a quote was found.

    Attributes:
        match: exact, fuzzy or absent.
        turn: number of the turn from 1, None for absent.
        speaker: of that turn.
        ratio: token-sort ratio of the best stretch, from `LEAST_RATIO` to 1; 0 for absent.
    """

    match: str
    turn: int | None
    speaker: str | None
    ratio: float


def tidied(text: str, *, most_words: int = MOST_WORDS) -> str:
    """The first words of an answer, without the marks around it and with plain spaces."""
    plain = " ".join(text.translate(_QUOTES).split())
    plain = plain.strip("\"' ") if plain[:1] in "\"'" or plain[-1:] in "\"'" else plain
    return " ".join(plain.split()[:most_words])


def given_quote(first: Response | None, retry: Response | None, *, retried: bool) -> Quote:
    """The quote of one dialogue, from the request and its one retry."""
    text, reason = _read(first)
    if text or not retried:
        return Quote(text, reason)
    again, still = _read(retry)
    return Quote(again, still and f"{reason}; asked again: {still}", retried=True)


def is_empty(response: Response | None) -> bool:
    """Whether to ask again: something came back and holds no quote."""
    return response is not None and not unusable(response) and not _read(response)[0]


def _read(response: Response | None) -> tuple[str, str | None]:
    if fault := unusable(response):
        return "", fault.reason
    assert response is not None
    text = tidied(response.text)
    if not _WORD.search(text):
        return "", "the answer is empty"
    return text, None


def where_said(quote: str, transcript: str) -> Said:
    """Look a quote up in a transcript with one "speaker: text" line a turn.

    Words are compared without case and punctuation. "exact" is the quote's words in one turn,
    in order and side by side; a quote that runs over several turns belongs to the first.
    "fuzzy" is a stretch of a turn, as long as the quote or a word more or less, that holds half
    of the quote's words and is at least `LEAST_RATIO` like it when both are sorted by word:
    any two sentences have many letters in common, so letters alone would find anything.
    """
    turns = _turns(transcript)
    named, rest = _turn(quote)
    sought = _words(rest if named and any(named == speaker for speaker, _ in turns) else quote)
    if not sought:
        return Said("absent", None, None, 0.0)
    spoken = [words for _, words in turns]
    number = _turn_with(spoken, sought)
    if number is not None:
        return Said("exact", number + 1, turns[number][0], 1.0)
    wanted = Counter(sought)
    likeness = SequenceMatcher(None, "", " ".join(sorted(sought)), autojunk=False)
    ratios = [_best_stretch(words, wanted, likeness) for words in spoken]
    if not any(ratios):
        return Said("absent", None, None, 0.0)
    number = ratios.index(max(ratios))
    return Said("fuzzy", number + 1, turns[number][0], ratios[number])


def token_sort_ratio(one: Sequence[str], other: Sequence[str]) -> float:
    """How alike two word lists are when each is sorted and joined, in [0, 1]."""
    first, second = (" ".join(sorted(words)) for words in (one, other))
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


# Three conditions look quotes up in one transcript, one after the other at best.
@lru_cache(maxsize=1024)
def _turns(transcript: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Speaker and words of each line that is not blank."""
    turns = [_turn(line) for line in transcript.splitlines() if line.strip()]
    return tuple((speaker, tuple(_words(text))) for speaker, text in turns)


def _turn(line: str) -> tuple[str, str]:
    match = _TURN.fullmatch(line)
    return (match[1].strip(), match[2]) if match else ("", line)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.translate(_QUOTES).casefold())


def _turn_with(spoken: Sequence[Sequence[str]], sought: Sequence[str]) -> int | None:
    """The first turn that holds the words side by side; else the one in which they begin."""
    wanted = _line(sought)
    lines = [_line(words) for words in spoken]
    for number, line in enumerate(lines):
        if wanted in line:
            return number
    everything = _line([word for words in spoken for word in words])
    at = everything.find(wanted)
    return None if at < 0 else _turn_at(spoken, everything.count(" ", 0, at))


def _line(words: Sequence[str]) -> str:
    """The words with a space around each, so that none is found inside another."""
    return f" {' '.join(words)} "


def _turn_at(spoken: Sequence[Sequence[str]], word: int) -> int:
    for number, words in enumerate(spoken):
        if word < len(words):
            return number
        word -= len(words)
    return len(spoken) - 1


def _best_stretch(
    words: Sequence[str], wanted: Counter[str], likeness: SequenceMatcher[str]
) -> float:
    """The largest ratio of a stretch of the words, or 0 where none counts as the source."""
    sought = wanted.total()
    if 2 * _held(words, wanted) < sought:
        return 0.0
    best = 0.0
    for length in {max(1, min(len(words), sought + by)) for by in (-1, 0, 1)}:
        for at in range(len(words) - length + 1):
            stretch = words[at : at + length]
            if 2 * _held(stretch, wanted) < sought:
                continue
            likeness.set_seq1(" ".join(sorted(stretch)))
            # Two upper bounds of the ratio, which takes far longer than they do.
            least = max(best, LEAST_RATIO)
            if likeness.real_quick_ratio() >= least and likeness.quick_ratio() >= least:
                best = max(best, likeness.ratio())
    return best if best >= LEAST_RATIO else 0.0


def _held(words: Sequence[str], wanted: Mapping[str, int]) -> int:
    """How many of the wanted words are among these, each as often as it is wanted."""
    found: dict[str, int] = {}
    for word in words:
        if word in wanted:
            found[word] = found.get(word, 0) + 1
    return sum(min(count, wanted[word]) for word, count in found.items())
