"""An OpenAI-compatible server: its address, what it serves, and one call that never surprises.

Every way a call can end is a `Reply` or a `ServerError`; nothing else is raised.
The key is read from UNDERTONE_API_KEY, sent to that server alone, and never shown.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.auth import AuthBase

from experiments.credentials import holds_credentials
from experiments.offline import is_this_machine
from experiments.runners import RunnerError, Site

KEY_VARIABLE = "UNDERTONE_API_KEY"
CONNECT_S = 10.0
ASK_S = 30.0
MOST_BYTES = 8 << 20
_CHUNK = 1 << 16


class ServerError(Exception):
    """A call that brought no reply: `kind` is "connection", "timeout" or "broken"."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class Reply:
    """What came back: `body` is {} where it is no JSON object."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]
    text: str


class Endpoint:
    """A server by its address, such as http://host:8000/v1.

    Raises:
        RunnerError: for an address that is none, or that is beyond this machine while
            that is forbidden.
    """

    def __init__(self, site: Site) -> None:
        self.url = site.endpoint.rstrip("/")
        parts = _checked(self.url)
        self.host = parts.hostname or ""
        self.is_here = is_this_machine(self.host)
        self.is_plain = parts.scheme == "http"
        self._root = f"{parts.scheme}://{parts.netloc}"
        if site.offline and not self.is_here:
            raise RunnerError(
                f"endpoint {self.url} is not on this machine and offline=true forbids asking it; "
                "run with offline=false, or serve the model on localhost."
            )
        self._key = os.environ.get(KEY_VARIABLE, "").strip()
        self._local = threading.local()

    def models(self) -> list[str]:
        """Names of the models it serves.

        Raises:
            RunnerError: nobody answers there, or not with a list of models.
        """
        try:
            reply = self.call("GET", f"{self.url}/models", None, ASK_S)
        except ServerError as error:
            raise RunnerError(
                f"No server answers at {self.url} ({str(error).rstrip('.')}). Start one (mlflow "
                "run . -e serve_args -P model=... prints how), or give another endpoint."
            ) from error
        self.check_access(reply)
        listed = reply.body.get("data")
        if reply.status != 200 or not isinstance(listed, list):
            raise RunnerError(
                f"{self.url}/models: expected a list of models, found status {reply.status} and "
                f"{reply.text[:80]!r}. The endpoint of an OpenAI-compatible server ends in /v1."
            )
        return [str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry]

    def vllm_version(self) -> str | None:
        """The version of a vLLM server, or None for any other."""
        try:
            reply = self.call("GET", f"{self._root}/version", None, ASK_S)
        except ServerError:
            return None
        version = reply.body.get("version")
        return str(version) if reply.status == 200 and version else None

    def token_ids(self, model: str, text: str) -> list[int] | None:
        """How vLLM's tokenizer spells a text, or None where it cannot be asked."""
        words = {"model": model, "prompt": text, "add_special_tokens": False}
        try:
            reply = self.call("POST", f"{self._root}/tokenize", words, ASK_S)
        except ServerError:
            return None
        tokens = reply.body.get("tokens")
        if reply.status != 200 or not isinstance(tokens, list):
            return None
        try:
            return [int(token) for token in tokens]
        except (TypeError, ValueError, OverflowError):
            return None

    def chat(self, body: Mapping[str, Any], timeout_s: float) -> Reply:
        """One chat completion; see `call`."""
        return self.call("POST", f"{self.url}/chat/completions", body, timeout_s)

    def check_access(self, reply: Reply) -> None:
        """Raise RunnerError for a reply that all others would be like: no access, no such page,
        no quota."""
        if reply.status in (401, 403):
            known = f"{KEY_VARIABLE} is set" if self._key else f"{KEY_VARIABLE} is not set"
            raise RunnerError(
                f"{self.url} refuses access (status {reply.status}; {known}): "
                f"{self.said(reply)} Set {KEY_VARIABLE} to a key of this server."
            )
        if 300 <= reply.status < 400:
            elsewhere = reply.headers.get("Location", "an address it does not name")
            raise RunnerError(
                f"{self.url} sends on to {elsewhere} (status {reply.status}), where nothing was "
                "sent. If that is the server, give its address up to /v1."
            )
        if reply.status == 404:
            raise RunnerError(
                f"{self.url} has no such page (status 404): {self.said(reply)} Give the endpoint "
                "up to /v1."
            )
        if reply.status == 402 or error_code(reply) == "insufficient_quota":
            raise RunnerError(f"{self.url}: the account has no quota left: {self.said(reply)}")

    def said(self, reply: Reply) -> str:
        """A server's own words about an error, in one line and without our key."""
        error = reply.body.get("error", reply.body)
        words = error.get("message") if isinstance(error, dict) else error
        line = " ".join(str(words or reply.text).split())[:300]
        return line.replace(self._key, "***") if self._key else line

    def call(
        self, method: str, url: str, body: Mapping[str, Any] | None, timeout_s: float
    ) -> Reply:
        """One exchange, over in `timeout_s` even where the server sends a byte a minute.

        Raises:
            ServerError: where it did not come to a whole reply.
        """
        deadline = time.monotonic() + timeout_s
        try:
            with self._session().request(
                method,
                url,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json"} if body is not None else {},
                timeout=(min(CONNECT_S, timeout_s), timeout_s),
                stream=True,
                # A redirect would carry the audio to a host nobody named.
                allow_redirects=False,
            ) as response:
                text = _read(response, deadline, timeout_s)
                return Reply(response.status_code, response.headers, _object(text), text)
        except urllib3.exceptions.TimeoutError as error:
            raise ServerError("timeout", f"no answer within {timeout_s:g} s.") from error
        except urllib3.exceptions.HTTPError as error:
            raise ServerError("broken", "the connection broke off.") from error
        except requests.Timeout as error:
            kind = "connection" if isinstance(error, requests.ConnectTimeout) else "timeout"
            raise ServerError(kind, f"no answer within {timeout_s:g} s.") from error
        except requests.ConnectionError as error:
            raise ServerError(*_cause(error)) from error
        except requests.RequestException as error:
            raise ServerError("broken", f"{type(error).__name__}, it broke off.") from error

    def _session(self) -> requests.Session:
        # One a thread: a session's connections are not made to be shared.
        if not hasattr(self._local, "session"):
            session = requests.Session()
            session.trust_env = not self.is_here
            # Set even without a key, or requests would take a login from ~/.netrc.
            session.auth = _Bearer(self._key)
            self._local.session = session
        found: requests.Session = self._local.session
        return found


class _Bearer(AuthBase):
    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _checked(url: str) -> Any:
    if not url:
        raise RunnerError(
            "runner=server needs an endpoint: -P endpoint=http://localhost:8000/v1 "
            "(mlflow run . -e serve_args -P model=... prints how to start one)."
        )
    # Before any sentence that would repeat it.
    if holds_credentials(url) or "?" in url or "#" in url:
        raise RunnerError(
            f"endpoint: give the address alone; a key goes in {KEY_VARIABLE}, which no log shows."
        )
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise RunnerError(f"endpoint: expected an address like http://host:8000/v1, found {url!r}.")
    return parts


def _read(response: requests.Response, deadline: float, timeout_s: float) -> str:
    content = bytearray()
    # What is there, not what fills a buffer: each byte resets the socket's own time limit.
    while piece := response.raw.read1(_CHUNK, decode_content=True):
        content += piece
        if time.monotonic() > deadline:
            raise ServerError("timeout", f"no answer within {timeout_s:g} s.")
        if len(content) > MOST_BYTES:
            raise ServerError("broken", f"the answer is larger than {MOST_BYTES >> 20} MiB.")
    return content.decode(errors="replace")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def error_code(reply: Reply) -> str:
    """The `code` of an error as OpenAI's servers give it; "" where there is none."""
    error = reply.body.get("error")
    return str(error.get("code")) if isinstance(error, dict) else ""


def _cause(error: requests.ConnectionError) -> tuple[str, str]:
    words = repr(error)
    if "refused" in words:
        return "connection", "the connection was refused."
    if "NameResolution" in words or "getaddrinfo" in words:
        return "connection", "there is no host of that name."
    if "Read timed out" in words:
        return "timeout", "no answer in time."
    if isinstance(error, requests.exceptions.SSLError):
        return "connection", "its certificate is not trusted."
    return "broken", "the connection broke off."
