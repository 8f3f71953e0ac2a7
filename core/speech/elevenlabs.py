"""ElevenLabs, the study's own engine, through its SDK (the `tts` extra); a paid, remote service.

The text of every turn leaves this machine. The key comes from the environment
and is in no message, file or log of ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from core.speech.engine import AccountError, Sound, SpeechError
from core.speech.loudness import trimmed

KEY_VARIABLE = "ELEVENLABS_API_KEY"
ADDRESS_VARIABLE = "ELEVENLABS_BASE_URL"
MODEL = "eleven_multilingual_v2"
RATE_HZ = 24_000
TRIES = 6
LONGEST_PAUSE_S = 60.0
TIMEOUT_S = 120.0
# The service promises no more than its best effort with it; ours is to speak a turn once.
SEED = 0


class ElevenLabs:
    """The engine; see `core.speech.engine.Engine`. Safe to be used by several threads.

    Args:
        key: by default of the environment variable ELEVENLABS_API_KEY.
        address: of the service; by default ELEVENLABS_BASE_URL or the SDK's own.
        pause: waits so many seconds between two tries.
    """

    name = "elevenlabs"

    def __init__(
        self,
        key: str | None = None,
        address: str | None = None,
        model: str = MODEL,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self.settings: Mapping[str, str | float] = {
            "output_format": f"pcm_{RATE_HZ}",
            "voice_settings": "the voice's own",
            "seed": SEED,
        }
        self._key = key if key is not None else os.environ.get(KEY_VARIABLE, "")
        self._address = address or os.environ.get(ADDRESS_VARIABLE) or None
        self._pause = pause
        self._client: Any = None
        self._lock = Lock()
        if not self._key:
            raise AccountError(f"ElevenLabs needs a key: set the environment's {KEY_VARIABLE}.")

    def speak(self, text: str, voice: str) -> Sound:
        """The text in a voice of the account, edges trimmed of silence.

        A busy or broken service is tried again, after the time it asks for or twice
        as long as before.

        Raises:
            AccountError: quota used up, or the key is not accepted.
            SpeechError: it refuses the request, or fails every time.
        """
        reason, wait_s = "", 0.0
        for attempt in range(TRIES):
            if attempt:
                self._pause(wait_s)
            try:
                return self._sound(self._connected(), text, voice)
            except self._errors() as error:
                reason, wait_s = self._judged(error, attempt)
        raise SpeechError(f"ElevenLabs failed {TRIES} times, at last with {reason}.")

    def _sound(self, client: Any, text: str, voice: str) -> Sound:
        chunks = client.text_to_speech.convert(
            voice,
            text=text,
            model_id=self.model,
            output_format=f"pcm_{RATE_HZ}",
            seed=SEED,
            # The SDK's own tries know neither our limit nor a used-up quota.
            request_options={"max_retries": 0},
        )
        content = b"".join(chunks)
        samples = np.frombuffer(content[: len(content) // 2 * 2], "<i2") / np.float32(32768)
        return Sound(trimmed(samples.astype(np.float32), RATE_HZ), RATE_HZ)

    def _judged(self, error: Exception, attempt: int) -> tuple[str, float]:
        """Why a try failed and how long to wait; raises where waiting would not help."""
        status = getattr(error, "status_code", None)
        if status is None:
            return type(error).__name__, _backoff(attempt)
        kind, message = _detail(getattr(error, "body", None))
        said = f"{status} {kind} {message}".replace(self._key, "[key]").strip()
        if kind == "quota_exceeded":
            raise AccountError(f"ElevenLabs: the quota is used up ({said}).") from None
        if status in (401, 403):
            raise AccountError(f"ElevenLabs does not accept the key ({said}).") from None
        if status not in (408, 409, 425, 429) and status < 500:
            raise SpeechError(f"ElevenLabs refused: {said}.") from None
        return said, _asked_for(getattr(error, "headers", None)) or _backoff(attempt)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                module = _sdk("elevenlabs.client")
                self._client = module.ElevenLabs(
                    api_key=self._key, base_url=self._address, timeout=TIMEOUT_S
                )
            return self._client

    def _errors(self) -> tuple[type[Exception], ...]:
        api_error: type[Exception] = _sdk("elevenlabs.core.api_error").ApiError
        http_error: type[Exception] = _sdk("httpx").HTTPError
        return api_error, http_error


def _sdk(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise AccountError("elevenlabs is not installed: pip install -e '.[tts]'.") from error


def _detail(body: Any) -> tuple[str, str]:
    """The service's own words for what went wrong: (status, message)."""
    detail = body.get("detail") if isinstance(body, dict) else getattr(body, "detail", None)
    if isinstance(detail, dict):
        return str(detail.get("status", "")), str(detail.get("message", ""))[:200]
    return "", str(detail or "")[:200]


def _asked_for(headers: Mapping[str, str] | None) -> float | None:
    """Seconds of a Retry-After header, within reason; None without one."""
    said = {name.lower(): value for name, value in (headers or {}).items()}.get("retry-after", "")
    try:
        return min(max(0.0, float(said)), LONGEST_PAUSE_S) or None
    except ValueError:
        return None


def _backoff(attempt: int) -> float:
    return float(min(2.0**attempt, LONGEST_PAUSE_S))
