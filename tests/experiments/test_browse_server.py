import io
import stat
import threading
from http.client import HTTPConnection

import pytest
import soundfile

from experiments.browse import main, reader
from experiments.browse_server import COOKIE, Site, kept_key, ranged, reply, server
from tests.experiments.kept_runs import answers, keep, turns

KEY = "k" * 32
KNOWN = {"Host": "127.0.0.1:8010", "Cookie": f"{COOKIE}={KEY}"}


@pytest.fixture
def site(tmp_path):
    dataset = turns(tmp_path / "data", {"a": "One.", "../../b?&#": "Two."})
    keep(tmp_path / "outputs", dataset, "null", answers(dataset, "AO"))
    return Site(KEY, reader(tmp_path / "outputs", None))


def key_of(site):
    (key,) = site.sets()
    return key


def test_the_printed_address_opens_the_page_and_takes_its_key_out_of_sight(site):
    entered = reply(site, f"/?key={KEY}&item=a", {"Host": "localhost:8010"})

    assert (entered.status, entered.headers["Location"]) == (303, "/?item=a")
    assert "HttpOnly; SameSite=Strict" in entered.headers["Set-Cookie"]
    assert reply(site, "/", KNOWN).body.startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1:8010"},
        {"Host": "127.0.0.1:8010", "Cookie": f"{COOKIE}=another"},
        {"Host": "evil.example", "Cookie": f"{COOKIE}={KEY}"},
        {"Host": "127.0.0.1.evil.example", "Cookie": f"{COOKIE}={KEY}"},
        {"Host": "", "Cookie": f"{COOKIE}={KEY}"},
        {**KNOWN, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {**KNOWN, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_nobody_else_is_told_anything(site, headers):
    for path in ("/", "/sets", f"/clip?set={key_of(site)}&item=a"):
        assert reply(site, path, headers).status == 403


def test_a_wrong_key_opens_nothing(site):
    assert reply(site, "/?key=wrong", {"Host": "localhost"}).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../browse.py",
        "/%2e%2e/browse.py",
        "/page.css/../../browse.py",
        "//etc/passwd",
        "/browse_page/page.js",
        "/clip?item=../../../etc/passwd",
        "/clip?set=..&item=a",
    ],
)
def test_no_address_leads_to_a_file(site, path):
    assert reply(site, path, KNOWN).status == 404


def test_an_id_of_any_characters_is_an_item(site):
    said = reply(site, f"/item?set={key_of(site)}&item=..%2F..%2Fb%3F%26%23", KNOWN)

    assert said.status == 200
    assert b'"transcript":"Two."' in said.body


def test_a_clip_is_what_models_are_given_and_can_be_sought_in(site):
    address = f"/clip?set={key_of(site)}&item=a"
    whole = reply(site, address, KNOWN)
    part = reply(site, address, {**KNOWN, "Range": "bytes=44-47"})

    assert soundfile.info(io.BytesIO(whole.body)).samplerate == 16_000
    assert (part.status, part.body) == (206, whole.body[44:48])
    assert part.headers["Content-Range"] == f"bytes 44-47/{len(whole.body)}"


def test_a_clip_that_cannot_be_decoded_says_why(site, tmp_path):
    key_of(site)
    (tmp_path / "data" / "audio" / "clip.wav").write_bytes(b"no sound")
    said = reply(site, f"/clip?set={key_of(site)}&item=a", KNOWN)

    assert said.status == 422
    assert b"clip.wav" in said.body


def test_a_clip_swapped_for_a_link_out_of_the_folder_is_not_followed(site, tmp_path):
    key_of(site)
    clip = tmp_path / "data" / "audio" / "clip.wav"
    clip.rename(tmp_path / "elsewhere.wav")
    clip.symlink_to(tmp_path / "elsewhere.wav")

    assert reply(site, f"/clip?set={key_of(site)}&item=a", KNOWN).status == 404


@pytest.mark.parametrize(
    ("wanted", "status", "body"),
    [
        # RFC 9110, section 14.1.2
        ("bytes=0-3", 206, b"0123"),
        ("bytes=6-", 206, b"6789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=8-100", 206, b"89"),
        ("bytes=10-", 416, b""),
        ("bytes=5-2", 200, b"0123456789"),
        ("bytes=-", 200, b"0123456789"),
        ("bytes=0-1,4-5", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
        pytest.param(f"bytes={'9' * 5000}-", 200, b"0123456789", id="5000 digits"),
        pytest.param(f"bytes=-{'9' * 5000}", 200, b"0123456789", id="the last 5000 digits"),
        (None, 200, b"0123456789"),
    ],
)
def test_ranges(wanted, status, body):
    said = ranged(b"0123456789", "audio/wav", wanted)

    assert (said.status, said.body) == (status, body)


def test_the_server_is_on_the_loopback_and_every_answer_is_guarded(site):
    with server(site, 0) as listening:
        assert listening.server_address[0] == "127.0.0.1"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        client = HTTPConnection("127.0.0.1", listening.server_port, timeout=10)
        for path in ("/", "/nothing"):
            client.request("GET", path, headers={"Cookie": f"{COOKIE}={KEY}"})
            told = client.getresponse()
            told.read()
            assert "default-src 'none'" in told.headers["Content-Security-Policy"]
            assert told.headers["X-Content-Type-Options"] == "nosniff"
        listening.shutdown()


def test_what_went_wrong_is_said_and_the_page_goes_on():
    def broken():
        raise OSError(5, "the disk is gone")

    with server(Site(KEY, broken), 0) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        client = HTTPConnection("127.0.0.1", listening.server_port, timeout=10)
        client.request("GET", "/sets", headers={"Cookie": f"{COOKIE}={KEY}"})
        told = client.getresponse()
        assert (told.status, b"the disk is gone" in told.read()) == (500, True)
        listening.shutdown()


def test_the_key_is_kept_for_its_owner_alone(tmp_path):
    key = kept_key(tmp_path)

    assert kept_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "browse-key").stat().st_mode) == 0o600
    (tmp_path / "browse-key").write_text("")
    assert kept_key(tmp_path) != key


def test_a_folder_without_runs_is_said_in_a_sentence(tmp_path, capsys):
    assert main(["--output", str(tmp_path)]) == 2
    assert "evaluate` first" in capsys.readouterr().err
    assert main(["--output", str(tmp_path / "none")]) == 2
    assert main(["--output", str(tmp_path), "--port", "70000"]) == 2
