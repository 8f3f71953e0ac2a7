"""Services are real HTTP servers on the loopback; Claude's is reached by its own SDK."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import roles_service, sdk_calls
from experiments.options import OptionError
from experiments.roles_service import Service, claude, endpoint
from experiments.runners import RunnerError

TURNS = pd.DataFrame([("S1", "How was the week?"), ("S0", "Long.")], columns=["speaker", "text"])
HANGS = object()
RIGHT = {"S0": "patient", "S1": "therapist"}


def chat(content):
    return 200, {"choices": [{"message": {"content": content}}]}


def message(content):
    return 200, {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": content,
    }


GIVEN = message([{"type": "tool_use", "id": "t", "name": "give_roles", "input": RIGHT}])


@pytest.fixture
def server(monkeypatch):
    """`answers`: (status, body) one a request, the last for all further; `bodies` were sent."""
    monkeypatch.setattr(sdk_calls, "FIRST_PAUSE_S", 0.01)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_): ...

        def do_GET(self):
            self.send(200, {"data": [{"id": "qwen3"}]})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            http.bodies.append(json.loads(body))
            answer = http.answers.pop(0) if len(http.answers) > 1 else http.answers[0]
            if answer is HANGS:
                time.sleep(1.0)
                return
            self.send(*answer)

        def send(self, status, body):
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.bodies = []
        Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        http.url = f"http://127.0.0.1:{http.server_port}"
        yield http
        http.shutdown()


@pytest.fixture
def asked(server, tmp_path):
    def ask(*answers):
        server.answers = list(answers)
        return endpoint(f"{server.url}/v1", "", tmp_path, 0).roles(TURNS)

    return ask


@pytest.fixture
def claude_says(server, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")

    def ask(*answers):
        server.answers = list(answers)
        return claude(roles_service.CLAUDE, tmp_path, 0).roles(TURNS)

    return ask


def test_an_endpoint_is_asked_once_and_its_answer_kept(asked, server):
    found = asked(chat(json.dumps(RIGHT)))

    assert found.of == RIGHT
    assert found.by == "qwen3 at 127.0.0.1"
    assert "S1: How was the week?" in server.bodies[0]["messages"][0]["content"]
    assert asked(chat("no more")).of == RIGHT
    assert len(server.bodies) == 1


@pytest.mark.parametrize("trouble", [(429, {}), (500, {}), chat(""), (200, b'{"choices": [{')])
def test_trouble_that_passes_is_tried_again(asked, server, trouble):
    assert asked(trouble, chat(json.dumps(RIGHT))).of == RIGHT
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((503, {}), "failed 4 times, at last with status 503"),
        (chat(""), "failed 4 times, at last with an empty answer"),
        ((400, {"error": {"message": "too long"}}), "refused with status 400: too long"),
        (chat("S0, I think."), "the answer is no JSON object"),
    ],
)
def test_trouble_that_stays_leaves_the_recording_out_and_is_not_kept(asked, server, answer, reason):
    assert reason in asked(answer).refused
    assert asked(chat(json.dumps(RIGHT))).of == RIGHT


def test_no_access_ends_the_run(asked):
    with pytest.raises(RunnerError, match="refuses access"):
        asked((401, {"error": {"message": "who are you"}}))


def test_nothing_leaves_the_machine_without_leave(tmp_path):
    sent = []

    def ask(question, names):
        sent.append(question)
        return RIGHT

    service = Service("claude", "api.anthropic.com", ask, tmp_path, may_send=1)
    assert service.roles(TURNS).of == RIGHT

    with pytest.raises(OptionError, match=r"would leave this machine for api.anthropic.com"):
        service.roles(TURNS.assign(text=["Hello.", "Hello."]))
    assert service.roles(TURNS).of == RIGHT
    assert len(sent) == 1


def test_claude_is_asked_by_its_sdk_and_held_to_the_speakers(claude_says, server):
    found = claude_says(GIVEN)

    assert (found.of, found.by) == (RIGHT, "claude-sonnet-4-5")
    (body,) = server.bodies
    assert body["model"] == "claude-sonnet-4-5"
    assert body["tools"][0]["input_schema"]["required"] == ["S0", "S1"]
    assert body["tool_choice"] == {"type": "tool", "name": "give_roles"}


@pytest.mark.parametrize("trouble", [(429, {}), (529, {}), (500, {}), (200, b'{"content": [')])
def test_claude_is_tried_again(claude_says, server, trouble):
    assert claude_says(trouble, GIVEN).of == RIGHT
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (message([]), "the answer holds no roles"),
        (message([{"type": "text", "text": "S0, I think."}]), "the answer holds no roles"),
        ((400, {"error": {"message": "no"}}), "refused with status 400"),
        ((500, {}), "failed 4 times, at last with status 500"),
    ],
)
def test_claude_without_an_answer_leaves_the_recording_out(claude_says, answer, reason):
    assert reason in claude_says(answer).refused


def test_claude_that_is_busy_is_asked_again_after_the_time_it_names(claude_says, monkeypatch):
    waited = []
    monkeypatch.setattr(sdk_calls, "time", SimpleNamespace(sleep=waited.append))

    assert claude_says((429, {}), (529, {}), GIVEN).of == RIGHT
    # The server's Retry-After is 0.
    assert waited == [0.0, 0.0]


def test_claude_that_hangs_is_tried_again(claude_says, monkeypatch):
    monkeypatch.setattr(roles_service, "TIMEOUT_S", 0.3)

    assert claude_says(HANGS, GIVEN).of == RIGHT


def test_claude_without_a_key_says_which_is_missing(claude_says, monkeypatch):
    with pytest.raises(RunnerError, match="ANTHROPIC_API_KEY"):
        claude_says((401, {"error": {"message": "bad key"}}))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(RunnerError, match="ANTHROPIC_API_KEY"):
        claude_says(GIVEN)


def test_without_the_sdk_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(RunnerError, match=r"pip install -e '\.\[label\]'"):
        claude("claude", tmp_path, 0)
