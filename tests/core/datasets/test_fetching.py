"""The words are yt-dlp's own, from its code and from its users' reports (its issues 2692, 11086,
17702), and what version 2026.10.26 said here without a network."""

import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from core.datasets.fetching import (
    FetchError,
    Wanted,
    kind_of,
    obtain,
    on_disk_file,
    youtube_id,
    yt_dlp_fetcher,
)
from tests.core.datasets.releases import write_recording

SEEN = Wanted("007", "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=3s")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Private video. Sign in if you've been granted access to this video", "private"),
        ("Video unavailable. This video is private", "private"),
        ("Video unavailable", "removed"),
        ("Video unavailable. This video has been removed by the uploader", "removed"),
        (
            "Video unavailable. This video is no longer available because the YouTube account "
            "associated with this video has been terminated.",
            "removed",
        ),
        ("This video has been removed for violating YouTube's policy on hate speech.", "removed"),
        ("Unable to download webpage: HTTP Error 404: Not Found", "removed"),
        (
            "Sign in to confirm your age. This video may be inappropriate for some users. Use "
            "--cookies-from-browser or --cookies for the authentication.",
            "age_gated",
        ),
        (
            "Video unavailable. The uploader has not made this video available in your country",
            "region_locked",
        ),
        (
            "Video unavailable. This video contains content from SME, who has blocked it in your "
            "country on copyright grounds",
            "region_locked",
        ),
        ("This video is not available from your location due to geo restriction", "region_locked"),
        (
            "Sign in to confirm you’re not a bot. Use --cookies-from-browser or --cookies for the "
            "authentication.",
            "bot_checked",
        ),
        (
            "Video unavailable. YouTube is requiring a captcha challenge before playback",
            "bot_checked",
        ),
        (
            "This content isn't available, try again later. The current session has been "
            "rate-limited by YouTube for up to an hour.",
            "bot_checked",
        ),
        ("unable to download video data: HTTP Error 403: Forbidden", "bot_checked"),
        ("Join this channel to get access to members-only content like this video", "members_only"),
        (
            "Unable to download API page: HTTPSConnection(host='www.youtube.com', port=443): Failed "
            "to resolve 'www.youtube.com' ([Errno -2] Name or service not known)",
            "network",
        ),
        ("Unable to download API page: The read operation timed out", "network"),
        ("unable to download video data: HTTP Error 503: Service Unavailable", "network"),
        ("52428 bytes read, 104857 more expected", "network"),
        ("Requested format is not available. Use --list-formats", "other"),
    ],
)
def test_what_yt_dlp_says_is_classified(said, kind):
    assert kind_of(f"[youtube] dQw4w9WgXcQ: {said}") == kind


@pytest.mark.parametrize(
    "url",
    [
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=PL1",
        "https://youtu.be/dQw4w9WgXcQ?t=4",
        "https://www.youtube.com/embed/dQw4w9WgXcQ",
        "https://www.youtube.com/shorts/dQw4w9WgXcQ/",
    ],
)
def test_every_form_of_address_names_its_video(url):
    assert youtube_id(url) == "dQw4w9WgXcQ"


@pytest.mark.parametrize(
    "name",
    [
        "007.webm",
        "007_panic.mp3",
        "CBT 007 - panic.m4a",
        "Panic role-play [dQw4w9WgXcQ].webm",
        "007-dQw4w9WgXcQ.wav",
    ],
)
def test_a_recording_on_disk_is_found_by_its_id(tmp_path, name):
    (tmp_path / name).touch()
    assert on_disk_file(tmp_path, SEEN) == tmp_path / name


@pytest.mark.parametrize(
    "name", ["1007.wav", "0070.wav", "007.json", "007.webm.part", "007.webm.part-Frag3", ".007.wav"]
)
def test_other_files_are_not_taken_for_it(tmp_path, name):
    (tmp_path / name).touch()
    assert on_disk_file(tmp_path, SEEN) is None


def test_two_files_of_one_id_are_not_chosen_between(tmp_path):
    (tmp_path / "007_a.wav").touch()
    (tmp_path / "007_b.wav").touch()
    with pytest.raises(FetchError, match=r"007_a.wav, 007_b.wav"):
        on_disk_file(tmp_path, SEEN)

    (tmp_path / "007.wav").touch()
    assert on_disk_file(tmp_path, SEEN) == tmp_path / "007.wav"


def test_only_what_is_not_on_disk_is_fetched(tmp_path):
    (tmp_path / "001.wav").touch()
    asked = []

    def fetch(wanted):
        asked.append(wanted.session_id)
        return Path("fetched.webm")

    obtained = obtain([Wanted("001", ""), Wanted("002", "")], [tmp_path], fetch)

    assert asked == ["002"]
    assert obtained.files == {"001": tmp_path / "001.wav", "002": Path("fetched.webm")}
    assert obtained.lost == ()


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    def fetch(wanted):
        if wanted.session_id == "001":
            raise FetchError("private", "Private video")
        return Path("fetched.webm")

    obtained = obtain([Wanted("001", ""), Wanted("002", "")], [], fetch)

    assert [(one.session_id, one.kind) for one in obtained.lost] == [("001", "private")]
    assert list(obtained.files) == ["002"]


def test_after_three_refusals_nobody_is_asked_again():
    asked = []

    def fetch(wanted):
        asked.append(wanted.session_id)
        raise FetchError("bot_checked", "Sign in to confirm you're not a bot")

    obtained = obtain([Wanted(f"{n:03}", "") for n in range(5)], [], fetch)

    assert len(asked) == 3
    assert [one.kind for one in obtained.lost] == ["bot_checked"] * 3 + ["not_asked"] * 2


def test_without_fetching_a_missing_file_is_said_to_be_missing():
    (lost,) = obtain([SEEN], [], None).lost
    assert (lost.kind, lost.reason) == (
        "not_on_disk",
        "no file of this id in the folder, and fetch=false",
    )


class YoutubeDLError(Exception):
    pass


@pytest.fixture
def yt_dlp(monkeypatch):
    """A stand-in with yt-dlp's API: `said` is what it fails with, `options` what it was given."""
    module = ModuleType("yt_dlp")
    module.utils = ModuleType("yt_dlp.utils")
    module.utils.YoutubeDLError = YoutubeDLError
    module.said = None

    class YoutubeDL:
        def __init__(self, options):
            module.options = options

        def __enter__(self):
            return self

        def __exit__(self, *_):
            if cookies := module.options.get("cookiefile"):
                Path(cookies).write_text("changed")

        def extract_info(self, url, download):
            if module.said:
                raise YoutubeDLError(module.said)
            Path(module.options["outtmpl"] % {"ext": "webm"}).write_bytes(b"sound")
            return {"id": "dQw4w9WgXcQ"}

    module.YoutubeDL = YoutubeDL
    monkeypatch.setitem(sys.modules, "yt_dlp", module)
    return module


def test_a_fetched_file_is_named_by_its_id_and_half_of_one_is_gone_on_with(yt_dlp, tmp_path):
    path = yt_dlp_fetcher(tmp_path, None, 5.0)(SEEN)

    assert path == tmp_path / "007.webm"
    assert yt_dlp.options["continuedl"]
    assert yt_dlp.options["format"] == "bestaudio/best"
    assert yt_dlp.options["noplaylist"]
    assert "cookiefile" not in yt_dlp.options


def test_yt_dlp_does_not_write_to_the_users_cookies(yt_dlp, tmp_path):
    cookies = tmp_path / "cookies.txt"
    cookies.write_text("mine")

    yt_dlp_fetcher(tmp_path / "got", cookies, 0.0)(SEEN)

    assert cookies.read_text() == "mine"


def test_a_failure_keeps_its_kind_and_the_first_line(yt_dlp, tmp_path):
    yt_dlp.said = (
        "\x1b[0;31mERROR:\x1b[0m [youtube] dQw4w9WgXcQ: Sign in to confirm your age\nMore words"
    )
    with pytest.raises(FetchError, match=r"cookies=FILE \(\[youtube\] dQw4w9WgXcQ: .* age\)$") as r:
        yt_dlp_fetcher(tmp_path, None, 0.0)(SEEN)
    assert r.value.kind == "age_gated"


def test_without_yt_dlp_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(FetchError, match=r"pip install -e '\.\[build\]'"):
        yt_dlp_fetcher(tmp_path, None, 0.0)


@pytest.fixture
def site(tmp_path):
    """A web site of our own with one recording; `asked` are the ranges that were asked for."""
    (tmp_path / "site").mkdir()
    write_recording(tmp_path / "site" / "talk.wav", 3.0)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=tmp_path / "site")

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_real_yt_dlp_brings_a_file_and_says_why_not(site, tmp_path):
    fetch = yt_dlp_fetcher(tmp_path / "got", None, 0.0)

    path = fetch(Wanted("007", f"{site}/talk.wav"))
    assert path.read_bytes() == (tmp_path / "site" / "talk.wav").read_bytes()

    with pytest.raises(FetchError) as raised:
        fetch(Wanted("008", f"{site}/gone.wav"))
    assert raised.value.kind == "removed"

    with pytest.raises(FetchError) as raised:
        fetch(Wanted("009", "http://127.0.0.1:9/talk.wav"))
    assert raised.value.kind == "network"
