"""One request put to a server until it is answered or given up: tries, waits, and statuses.

Each way to fail has its own status and reason. What would fail every request
alike (no access, no such page, a server that is gone) ends the run instead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TextIO

from containers.runtime.adapter import Prompt
from containers.runtime.card import Card
from containers.runtime.replies import LEAST_LOGPROB, Stamp, failure, whole
from core.protocol import Response, Status
from experiments.runners import RunnerError
from experiments.runners._chat import (
    CONSTRAINED,
    Dialect,
    first_position,
    is_constrained,
    payload,
    scores,
)
from experiments.runners._endpoint import Endpoint, Reply, ServerError, error_code
from experiments.runners._ends import GOES_ON
from experiments.runners._pace import Pace, backoff_s, retry_after_s

# A hang costs its whole time limit, so it is tried once more only.
TRIES = {"busy": 8, "server": 5, "connection": 5, "broken": 4, "timeout": 2}
# Requests in a row that found no server at all, each after its own tries.
MOST_UNREACHED = 3
# A server heard the clip as we sent it, as far as its card tells; it does not say itself.
SECONDS_BY_CARD = "audio_seconds_used_by_card"
OTHER_MODEL = "server_names_another_model"
# A shorter rest is over before anybody wonders.
TOLD_REST_S = 5.0

_BUSY = (429, 503, 529)
_BLOCKED = ("content_filter", "content_policy_violation", "data_inspection_failed")


@dataclass
class Asker:
    """What all requests of a run share."""

    endpoint: Endpoint
    dialect: Dialect
    card: Card
    stamp: Stamp
    pace: Pace
    log: TextIO | None = None
    retries: int = 0
    _unreached: int = 0
    _lock: Lock = field(default_factory=Lock)

    def answer(self, prompt: Prompt, fallbacks: tuple[str, ...]) -> Response:
        """The response to a prompt, whatever the server does.

        Raises:
            RunnerError: for what every other request would meet too.
        """
        try:
            reply, latency_s = self.reply(prompt)
        except ServerError as error:
            status: Status = "timeout" if error.kind == "timeout" else "model_error"
            return failure(prompt.id, status, str(error), self.stamp)
        return self._response(prompt, fallbacks, reply, latency_s)

    def reply(self, prompt: Prompt) -> tuple[Reply, float]:
        """The server's last word on a prompt, and how many seconds that one took.

        Raises:
            ServerError: no whole reply after all tries.
            RunnerError: as `answer`.
        """
        failed: dict[str, int] = dict.fromkeys(TRIES, 0)
        while True:
            outcome, latency_s, wait_s = self._try(prompt)
            kind = _kind(outcome)
            if kind == "unasked":
                continue
            self._note_reach(kind)
            if kind == "answered":
                assert isinstance(outcome, Reply)
                return outcome, latency_s
            failed[kind] += 1
            if failed[kind] >= TRIES[kind]:
                if isinstance(outcome, ServerError):
                    raise outcome
                return outcome, latency_s
            with self._lock:
                self.retries += 1
            # A busy server's own wait holds for everybody and is the gate's.
            if wait_s is None:
                time.sleep(backoff_s(failed[kind] - 1))

    def _try(self, prompt: Prompt) -> tuple[Reply | ServerError, float, float | None]:
        body = payload(prompt, self.dialect)
        entered = self.pace.enter()
        wait_s: float | None = None
        pushed_back = True
        try:
            outcome = self._call(body)
            pushed_back = _kind(outcome) in ("busy", "server", "timeout", "connection")
            if isinstance(outcome, Reply) and outcome.status in _BUSY:
                wait_s = retry_after_s(outcome.headers)
                self._tell_rest(outcome.status, wait_s or 0.0)
        finally:
            latency_s = time.monotonic() - entered
            self.pace.leave(entered, pushed_back=pushed_back, wait_s=wait_s or 0.0)
        if isinstance(outcome, Reply):
            self.endpoint.check_access(outcome)
            if self._learned(body, outcome):
                return ServerError("unasked", "asked again with less."), 0.0, None
        return outcome, latency_s, wait_s

    def _tell_rest(self, status: int, wait_s: float) -> None:
        if self.log is not None and wait_s >= TOLD_REST_S:
            line = f"{self.endpoint.url} is busy (status {status}): asked again in {wait_s:.0f} s."
            print(line, file=self.log, flush=True)

    def _call(self, body: Mapping[str, Any]) -> Reply | ServerError:
        try:
            reply = self.endpoint.chat(body, self.card.budget.timeout_s)
        except ServerError as error:
            return error
        if reply.status == 200 and not reply.body:
            return ServerError("broken", f"the answer is not JSON: {reply.text[:80]!r}.")
        return reply

    def _learned(self, body: Mapping[str, Any], reply: Reply) -> bool:
        """Whether the server has just said which log-probabilities it does not give: first
        those by token id are done without, then all."""
        if reply.status not in (400, 422) or "logprobs" not in body:
            return False
        if "logprob" not in self.endpoint.said(reply):
            return False
        if "logprob_token_ids" in body:
            self.dialect.forms = {}
        else:
            self.dialect.logprobs = False
        return True

    def _note_reach(self, kind: str) -> None:
        with self._lock:
            self._unreached = self._unreached + 1 if kind == "connection" else 0
            if self._unreached >= MOST_UNREACHED * TRIES["connection"]:
                raise RunnerError(f"The server at {self.endpoint.url} has gone. {GOES_ON}")

    def _response(
        self, prompt: Prompt, fallbacks: tuple[str, ...], reply: Reply, latency_s: float
    ) -> Response:
        if reply.status != 200:
            said = f"status {reply.status}: {self.endpoint.said(reply)}"
            blocked = error_code(reply) in _BLOCKED
            return failure(prompt.id, "refused" if blocked else "model_error", said, self.stamp)
        choices = reply.body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return failure(
                prompt.id, "model_error", "the server's list of answers is empty.", self.stamp
            )
        try:
            return self._of_choice(prompt, fallbacks, reply, choices[0], latency_s)
        # Nobody checks what a server sends; what has not the shape of a chat completion is this
        # request's failure, not the run's.
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            said = f"the answer is no chat completion ({type(error).__name__}: {error})."
            return failure(prompt.id, "model_error", said, self.stamp)

    def _of_choice(
        self,
        prompt: Prompt,
        fallbacks: tuple[str, ...],
        reply: Reply,
        choice: Mapping[str, Any],
        latency_s: float,
    ) -> Response:
        message = choice.get("message") or {}
        if choice.get("finish_reason") in _BLOCKED:
            said = "blocked by the server's content filter."
            return failure(prompt.id, "refused", said, self.stamp)
        if message.get("refusal"):
            found = failure(prompt.id, "refused", str(message["refusal"]), self.stamp)
            return replace(found, text=whole(str(message["refusal"])))
        return self._answered(prompt, fallbacks, reply, choice, latency_s)

    def _answered(
        self,
        prompt: Prompt,
        fallbacks: tuple[str, ...],
        reply: Reply,
        choice: Mapping[str, Any],
        latency_s: float,
    ) -> Response:
        names = list(fallbacks)
        logprobs, mass = None, None
        if prompt.choices:
            told = scores(prompt.choices, first_position(choice), self.dialect)
            logprobs, mass = told.logprobs, told.mass
            names += told.fallbacks
            if is_constrained(prompt, self.dialect):
                names.append(CONSTRAINED)
        given_s, used_s = _seconds(prompt, self.card)
        if given_s:
            names.append(SECONDS_BY_CARD)
        # A server may add a date to the name it was asked by.
        if not str(reply.body.get("model") or self.dialect.model).startswith(self.dialect.model):
            names.append(OTHER_MODEL)
        finish = str(choice.get("finish_reason") or "stop")
        cut = _cut(prompt, finish, given_s, used_s)
        return Response(
            id=prompt.id,
            status="truncated" if cut else "ok",
            text=whole(_text((choice.get("message") or {}).get("content"))),
            reason=cut,
            finish_reason=finish,
            choice_logprobs=logprobs and {k: _bounded(v) for k, v in logprobs.items()},
            choice_mass=mass,
            prompt_tokens=_prompt_tokens(reply),
            audio_seconds=given_s,
            audio_seconds_used=used_s,
            latency_s=latency_s,
            card=self.stamp.card,
            image=self.stamp.image,
            precision=self.stamp.precision,
            fallbacks=tuple(dict.fromkeys(names)),
        )


def _text(content: object) -> str:
    """An answer's words: a text, none, or a list of text parts; ValueError for anything else."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    if content is not None and not isinstance(content, str):
        raise ValueError(f"its content is no text but {content!r:.60}")
    return content or ""


def _kind(outcome: Reply | ServerError) -> str:
    """ "answered" for a last word, else which allowance of `TRIES` it uses up."""
    if isinstance(outcome, ServerError):
        return outcome.kind
    if outcome.status in _BUSY:
        return "busy"
    return "server" if outcome.status >= 500 or outcome.status == 408 else "answered"


def _seconds(prompt: Prompt, card: Card) -> tuple[float, float]:
    limit_s = card.capabilities.longest_clip_s or float("inf")
    given = [clip.seconds for clip in prompt.clips]
    return float(sum(given)), float(sum(min(seconds, limit_s) for seconds in given))


def _cut(prompt: Prompt, finish: str, given_s: float, used_s: float) -> str | None:
    if used_s < given_s:
        return f"used {used_s:.1f} s of {given_s:.1f} s of audio, by its card."
    if prompt.choices is None and finish == "length":
        return f"the text ended at its limit of {prompt.max_new_tokens} tokens."
    return None


def _prompt_tokens(reply: Reply) -> int | None:
    usage = reply.body.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _bounded(logprob: float) -> float:
    return min(0.0, max(logprob, LEAST_LOGPROB))
