"""Fetching weights from a hub of our own: resumed, verified, and each refusal explained."""

import hashlib
import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from containers.runtime.card import Repo, read_card
from experiments import weights
from experiments.settings import ROOT

REVISION = "3060fe34b35ba5d44202ce9ff3c097642914f8f3"
FILES = {
    "config.json": b'{"model_type": "tiny"}',
    "model.safetensors": bytes(range(256)) * 8_000,
    "onnx/model.onnx": b"not wanted",
}
LARGE = "model.safetensors"


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def described(name, content):
    entry = {"size": len(content), "blobId": git_id(content)}
    if name == LARGE:
        digest = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"sha256": digest, "oid": digest, "size": len(content), "pointerSize": 134}
    return entry


class Hub(BaseHTTPRequestHandler):
    """The few pages of a hub that a download reads. `state` says how it behaves."""

    protocol_version = "HTTP/1.1"
    state: dict

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, state = self.path.partition("?")[0], self.state
        state["asked"].append((self.command, path, self.headers.get("Range")))
        if refusal := state.get("refusal"):
            return self.reply(refusal[0], b"{}", {"X-Error-Code": refusal[1]})
        if path == f"/api/models/tiny/tiny/revision/{REVISION}":
            siblings = [{"rfilename": n, **described(n, c)} for n, c in FILES.items()]
            return self.json({"id": "tiny/tiny", "sha": REVISION, "siblings": siblings})
        if path == f"/api/models/tiny/tiny/tree/{REVISION}":
            entries = []
            for name, content in FILES.items():
                entry = described(name, content)
                entries.append({"type": "file", "path": name, "oid": entry.pop("blobId"), **entry})
            return self.json(entries)
        name = path.removeprefix(f"/tiny/tiny/resolve/{REVISION}/")
        if name not in state["contents"]:
            return self.reply(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        return self.file(name)

    def file(self, name):
        content, state = self.state["contents"][name], self.state
        entry = described(name, FILES[name])
        etag = entry["lfs"]["sha256"] if name == LARGE else entry["blobId"]
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": REVISION, "Accept-Ranges": "bytes"}
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.command == "GET" and name == LARGE and state["cut"]:
            state["cut"] -= 1
            self.reply(206 if start else 200, content[start:], headers, stop=1_000_000)
            self.close_connection = True
            return None
        return self.reply(206 if start else 200, content[start:], headers)

    def json(self, value):
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply(self, status, content, headers, stop=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[:stop])


@pytest.fixture(autouse=True)
def online(monkeypatch):
    """As for a user: tests of models keep the whole session off the hub."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def hub(monkeypatch):
    state = {"asked": [], "cut": 0, "contents": dict(FILES)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("ThisHub", (Hub,), {"state": state}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def card():
    repo = Repo("tiny/tiny", REVISION, files=("*.json", "*.safetensors"))
    return replace(read_card(ROOT / "containers" / "voxtral" / "model.toml"), repos=(repo,))


@pytest.fixture
def fetched(tmp_path, card, hub, monkeypatch):
    """Runs the command; gives exit code, output and errors."""
    monkeypatch.setattr(weights, "read_card", lambda path: card)

    def run(capsys, **words):
        arguments = {"model": "voxtral", "folder": str(tmp_path), **words}
        code = weights.main([w for k, v in arguments.items() for w in (f"--{k}", v)])
        return code, *capsys.readouterr()

    return run


def test_the_pinned_files_are_fetched_verified_and_nothing_else(fetched, capsys, tmp_path, card):
    code, out, err = fetched(capsys)
    place = tmp_path / "voxtral"

    assert code == 0, err
    assert f"tiny/tiny at {REVISION}" in out
    assert (place / LARGE).read_bytes() == FILES[LARGE]
    assert not (place / "onnx").exists()
    assert weights.present(card, tmp_path)


def test_what_is_there_is_not_fetched_again(fetched, capsys, hub):
    fetched(capsys)
    hub["asked"].clear()
    code, *_ = fetched(capsys)

    assert code == 0
    assert not [asked for asked in hub["asked"] if asked[0] == "GET" and "resolve" in asked[1]]


def test_a_download_that_broke_off_goes_on_where_it_stopped(
    fetched, capsys, hub, tmp_path, monkeypatch
):
    from huggingface_hub import constants

    # The client keeps whole chunks only, and ours is a small file.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16)
    hub["cut"] = 1
    code, _, err = fetched(capsys)
    ranges = [asked[2] for asked in hub["asked"] if asked[0] == "GET" and LARGE in asked[1]]

    assert code == 0, err
    assert (tmp_path / "voxtral" / LARGE).read_bytes() == FILES[LARGE]
    assert len(ranges) == 2
    assert int(ranges[1][6:].split("-")[0]) > 900_000


def test_an_ended_command_keeps_what_came_for_the_next(fetched, capsys, hub, tmp_path):
    hub["contents"].pop(LARGE)
    code, _, err = fetched(capsys)
    assert code == 1
    assert "goes on from there" in err
    assert not (tmp_path / "voxtral" / "weights.json").exists()
    assert (tmp_path / "voxtral" / "config.json").exists()

    hub["contents"][LARGE] = FILES[LARGE]
    hub["asked"].clear()
    assert fetched(capsys)[0] == 0
    assert not [asked for asked in hub["asked"] if asked[0] == "GET" and "config.json" in asked[1]]


def test_a_file_of_other_content_is_found_out(fetched, capsys, hub):
    hub["contents"][LARGE] = bytes(len(FILES[LARGE]))
    code, _, err = fetched(capsys)

    assert code == 1
    assert f"{LARGE}: its content is not that of {REVISION}; delete it" in err


def test_a_file_cut_on_the_disk_is_found_out_and_fetched_again(fetched, capsys, tmp_path, card):
    fetched(capsys)
    (tmp_path / "voxtral" / LARGE).write_bytes(b"short")

    assert not weights.present(card, tmp_path)
    code, _, err = fetched(capsys, verify="only")
    assert code == 1
    assert "expected 2048000 bytes, found 5" in err
    assert fetched(capsys)[0] == 0
    assert weights.present(card, tmp_path)


def test_weights_of_another_revision_are_not_present(fetched, capsys, tmp_path, card):
    fetched(capsys)
    moved = replace(card, repos=(replace(card.repos[0], revision="0" * 40),))

    assert not weights.present(moved, tmp_path)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ((403, "GatedRepo"), "accept its terms at https://huggingface.co/tiny/tiny"),
        ((401, "RepoNotFound"), "There is no repository tiny/tiny, or it is private"),
        ((404, "RevisionNotFound"), f"tiny/tiny has no revision {REVISION}"),
        ((500, ""), "could not be fetched"),
    ],
)
def test_each_refusal_of_the_hub_is_one_sentence(fetched, capsys, hub, refusal, said):
    hub["refusal"] = refusal
    code, _, err = fetched(capsys)

    assert (code, err.count("\n")) == (1, 1)
    assert said in err


def test_no_hub_is_one_sentence(fetched, capsys, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, _, err = fetched(capsys)

    assert code == 1
    assert "could not be fetched" in err


def test_too_little_room_is_said_before_anything_is_fetched(fetched, capsys, hub, monkeypatch):
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda path: type("Disk", (), {"free": 10}))
    code, _, err = fetched(capsys)

    assert code == 1
    assert "0.0 GB free" in err
    assert not [asked for asked in hub["asked"] if "resolve" in asked[1]]


def test_a_model_without_weights_needs_none(capsys):
    assert weights.main(["--model", "null"]) == 0
    assert "needs no weights" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "value"), [("model", "gpt"), ("verify", "perhaps")])
def test_a_wrong_value_is_code_2_and_one_sentence(capsys, option, value):
    assert weights.main(["--model", "voxtral", f"--{option}", value]) == 2
    assert value in capsys.readouterr().err
