"""A call to a paid service by its own SDK, tried again where waiting may help.

OpenAI's and Anthropic's SDKs name their errors alike, so one way of trying serves both.
The SDKs' own tries are switched off by whoever makes the client: they would not say what
they wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from experiments.runners import RunnerError

TRIES = 4
TIMEOUT_S = 120.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


class AskError(RuntimeError):
    """One question that got no answer; the others may."""


class EmptyAnswerError(RuntimeError):
    """A reply without what was asked for; worth another try."""


def patiently(sdk: Any, once: Callable[[], Any], service: str, key_variable: str) -> Any:
    """What `once` gives, after up to `TRIES` tries.

    Waits as long as a Retry-After asks for, else twice as long each time.

    Args:
        sdk: the module, with its exceptions.
        service: its name, for messages.
        key_variable: where its key is.

    Raises:
        AskError: this question is refused, or all tries failed.
        RunnerError: every other question would be refused too: the key, the model, the quota.
    """
    reason, wait = "", None
    for attempt in range(TRIES):
        try:
            return once()
        except (sdk.AuthenticationError, sdk.PermissionDeniedError) as error:
            raise RunnerError(
                f"{service} does not accept the key: check {key_variable}."
            ) from error
        except sdk.NotFoundError as error:
            raise RunnerError(f"{service} has no such model or page: {said(error)}") from error
        except sdk.APIStatusError as error:
            if "insufficient_quota" in said(error) or error.status_code == 402:
                raise RunnerError(f"{service}: the account has no quota left.") from error
            if error.status_code not in (408, 409, 429) and error.status_code < 500:
                raise AskError(f"refused with status {error.status_code}: {said(error)}") from error
            reason = f"status {error.status_code}"
            wait = error.response.headers.get("retry-after")
        except EmptyAnswerError as error:
            reason, wait = str(error), None
        # The SDKs let a reply that is no JSON through as it fails in their parser.
        except (sdk.APIError, ValueError) as error:
            reason, wait = type(error).__name__, None
        if attempt < TRIES - 1:
            time.sleep(pause_s(wait, attempt))
    raise AskError(f"failed {TRIES} times, at last with {reason}")


def said(error: Any) -> str:
    """The service's own words about an error, in one line."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    code = body.get("code") if isinstance(body, dict) else None
    words = " ".join(str(message or error).split())[:200]
    return f"{words} ({code})" if code else words


def pause_s(asked_for: str | None, attempt: int) -> float:
    """Seconds before the next try.

    Args:
        asked_for: a Retry-After header's words.
        attempt: from 0.
    """
    try:
        # In this order "nan" is no wait.
        return min(max(0.0, float(asked_for or "")), LONGEST_PAUSE_S)
    except ValueError:
        return float(min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S))
