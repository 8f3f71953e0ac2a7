"""The frame of a run's HTML artifacts: one file, nothing loaded from anywhere, all words escaped.

MLflow shows such a file in a sandboxed frame; it opens as well from a folder.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "artifact_pages"


def text(value: object) -> str:
    """Words as HTML shows them, whatever they hold."""
    return html.escape(str(value), quote=True)


def page(title: str, body: str, script: str = "") -> str:
    """A whole document.

    Args:
        title: words, not markup.
        body: markup; the caller escapes what it puts there (`text`).
        script: name of a file of artifact_pages/ to put inside; "" forbids any script.
    """
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    code = (FOLDER / script).read_text(encoding="utf-8") if script else ""
    scripts = "script-src 'unsafe-inline'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}media-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{text(title)}</h1>\n{body}\n"
        + (f'<script type="module">{code}</script>\n' if code else "")
        + "</body>\n</html>\n"
    )


def data(name: str, value: Any) -> str:
    """A value for a script to read, as an element of this id; no word of it ends the element."""
    content = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    escaped = content.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{escaped}</script>'
