"""Recordings of a release: those on disk matched by id, the others fetched with yt-dlp.

A recording that cannot be had is a `Lost` with one of a few kinds, never an exception:
videos go private or are removed, and a build of the others is still worth having.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlparse

Kind = Literal[
    "private",
    "removed",
    "members_only",
    "age_gated",
    "region_locked",
    "bot_checked",
    "network",
    "not_asked",
    "not_on_disk",
    "ambiguous",
    "other",
]

# Said of a recording in the data report; what a user can do about it comes with it.
MEANING: Mapping[Kind, str] = {
    "private": "the video is private",
    "removed": "the video or its channel is gone",
    "members_only": "the video is for paying members",
    "age_gated": "the video asks for an account of age; give one with cookies=FILE",
    "region_locked": "the video is not shown in this country",
    "bot_checked": "YouTube took us for a robot; wait some hours, or give cookies=FILE",
    "network": "the network failed; the same command tries again",
    "not_asked": "not asked for after others had failed; the same command tries again",
    "not_on_disk": "no file of this id in the folder, and fetch=false",
    "ambiguous": "several files of this id in the folder; keep one",
    "other": "yt-dlp gave no recording",
}

# First match wins: a region lock also says "Video unavailable", and so does a private video.
_SIGNS: tuple[tuple[Kind, str], ...] = (
    ("bot_checked", r"not a bot|captcha|rate-limited|HTTP Error 429|HTTP Error 403"),
    ("age_gated", r"confirm your age|age-restricted|inappropriate for some"),
    ("members_only", r"members-only|join this channel|requires payment|available to .* members"),
    ("private", r"private video|video is private|is private"),
    ("region_locked", r"(in|from) your (country|location)|geo.?restrict|your region"),
    (
        "removed",
        r"removed|terminated|no longer (available|exists)|does ?n.t exist|does not exist|closed"
        r"|HTTP Error (404|410)|video unavailable|video is (un|not )available"
        r"|blocked it on copyright",
    ),
    (
        "network",
        r"resolve|timed? ?out|connection|transporterror|ssl|proxy|network|HTTP Error 5\d\d"
        r"|unable to (download|connect)|incompleteread|bytes read",
    ),
)
# Left behind by yt-dlp and by people beside the sound.
_NOT_SOUND = {
    *(".json", ".toml", ".txt", ".csv", ".tsv", ".md", ".xlsx", ".pdf", ".vtt", ".srt", ".ass"),
    *(".lrc", ".stm", ".rttm", ".jpg", ".jpeg", ".png", ".webp", ".description", ".temp"),
}
# After so many in a row the next would fail as well, and asking on is what gets one blocked.
FAILURES_IN_A_ROW = 3
_OF_US_ALL: tuple[Kind, ...] = ("bot_checked", "network")
_YOUTUBE_ID = re.compile(r"[\w-]{11}")


class FetchError(RuntimeError):
    """A recording that was not given; `kind` says why, the message what was said."""

    def __init__(self, kind: Kind, said: str) -> None:
        super().__init__(f"{MEANING[kind]} ({said})" if said else MEANING[kind])
        self.kind: Kind = kind


@dataclass(frozen=True)
class Wanted:
    """A recording of a release: its id there and its address."""

    session_id: str
    url: str


@dataclass(frozen=True)
class Lost:
    """A recording that could not be had."""

    session_id: str
    kind: Kind
    reason: str


@dataclass(frozen=True)
class Obtained:
    """`files` by session id; `lost` in the order asked for."""

    files: Mapping[str, Path]
    lost: tuple[Lost, ...]


def obtain(
    wanted: list[Wanted],
    on_disk: list[Path],
    fetch: Callable[[Wanted], Path] | None,
    *,
    pause_s: float = 0.0,
    progress: Callable[[str], None] = lambda line: None,
) -> Obtained:
    """Every recording from one of these folders, or else by `fetch`.

    Args:
        on_disk: folders, the first that holds a recording wins.
        fetch: gives a file or raises `FetchError`; None where nothing is to be fetched.
        pause_s: between two fetches.
        progress: told a line after each fetch.
    """
    files: dict[str, Path] = {}
    lost: list[Lost] = []
    in_a_row = fetches = 0
    for one in wanted:
        try:
            path = next((p for folder in on_disk if (p := on_disk_file(folder, one))), None)
            if path is None:
                if fetch is None:
                    raise FetchError("not_on_disk", "")
                if in_a_row >= FAILURES_IN_A_ROW:
                    raise FetchError("not_asked", "")
                if fetches:
                    time.sleep(pause_s)
                fetches += 1
                path = fetch(one)
                in_a_row = 0
                progress(f"{one.session_id}: fetched")
            files[one.session_id] = path
        except FetchError as error:
            lost.append(Lost(one.session_id, error.kind, str(error)))
            if error.kind != "not_asked":
                in_a_row = in_a_row + 1 if error.kind in _OF_US_ALL else in_a_row
                progress(f"{one.session_id}: {error}")
    return Obtained(files, tuple(lost))


def on_disk_file(folder: Path, wanted: Wanted) -> Path | None:
    """The file of a recording, by its id or its YouTube id, or None.

    Named `007.m4a`, or with the id apart from other words: `007_panic.mp3`,
    `Panic role-play [dQw4w9WgXcQ].webm`.

    Raises:
        FetchError: several fit and none is named by the id alone.
    """
    if not folder.is_dir():
        return None
    there = [path for path in sorted(folder.iterdir()) if is_sound(path)]
    if exact := [path for path in there if path.stem == wanted.session_id]:
        fitting = exact
    else:
        fitting = [path for path in there if _names(path.stem, wanted)]
    if len(fitting) > 1:
        raise FetchError("ambiguous", ", ".join(path.name for path in fitting))
    return fitting[0] if fitting else None


def is_sound(path: Path) -> bool:
    """Whether a file may be a recording, by its name: of any format, but whole and no side file."""
    return (
        path.is_file()
        and not path.name.startswith(".")
        and path.suffix.lower() not in _NOT_SOUND
        and not re.search(r"\.(part|ytdl)\b", path.name)
    )


def kind_of(said: str) -> Kind:
    """What kind of failure yt-dlp's words are."""
    signs = (kind for kind, sign in _SIGNS if re.search(sign, said.replace("’", "'"), re.I))
    return next(signs, "other")


def youtube_id(url: str) -> str | None:
    """The eleven letters that name a video, from any of YouTube's forms of address."""
    address = urlparse(url)
    named = parse_qs(address.query).get("v", [address.path.rstrip("/").rpartition("/")[2]])[0]
    return named if _YOUTUBE_ID.fullmatch(named) else None


def yt_dlp_fetcher(folder: Path, cookies: Path | None, pause_s: float) -> Callable[[Wanted], Path]:
    """A `fetch` that takes the sound alone, goes on with half-fetched files and asks slowly.

    Raises:
        FetchError: yt-dlp is not installed.
    """
    try:
        yt_dlp: Any = import_module("yt_dlp")
    except ImportError as error:
        raise FetchError("other", "yt-dlp is missing: pip install -e '.[build]'") from error

    def fetch(wanted: Wanted) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as private:
            options = _options(folder, wanted, pause_s)
            if cookies is not None:
                # yt-dlp writes to the cookies it is given; the user's stay as they are.
                options["cookiefile"] = str(shutil.copy(cookies, Path(private) / "cookies.txt"))
            try:
                with yt_dlp.YoutubeDL(options) as downloader:
                    told = downloader.extract_info(wanted.url, download=True)
            except (yt_dlp.utils.YoutubeDLError, OSError) as error:
                raise _failure(str(error)) from error
        path = on_disk_file(folder, wanted)
        if path is None:
            raise FetchError("other", f"no file was written for {(told or {}).get('id')}")
        return path

    return fetch


def _options(folder: Path, wanted: Wanted, pause_s: float) -> dict[str, Any]:
    return {
        "format": "bestaudio/best",
        "outtmpl": str(folder / f"{wanted.session_id}.%(ext)s"),
        "noplaylist": True,
        "continuedl": True,
        "retries": 3,
        "fragment_retries": 3,
        "socket_timeout": 30,
        "sleep_interval_requests": min(1.0, pause_s),
        "quiet": True,
        "no_warnings": True,
        "noprogress": True,
        "logger": _Silent(),
        # YouTube's player has to be run; whichever of these is installed does it.
        "js_runtimes": {"deno": {}, "node": {}},
    }


def _failure(said: str) -> FetchError:
    line = re.sub(r"\x1b\[[\d;]*m", "", said).strip().splitlines()[0] if said.strip() else ""
    line = re.sub(r"^ERROR: |; please report this issue.*", "", line)
    return FetchError(kind_of(line), line[:200])


def _names(stem: str, wanted: Wanted) -> bool:
    ids = [wanted.session_id]
    if by_youtube := youtube_id(wanted.url):
        ids.append(by_youtube)
    # An id inside a longer word or number is another's.
    return any(re.search(rf"(?<![\w-]){re.escape(i)}(?![\w-])", _apart(stem, i)) for i in ids)


def _apart(stem: str, one: str) -> str:
    """The stem with `_` and `-` next to the id as spaces, so that they set it apart."""
    return re.sub(rf"(^|[_\s-])({re.escape(one)})(?=$|[_\s-])", r" \2 ", stem)


class _Silent:
    """yt-dlp says everything again in the exception it raises."""

    def debug(self, line: str) -> None: ...
    def info(self, line: str) -> None: ...
    def warning(self, line: str) -> None: ...
    def error(self, line: str) -> None: ...
