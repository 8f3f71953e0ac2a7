"""The local server behind `browse`: a page, its data and its clips, to this machine alone.

It listens on the loopback, answers only to a browser that opened the printed address
(whose key becomes a cookie: other users of a shared machine have no business with a
patient's voice), only under a loopback name (a page elsewhere that points its own name
here gets nothing), and never turns words of an address into a path: files are found by
item, through the manifest. Standard library only.
"""

from __future__ import annotations

import hmac
import io
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from core.audio import RATE_HZ, AudioError, read_clip
from core.manifest import is_nothing
from experiments import browse_index
from experiments.browse_index import Shown

PAGE = Path(__file__).resolve().parent / "browse_page"
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/list.js": ("list.js", "text/javascript; charset=utf-8"),
    "/item.js": ("item.js", "text/javascript; charset=utf-8"),
}
COOKIE = "undertone_browse"
KEPT_CLIPS = 16
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
# No clip has 10**18 bytes, and Python reads no number of thousands of digits.
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
# Nothing from elsewhere, nothing inline, nothing framed: a transcript is text whatever it holds.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "media-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Reply:
    """What goes back: a status, a type, bytes, and headers beyond `HEADERS`."""

    status: int
    type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """What is served: `key` opens it, `sets` gives its sets of runs by name."""

    key: str
    sets: Callable[[], Mapping[str, Shown]]


def reply(site: Site, target: str, headers: Mapping[str, str]) -> Reply:
    """The answer to a GET.

    Args:
        target: path and query as the browser sent them.
        headers: of the request; names as in `Host`.
    """
    if not _HOST.fullmatch(headers.get("Host", "")):
        return _said(403, "Open this page as 127.0.0.1 or localhost.")
    # Another port of this machine is the same site and somebody else's page.
    elsewhere = headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")
    if elsewhere and not _navigates(headers):
        return _said(403, "Not for pages of other sites.")
    address = urlsplit(target)
    asked = dict(parse_qsl(address.query, keep_blank_values=True))
    if address.path == "/" and "key" in asked:
        return _entered(site, asked)
    if not _is_known(site, headers):
        return _said(403, "Open the address that `browse` printed: it holds the key to this page.")
    if address.path in FILES:
        name, kind = FILES[address.path]
        return Reply(200, kind, (PAGE / name).read_bytes())
    return _data(site, address.path, asked, headers)


def _navigates(headers: Mapping[str, str]) -> bool:
    return headers.get("Sec-Fetch-Mode") == "navigate"


def _entered(site: Site, asked: dict[str, str]) -> Reply:
    """Take the key out of the address, where it would be copied with a link."""
    key = asked.pop("key")
    if not hmac.compare_digest(key.encode(), site.key.encode()):
        return _said(403, "This address is of another `browse`; open the one it printed last.")
    cookie = f"{COOKIE}={site.key}; Path=/; HttpOnly; SameSite=Strict"
    place = "/" + (f"?{urlencode(asked)}" if asked else "")
    return Reply(303, "text/plain", b"", {"Location": place, "Set-Cookie": cookie})


def _is_known(site: Site, headers: Mapping[str, str]) -> bool:
    try:
        cookies = SimpleCookie(headers.get("Cookie", ""))
    except CookieError:
        return False
    shown = cookies[COOKIE].value if COOKIE in cookies else ""
    return hmac.compare_digest(shown.encode(), site.key.encode())


def _data(site: Site, path: str, asked: Mapping[str, str], headers: Mapping[str, str]) -> Reply:
    sets = site.sets()
    if path == "/sets":
        return _json([_introduced(shown) for shown in sets.values()])
    shown = sets.get(asked.get("set", ""))
    if shown is None:
        return _said(404, "There is no such set of runs.")
    if path == "/index":
        return _json(browse_index.index(shown))
    if path == "/search":
        return _json(browse_index.found(shown, asked.get("words", "")))
    item_id = asked.get("item", "")
    if path == "/item":
        found = browse_index.item(shown, item_id)
        return _said(404, "There is no such item.") if found is None else _json(found)
    if path == "/clip":
        return _clip(shown, item_id, headers)
    return _said(404, "There is nothing here.")


def _introduced(shown: Shown) -> dict[str, Any]:
    runs = shown.runs
    return {
        "key": runs.key,
        "task": runs.task,
        "dataset": runs.dataset,
        "hash": runs.hash[:8],
        "items": len(shown.place),
        "runs": len(runs.runs),
    }


def _clip(shown: Shown, item_id: str, headers: Mapping[str, str]) -> Reply:
    """The clip as models are given it: 16 kHz, mono, the part of the file the row names."""
    row = shown.items.get(item_id)
    if shown.dataset is None or row is None or not isinstance(row.get("audio"), str):
        return _said(404, "There is no clip of this item.")
    path = (shown.dataset.folder / row["audio"]).resolve()
    if not path.is_relative_to(shown.dataset.folder) or not path.is_file():
        return _said(404, "The clip's file is gone.")
    start_s, end_s = (
        None if is_nothing(row.get(name)) else float(row[name]) for name in ("start_s", "end_s")
    )
    try:
        body = _wav(path, start_s, end_s, path.stat().st_mtime_ns)
    except (AudioError, OSError) as error:
        return _said(422, f"The clip cannot be played: {error}")
    return ranged(body, "audio/wav", headers.get("Range"))


@lru_cache(maxsize=KEPT_CLIPS)
def _wav(path: Path, start_s: float | None, end_s: float | None, changed: int) -> bytes:
    import soundfile

    samples = read_clip(path, start_s=start_s, end_s=end_s).samples
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE_HZ, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def ranged(body: bytes, kind: str, wanted: str | None) -> Reply:
    """The part of a file a player asked for, so that it can seek; all of it for anything odd.

    Source: RFC 9110, section 14: a range that is not understood is ignored, one that
    begins behind the end is refused with the length.
    """
    whole = {"Accept-Ranges": "bytes"}
    match = _RANGE.fullmatch(wanted or "")
    if not match or match.groups() == ("", ""):
        return Reply(200, kind, body, whole)
    first, last = match.groups()
    # "-500" is the last 500 bytes.
    start = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last), len(body) - 1) if first and last else len(body) - 1
    if first and last and int(last) < int(first):
        return Reply(200, kind, body, whole)
    if start >= len(body):
        return Reply(416, "text/plain", b"", {"Content-Range": f"bytes */{len(body)}"})
    said = {**whole, "Content-Range": f"bytes {start}-{end}/{len(body)}"}
    return Reply(206, kind, body[start : end + 1], said)


def _json(value: Any) -> Reply:
    content = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Reply(200, "application/json", content.encode())


def _said(status: int, why: str) -> Reply:
    return Reply(status, "text/plain; charset=utf-8", why.encode("utf-8", "replace"))


def kept_key(folder: Path) -> str:
    """The folder's key, for its owner's eyes: links kept from an earlier time stay good."""
    path = folder / "browse-key"
    try:
        known = path.read_text(encoding="ascii").strip()
        if re.fullmatch(r"[\w-]{20,}", known):
            return known
    except (OSError, UnicodeDecodeError):
        pass
    key = secrets.token_urlsafe(24)
    try:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(key, encoding="ascii")
    except OSError:
        # A folder that may only be read has a key as long as the page runs.
        return key
    return key


def server(site: Site, port: int) -> ThreadingHTTPServer:
    """A server on the loopback, not yet serving; 0 takes a free port.

    Raises:
        OSError: the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "undertone"
        sys_version = ""
        timeout = 60

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            try:
                said = reply(site, self.path, {k.title(): v for k, v in self.headers.items()})
            except Exception as error:
                # A page that waits for ever says less than one that shows what went wrong.
                said = _said(500, f"{type(error).__name__}: {error}")
            self.send_response(said.status)
            for name, value in {**HEADERS, **said.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", said.type)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            if with_body:
                self.wfile.write(said.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: ids of patients' turns have no place in a log."""

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, TimeoutError):
                # A player drops a connection whenever it seeks.
                return

    class Local(ThreadingHTTPServer):
        daemon_threads = True

    return Local(("127.0.0.1", port), Handler)
