"""The study's describing model, OpenAI's gpt-audio, asked by the openai SDK.

Every clip and its context leave this machine for OpenAI: `cbt_describe` asks for leave
before. The key is in OPENAI_API_KEY; OPENAI_BASE_URL names another server of the protocol.
"""

from __future__ import annotations

import base64
import io
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from containers.runtime.response_log import ResponseLog
from core.protocol import Request, Response, digest
from experiments.offline import is_this_machine
from experiments.runners import RunnerError
from experiments.sdk_calls import TIMEOUT_S, AskError, EmptyAnswerError, patiently

KEY_VARIABLE = "OPENAI_API_KEY"
WORKERS = 4
_NAME = re.compile(r"gpt-[\w.-]*audio[\w.-]*")
# Asked for where the model takes them; without them an answer is as good, and less repeatable.
_OPTIONAL = ("seed", "top_p")


def is_gpt_audio(model: str) -> bool:
    """Whether a name is one of OpenAI's models that hear, such as gpt-audio-1.5."""
    return bool(_NAME.fullmatch(model))


@dataclass(frozen=True)
class Service:
    """A client and where it leads: `host` is "" for this machine."""

    sdk: Any
    client: Any
    model: str
    host: str

    @property
    def digest(self) -> str:
        """What decides an answer beside the request: model and host."""
        return digest({"service": "openai", "model": self.model, "host": self.host})


def service(model: str, *, offline: bool) -> Service:
    """A client that asks nothing yet.

    Raises:
        RunnerError: the SDK or the key is missing, or `offline` forbids the host.
    """
    try:
        sdk: Any = import_module("openai")
    except ImportError as error:
        raise RunnerError(f"{model} needs the openai SDK: pip install -e '.[label]'.") from error
    if not os.environ.get(KEY_VARIABLE):
        raise RunnerError(f"{model} needs a key: set {KEY_VARIABLE}.")
    client = sdk.OpenAI(max_retries=0, timeout=TIMEOUT_S)
    host = str(client.base_url.host)
    here = is_this_machine(host)
    if offline and not here:
        raise RunnerError(f"{model} is at {host}, and offline=true forbids asking it.")
    return Service(sdk, client, model, "" if here else host)


def ask(
    asked: Service,
    requests: Sequence[Request],
    audio: Path,
    responses: Path,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Ask every request and write each answer as it comes.

    Raises:
        RunnerError: the service refuses everything; what was answered is in the file.
    """
    with ResponseLog(responses) as log, ThreadPoolExecutor(WORKERS) as pool:
        waiting = {pool.submit(_answer, asked, one, audio): one for one in requests}
        try:
            for number, done in enumerate(as_completed(waiting), start=1):
                log.append([done.result()])
                if number % 50 == 0 or number == len(waiting):
                    progress(f"{number:,} of {len(waiting):,} answered")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _answer(asked: Service, request: Request, audio: Path) -> Response:
    started = time.monotonic()
    body = _body(asked.model, request, audio)
    dropped: list[str] = []

    def once() -> Any:
        try:
            reply = asked.client.chat.completions.create(**body)
        except asked.sdk.BadRequestError as error:
            name = getattr(error, "param", None)
            if name not in _OPTIONAL or name not in body:
                raise
            del body[name]
            dropped.append(f"{name}_not_sent")
            return once()
        choices = getattr(reply, "choices", None)
        if not choices:
            raise EmptyAnswerError("a reply without an answer")
        choice = choices[0]
        if not _is_whole(choice):
            raise EmptyAnswerError("an empty answer")
        return reply

    try:
        reply = patiently(asked.sdk, once, "OpenAI", KEY_VARIABLE)
    except AskError as error:
        return Response(request.id, "model_error", reason=str(error), finish_reason="error")
    choice = reply.choices[0]
    status, text, reason = _said(choice)
    return Response(
        request.id,
        status,
        text=text,
        reason=reason,
        finish_reason=str(choice.finish_reason or "stop"),
        prompt_tokens=getattr(reply.usage, "prompt_tokens", None),
        latency_s=time.monotonic() - started,
        card=asked.digest,
        image=str(getattr(reply, "model", None) or asked.model),
        precision="service",
        fallbacks=tuple(dropped),
    )


def _is_whole(choice: Any) -> bool:
    message = choice.message
    blocked = choice.finish_reason in ("content_filter", "length")
    return bool(message and (message.content or getattr(message, "refusal", None))) or blocked


def _said(choice: Any) -> tuple[Literal["ok", "refused"], str, str | None]:
    message = choice.message
    if refusal := getattr(message, "refusal", None):
        return "refused", str(refusal), "the model refused"
    if choice.finish_reason == "content_filter":
        return "refused", "", "blocked by the service's content filter"
    return "ok", str(message.content or ""), None


def _body(model: str, request: Request, audio: Path) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in request.parts:
        if "audio" in part:
            sound = {"data": _encoded(audio / part["audio"]), "format": "wav"}
            content.append({"type": "input_audio", "input_audio": sound})
        elif content and content[-1]["type"] == "text":
            # Neighbouring parts are one text, as they are in every adapter.
            content[-1]["text"] += part["text"]
        else:
            content.append({"type": "text", "text": part["text"]})
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    return {
        "model": model,
        "modalities": ["text"],
        "messages": messages,
        "max_completion_tokens": request.max_new_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed % 2**31,
    }


def _encoded(path: Path) -> str:
    """Base64 of a 16-bit WAV."""
    import soundfile

    samples, rate_hz = soundfile.read(path, dtype="float32")
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate_hz, subtype="PCM_16", format="WAV")
    return base64.b64encode(stream.getvalue()).decode("ascii")
