"""The real openai SDK against a server on the loopback that misbehaves when told to."""

import base64
import io
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import pandas as pd
import pytest
import soundfile

from containers.runtime.response_log import read_responses
from experiments import cbt_describe, gpt_audio, sdk_calls
from tests.experiments.test_cbt_describe import turns  # noqa: F401


def completion(content="The patient feels calm.", finish="stop", **message):
    return 200, {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-audio-1.5-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109},
    }


def fault(status, message="no", **more):
    return status, {"error": {"message": message, "type": "error", **more}}


@pytest.fixture
def server():
    """`answers`: one a request, the last for all further; (status, body) or seconds to hang."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_): ...

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            http.bodies.append(body)
            http.keys.append(self.headers["Authorization"])
            answer = http.answers.pop(0) if len(http.answers) > 1 else http.answers[0]
            if isinstance(answer, float):
                time.sleep(answer)
                return
            status, body = answer
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        http.answers, http.bodies, http.keys = [completion()], [], []
        Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        yield http
        http.shutdown()


@pytest.fixture
def pauses(monkeypatch):
    waited = []
    monkeypatch.setattr(sdk_calls, "time", SimpleNamespace(sleep=waited.append))
    return waited


@pytest.fixture
def describe(server, turns, tmp_path, monkeypatch, pauses):  # noqa: F811
    """`cbt_describe` of the first turn, once."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")

    def run(*answers, **options):
        server.answers = list(answers) or [completion()]
        words = {"turns": turns, "model": "gpt-audio-1.5", "output": tmp_path / "out"}
        words |= {"runs": 1, "limit": 1, "track": "false", **options}
        return cbt_describe.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    return run


def made(tmp_path):
    return pd.read_csv(tmp_path / "out" / "descriptions.csv").iloc[0]


def test_the_clip_and_the_study_s_prompt_are_sent_and_words_come_back(
    describe, server, tmp_path, capsys
):
    assert describe() == 0

    (body,) = server.bodies
    assert (body["model"], body["modalities"]) == ("gpt-audio-1.5", ["text"])
    (message,) = body["messages"]
    sound, text = message["content"]
    assert sound["input_audio"]["format"] == "wav"
    clip = soundfile.info(io.BytesIO(base64.b64decode(sound["input_audio"]["data"])))
    assert (clip.samplerate, clip.channels, clip.subtype, clip.duration) == (
        16_000,
        1,
        "PCM_16",
        30.0,
    )
    assert text["text"].startswith("You are analyzing a therapy session.")
    assert "Therapist: Hello." in text["text"]
    assert "Words." not in text["text"]
    assert made(tmp_path)["description"] == "The patient feels calm."
    assert made(tmp_path)["model"] == "gpt-audio-1.5"
    assert "tokens read by gpt-audio-1.5: 100" in capsys.readouterr().out


def test_three_runs_are_three_questions_and_are_not_asked_again(describe, server):
    assert describe(runs=3, limit=2) == 0
    assert len(server.bodies) == 6
    assert len({body["seed"] for body in server.bodies}) == 6

    assert describe(runs=3, limit=2) == 0
    assert len(server.bodies) == 6


@pytest.mark.parametrize(
    "trouble",
    [
        fault(500),
        fault(503),
        fault(408),
        (200, b'{"choices": [{"mess'),
        (200, {"choices": []}),
        (200, {"choices": None}),
        (200, []),
        completion(content=""),
        completion(content=None),
    ],
    ids=str,
)
def test_trouble_that_passes_is_tried_again(describe, server, tmp_path, pauses, trouble):
    assert describe(trouble, completion()) == 0

    assert made(tmp_path)["description"] == "The patient feels calm."
    assert (len(server.bodies), pauses) == (2, [1.0])


def test_a_busy_service_is_asked_again_after_the_time_it_names(describe, pauses, tmp_path):
    describe(fault(429), completion())

    assert pauses == [7.0]
    assert made(tmp_path)["status"] == "ok"


def test_a_service_that_hangs_is_tried_again(describe, monkeypatch, tmp_path):
    monkeypatch.setattr(gpt_audio, "TIMEOUT_S", 0.3)

    assert describe(1.0, 1.0, 1.0, 1.0) == 0
    assert made(tmp_path)["reason"] == "failed 4 times, at last with APITimeoutError"
    assert describe(1.0, completion()) == 0
    assert made(tmp_path)["status"] == "ok"


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (fault(500), "model_error", "failed 4 times, at last with status 500"),
        (completion(content=""), "model_error", "failed 4 times, at last with an empty answer"),
        (fault(400, "too long"), "model_error", "refused with status 400: too long"),
        (completion(None, refusal="I cannot."), "refused", "the model refused"),
        (completion(None, "content_filter"), "refused", "blocked by the service"),
        (completion("The patient", "length"), "truncated", "cut at its limit"),
    ],
)
def test_trouble_that_stays_is_a_status_and_a_reason(describe, tmp_path, answer, status, reason):
    assert describe(answer) == 0

    row = made(tmp_path)
    assert (row["status"], pd.isna(row["description"])) == (status, True)
    assert reason in row["reason"]


def test_a_failure_is_asked_again_by_the_same_command(describe, tmp_path):
    describe(fault(400, "too long"))
    describe(completion())

    assert made(tmp_path)["status"] == "ok"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (fault(401), "does not accept the key: check OPENAI_API_KEY"),
        (fault(404, "no model gpt-audio-9"), "no such model or page: no model gpt-audio-9"),
        (fault(429, "pay", code="insufficient_quota"), "the account has no quota left"),
    ],
)
def test_what_no_other_question_would_get_past_ends_the_run(describe, capsys, answer, said):
    assert describe(answer, runs=3) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "sk-secret" not in err


def test_what_the_model_does_not_take_is_left_out_and_noted(describe, server, tmp_path):
    refusal = fault(400, "Unsupported parameter: 'seed'", param="seed")

    assert describe(refusal, completion()) == 0
    assert "seed" not in server.bodies[1]
    (answer,) = read_responses(tmp_path / "out" / "descriptions-responses.jsonl").values()
    assert answer.fallbacks == ("seed_not_sent",)


def test_openai_is_sent_nothing_without_leave_or_offline(describe, server, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_BASE_URL")

    assert describe(runs=3, price="0.1") == 2
    err = capsys.readouterr().err
    # 3 runs of 30 s at 10 cents a minute.
    assert "1.5 minutes of audio, about 0.15 dollars" in err
    assert "would leave this machine for api.openai.com. Allow it with max_requests=3" in err

    assert describe(dry_run="true", runs=3) == 0
    out = capsys.readouterr().out
    assert "would leave this machine for api.openai.com" in out
    assert "Nothing was asked" in out

    assert describe(offline="true", max_requests=9) == 1
    assert "offline=true forbids asking it" in capsys.readouterr().err
    assert server.bodies == []


def test_without_sdk_or_key_it_says_what_to_do(describe, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert describe() == 1
    assert "set OPENAI_API_KEY" in capsys.readouterr().err

    monkeypatch.setitem(sys.modules, "openai", None)
    assert describe() == 1
    assert "pip install -e '.[label]'" in capsys.readouterr().err


def test_an_endpoint_beside_it_is_refused(describe, capsys):
    assert describe(runner="server", endpoint="http://localhost:1/v1") == 2
    assert "asked by OpenAI's SDK; leave runner= and endpoint= out" in capsys.readouterr().err
