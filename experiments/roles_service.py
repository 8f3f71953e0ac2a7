"""Services that are asked who is who: Claude by its SDK, or an OpenAI-compatible endpoint.

A transcript of therapy is personal. An endpoint on this machine keeps it here; Claude and
any other endpoint are sent every word of the transcript (no sound), and only when
max_requests allows as many recordings. Answers are kept by what was asked of whom.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from core.asked_roles import answer_schema, question, speakers, told
from core.protocol import digest
from core.replacing import replace_text
from core.roles import Roles
from experiments.offline import is_this_machine
from experiments.options import OptionError
from experiments.runners import RunnerError, Site
from experiments.runners._endpoint import Endpoint, ServerError
from experiments.sdk_calls import TIMEOUT_S, TRIES, AskError, patiently, pause_s

CLAUDE = "claude-sonnet-4-5"
MOST_TOKENS = 500
_TOOL = "give_roles"

Ask = Callable[[str, list[str]], Any]


@dataclass
class Service:
    """Who is asked, and what was answered before.

    Attributes:
        name: of the model, with the host it runs on.
        host: "" for this machine.
        kept: folder of answers.
        may_send: recordings that may still be sent away.
    """

    name: str
    host: str
    ask: Ask
    kept: Path
    may_send: int

    def roles(self, turns: pd.DataFrame) -> Roles:
        """The roles of a recording's speakers; refused where the service gave no answer.

        Raises:
            OptionError: it would be sent away without leave.
            RunnerError: the service refuses everything, e.g. for want of a key.
        """
        names, asked = speakers(turns), question(turns)
        path = self.kept / f"{digest({'asked': asked, 'of': self.name})}.json"
        try:
            return told(json.loads(path.read_text(encoding="utf-8"))["answer"], names, self.name)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        self._allow(asked)
        try:
            answer = self.ask(asked, names)
        except AskError as error:
            return Roles({}, float("nan"), f"{self.name}: {error}", (), {}, self.name)
        found = told(answer, names, self.name)
        # A refusal is worth asking about again; an answer is not.
        if found.refused is None:
            self.kept.mkdir(parents=True, exist_ok=True)
            replace_text(path, json.dumps({"answer": answer, "of": self.name}) + "\n")
        return found

    def _allow(self, asked: str) -> None:
        if not self.host:
            return
        if self.may_send <= 0:
            raise OptionError(
                f"max_requests: a transcript of {len(asked.split()):,} words would leave this "
                f"machine for {self.host}; allow as many recordings with max_requests=N, or keep "
                "them here with roles=offline or an endpoint on this machine."
            )
        self.may_send -= 1


def claude(model: str, kept: Path, may_send: int) -> Service:
    """Claude, by the anthropic SDK; its key in ANTHROPIC_API_KEY.

    Raises:
        RunnerError: the SDK or the key is missing.
    """
    try:
        sdk: Any = import_module("anthropic")
    except ImportError as error:
        raise RunnerError(
            "roles=claude needs the anthropic SDK: pip install -e '.[label]'."
        ) from error
    if not os.environ.get("ANTHROPIC_API_KEY"):
        raise RunnerError("roles=claude needs a key: set ANTHROPIC_API_KEY.")
    # The SDK's own tries would not say what they wait for.
    client = sdk.Anthropic(max_retries=0, timeout=TIMEOUT_S)

    def once(asked: str, names: list[str]) -> Any:
        answer = client.messages.create(
            model=model,
            max_tokens=MOST_TOKENS,
            temperature=0,
            messages=[{"role": "user", "content": asked}],
            tools=[
                {
                    "name": _TOOL,
                    "description": "Give the role of every speaker.",
                    "input_schema": answer_schema(names),
                }
            ],
            tool_choice={"type": "tool", "name": _TOOL},
        )
        for block in answer.content or ():
            if block.type == "tool_use":
                return block.input
        raise AskError("the answer holds no roles")

    def ask(asked: str, names: list[str]) -> Any:
        return patiently(sdk, lambda: once(asked, names), "Claude", "ANTHROPIC_API_KEY")

    host = str(client.base_url.host)
    return Service(model, "" if is_this_machine(host) else host, ask, kept, may_send)


def endpoint(address: str, model: str, kept: Path, may_send: int) -> Service:
    """A model behind an OpenAI-compatible server; its key in UNDERTONE_API_KEY.

    Raises:
        RunnerError: an address that is none, or nobody answers there.
    """
    server = Endpoint(Site(address, model))
    served = server.models() if not model else [model]
    if len(served) != 1:
        raise RunnerError(
            f"{server.url} serves {', '.join(served) or 'nothing'}; name one with roles_model."
        )

    def ask(asked: str, names: list[str]) -> Any:
        body = {
            "model": served[0],
            "messages": [{"role": "user", "content": asked}],
            "temperature": 0,
            "max_tokens": MOST_TOKENS,
        }
        for attempt in range(TRIES):
            wait = None
            try:
                reply = server.chat(body, TIMEOUT_S)
                server.check_access(reply)
                if reply.status == 200:
                    text = _content(reply.body)
                    if text:
                        return text
                    reason = "an empty answer"
                elif reply.status in (408, 409, 429) or reply.status >= 500:
                    reason, wait = f"status {reply.status}", reply.headers.get("Retry-After")
                else:
                    raise AskError(f"refused with status {reply.status}: {server.said(reply)}")
            except ServerError as error:
                reason = str(error)
            if attempt < TRIES - 1:
                time.sleep(pause_s(wait, attempt))
        raise AskError(f"failed {TRIES} times, at last with {reason}")

    name = f"{served[0]} at {server.host}"
    return Service(name, "" if server.is_here else server.host, ask, kept, may_send)


def _content(body: dict[str, Any]) -> str:
    try:
        return str(body["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError):
        return ""
