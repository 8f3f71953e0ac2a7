"""The canary for a model behind a server: does what it says depend on what it is played?

The same test as in a container, on what a server shows of the next token: the
log-probabilities it lists. A server that lists none is judged by its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from containers.runtime.adapter import Answer, Clip, Logits, Prompt, Words, Work
from containers.runtime.canary import Hearing, check_hearing
from experiments.runners import RunnerError
from experiments.runners._asking import Asker
from experiments.runners._chat import first_position
from experiments.runners._endpoint import ServerError

# Columns for the tokens seen in all of the canary's answers: at most 20 and the labels in each.
TOKENS = 512
LISTEN = "Write down, word for word, what is said in this recording."
LISTEN_TOKENS = 32


def check_server_hears(
    asker: Asker, question: Prompt, speech: Sequence[Clip], folder: Path
) -> Hearing:
    """Raise unless the server's next token depends on what is said; see `check_hearing`.

    Raises:
        DeafError: the model does not hear.
        RunnerError: the server did not answer the canary.
    """
    return check_hearing(_Shown(asker), question, speech, folder)


class _Shown:
    """A server as the canary sees a model: what it lists, as logits."""

    def __init__(self, asker: Asker) -> None:
        self.work = Work()
        self._asker = asker
        self._columns: dict[str, int] = {}

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        """(B, TOKENS); a token that was not listed counts as the least likely listed one, which
        it is at most: a change can only come out smaller than it is."""
        return np.stack([self._row(prompt) for prompt in batch])

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        """Seconds used are those given: a server does not say."""
        return [
            Answer("", "stop", 0, sum(clip.seconds for clip in prompt.clips)) for prompt in batch
        ]

    def _row(self, prompt: Prompt) -> Logits:
        listed = first_position(self._choice(prompt)) if self._asker.dialect.logprobs else {}
        if not listed:
            return self._words(prompt)
        row = np.full(TOKENS, min(listed.values()), dtype=np.float32)
        for token, logprob in listed.items():
            row[self._columns.setdefault(token, len(self._columns)) % TOKENS] = logprob
        return row

    def _words(self, prompt: Prompt) -> Logits:
        """Which words it says it heard, as a row of counts: equal words, equal rows."""
        asked = replace(
            prompt,
            parts=(*prompt.clips, Words(LISTEN)),
            choices=None,
            temperature=0.0,
            max_new_tokens=LISTEN_TOKENS,
        )
        text = str((self._choice(asked).get("message") or {}).get("content") or "")
        row = np.zeros(TOKENS, dtype=np.float32)
        for word in text.lower().split():
            row[self._columns.setdefault(word, len(self._columns)) % TOKENS] += 1
        return row

    def _choice(self, prompt: Prompt) -> dict[str, Any]:
        try:
            reply, _ = self._asker.reply(prompt)
        except ServerError as error:
            raise RunnerError(f"The canary had no answer: {error}") from error
        choices = reply.body.get("choices")
        if reply.status != 200 or not isinstance(choices, list) or not choices:
            said = self._asker.endpoint.said(reply)
            raise RunnerError(f"The canary had no answer: status {reply.status}, {said}")
        return dict(choices[0])
