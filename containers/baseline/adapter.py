"""The floor: what anchor sentences and prosody say, without any language model.

AO is the voice alone, TO the transcript alone, AT the equal-weight log-linear
pool of the two (no evidence favours either). The context turns are not read. An
empty transcript or a clip without a voice leaves an even distribution, which
gives way to the other; where nothing is left to go by, the text says so and the
even distribution stands.

Labels "1" to "5" are levels of distress and YES/NO manipulation; tactics have
definitions, and any other label is its own anchor sentence: the voice says
nothing about these. Where there is nothing to go by, the labels' mass is 0.

It writes no text. A request for a quote (it has the slot `most_words`) gets the
first words of the turn that leans most to manipulation, and nothing where there
is no transcript; any other free text is answered as if it asked for a level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from containers.baseline import semantics, voice
from containers.baseline.prosody import Prosody, prosody
from containers.runtime.adapter import Answer, Clip, Logits, Prompt, Words, Work
from containers.runtime.card import Card

Floats = NDArray[np.float64]

LEVELS = ("1", "2", "3", "4", "5")
YES_NO = ("YES", "NO")
BY_VOICE: dict[tuple[str, ...], Callable[[Prosody | None], Floats]] = {
    LEVELS: voice.distress_logprobs,
    YES_NO: voice.manipulation_logprobs,
}
MOST_WORDS = "most_words"
NOTHING_TO_GO_BY = "There is neither a word nor a voice to go by."


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Baseline:
    """Read the anchors and MiniLM; `weights` and `device_map` are those of every adapter."""
    return Baseline(semantics.Encoder(), _toml(Path(__file__).with_name("anchors.toml")))


class Baseline:
    """Anchors and norms, applied.

    Args:
        encoder: MiniLM.
        table: `anchors.toml`.
    """

    def __init__(self, encoder: semantics.Encoder, table: Mapping[str, Any]) -> None:
        self.work = Work()
        self._encoder = encoder
        self._temperature = float(table["temperature"])
        self._telling_turns = int(table["telling_turns"])
        self._anchors: dict[tuple[str, ...], semantics.Anchors] = {
            LEVELS: semantics.anchors(encoder, table["distress"]),
            YES_NO: semantics.anchors(encoder, table["manipulation"]),
        }
        self._definitions: Mapping[str, Sequence[str]] = table["tactics"]
        self._heard: dict[str, Prosody | None] = {}

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        """(B, labels) log-probabilities; prompts of one call have equally many labels.

        Of labels that a voice says nothing about, such as tactics, those of YES and NO: what
        is asked here is whether the model hears, and it does.
        """
        heard = [
            prompt if _ordered(_labels(prompt)) in BY_VOICE else _yes_no(prompt) for prompt in batch
        ]
        return np.stack([self._logprobs(prompt) for prompt in heard]).astype(np.float32)

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        return [self._answer(prompt) for prompt in batch]

    def _answer(self, prompt: Prompt) -> Answer:
        labels = _labels(prompt)
        logprobs = self._logprobs(prompt)
        telling = bool(np.ptp(logprobs))
        positions = sum(len(part.text.split()) for part in prompt.parts if isinstance(part, Words))
        self.work.prompt_positions += positions
        return Answer(
            text=self._text(prompt, labels, logprobs),
            finish_reason="choice" if prompt.choices else "stop",
            prompt_tokens=positions,
            audio_seconds_used=float(sum(clip.seconds for clip in prompt.clips)),
            choice_logprobs=dict(zip(labels, logprobs.tolist(), strict=True))
            if prompt.choices
            else None,
            choice_mass=float(telling) if prompt.choices else None,
        )

    def _text(self, prompt: Prompt, labels: tuple[str, ...], logprobs: Floats) -> str:
        asked = next((w for w in _words(prompt) if w.slot == MOST_WORDS), None)
        if not prompt.choices and asked:
            said = "\n".join(word.text for word in _words(prompt) if word.slot == "transcript")
            return self._quote(said, int(asked.text))
        if not np.ptp(logprobs):
            return NOTHING_TO_GO_BY
        likeliest = labels[int(np.argmax(logprobs))]
        return prompt.choices[likeliest][0] if prompt.choices else likeliest

    def _quote(self, text: str, most_words: int) -> str:
        """The turn that leans most to manipulation, cut; "" where nobody says anything."""
        anchors = self._anchors[YES_NO]
        said = semantics.most_telling(self._encoder, text, anchors, most=1)
        return " ".join(said[0].split()[:most_words]) if said else ""

    def _logprobs(self, prompt: Prompt) -> Floats:
        """(labels,) in the order of the request's labels."""
        asked = _labels(prompt)
        labels = _ordered(asked)
        target = prompt.parts[prompt.prefix_parts :]
        heard = [self._hear(part) for part in target if isinstance(part, Clip)]
        said = [part.text for part in _words(prompt) if part.slot == "transcript"]
        experts = [_by_voice(labels, clip) for clip in heard]
        experts += [self._by_text(labels, text) for text in said]
        # An expert that has nothing to say is left out, or it would flatten the other.
        telling = [expert for expert in experts if np.ptp(expert) > 0]
        pooled = np.mean(telling, axis=0) if telling else np.zeros(len(labels))
        return voice.normalised(pooled)[[labels.index(label) for label in asked]]

    def _hear(self, clip: Clip) -> Prosody | None:
        if clip.name not in self._heard:
            self.work.encoder_seconds += clip.seconds
            self._heard[clip.name] = prosody(clip.samples)
        return self._heard[clip.name]

    def _by_text(self, labels: tuple[str, ...], text: str) -> Floats:
        if labels not in self._anchors:
            named = {label: self._definitions.get(label, [label]) for label in labels}
            self._anchors[labels] = semantics.anchors(self._encoder, named)
        anchors = self._anchors[labels]
        if labels == YES_NO:
            return semantics.telling_turns_logprobs(
                self._encoder, text, anchors, self._temperature, self._telling_turns
            )
        if set(labels) & set(self._definitions):
            # What a tactic is told by are the turns that manipulate, not the talk around them.
            turns = semantics.most_telling(
                self._encoder, text, self._anchors[YES_NO], self._telling_turns
            )
            text = "\n".join(turns)
        return semantics.whole_text_logprobs(self._encoder, text, anchors, self._temperature)


def _labels(prompt: Prompt) -> tuple[str, ...]:
    return tuple(prompt.choices) if prompt.choices else LEVELS


def _ordered(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The known label set these are, in its own order, or themselves."""
    return next((known for known in (LEVELS, YES_NO) if set(known) == set(labels)), labels)


def _by_voice(labels: tuple[str, ...], heard: Prosody | None) -> Floats:
    score = BY_VOICE.get(labels)
    return score(heard) if score else np.zeros(len(labels))


def _yes_no(prompt: Prompt) -> Prompt:
    return replace(prompt, choices={label: (label,) for label in YES_NO})


def _words(prompt: Prompt) -> list[Words]:
    """The words about the item itself; those of exemplars come before it."""
    return [part for part in prompt.parts[prompt.prefix_parts :] if isinstance(part, Words)]


def _toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        table: dict[str, Any] = import_module("tomllib").load(stream)
    return table
