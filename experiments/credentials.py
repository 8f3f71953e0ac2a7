"""Passwords and keys in addresses: moved out of them, refused, or not shown.

MLflow records the words of its command line, and every store's address ends up in a
message sooner or later; so none of them may hold a secret.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

NAME, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
HIDDEN = "***"
_LOGIN = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://)(?P<login>[^/?#\s'\"]*)@", re.IGNORECASE)
_KEY = re.compile(
    r"(?P<before>[?&;][\w.-]*(?:key|token|secret|password|passwd|pwd|auth|signature|credential)"
    r"[\w.-]*=)(?P<key>[^&;#\s'\"]+)",
    re.IGNORECASE,
)


def holds_credentials(text: str) -> bool:
    """Whether an address in a text has a login, or a query that looks like a key."""
    return bool(_LOGIN.search(text) or _KEY.search(text))


def shown(text: str) -> str:
    """A text with `***` for the login and the keys of every address in it."""
    hidden = _LOGIN.sub(rf"\g<before>{HIDDEN}@", text)
    return _KEY.sub(rf"\g<before>{HIDDEN}", hidden)


def take_login_out_of_the_store() -> None:
    """Give MLflow the login of http://name:password@host by its own two variables instead.

    Its address is printed, kept beside results and passed to every child; the variables are not.
    Those that are set already win.
    """
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    address = urlsplit(uri)
    if address.scheme not in ("http", "https") or "@" not in address.netloc:
        return
    login, _, host = address.netloc.rpartition("@")
    name, _, password = login.partition(":")
    os.environ["MLFLOW_TRACKING_URI"] = address._replace(netloc=host).geturl()
    if name:
        os.environ.setdefault(NAME, unquote(name))
        os.environ.setdefault(PASSWORD, unquote(password))
