"""The real SDK against a service on the loopback that answers as it is told."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from threading import Thread

import numpy as np
import pytest

from core.speech import elevenlabs
from core.speech.elevenlabs import TRIES, ElevenLabs
from core.speech.engine import AccountError, SpeechError
from core.speech.turns import spoken_turn
from tests.core.speech.tones import tone

pytestmark = pytest.mark.skipif(find_spec("elevenlabs") is None, reason="needs the tts extra")

KEY = "sk_not_to_be_seen"
HANGS = object()
SPOKEN = (200, {}, (tone(1.0, rate_hz=24_000) * 32767).astype("<i2").tobytes())


def failure(status, kind, headers=None):
    body = json.dumps({"detail": {"status": kind, "message": f"{kind} for {KEY}"}}).encode()
    return status, headers or {}, body


class Service(ThreadingHTTPServer):
    """Gives `answers` one after the other, the last one for ever; keeps what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers, self.asked = [SPOKEN], []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(body), self.headers["xi-api-key"]))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer is HANGS:
            time.sleep(1.0)
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        if status != 200:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = Service()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def engine(service, pauses):
    return ElevenLabs(key=KEY, address=service.address, pause=pauses.append)


def test_text_voice_and_model_are_sent_and_sound_comes_back(engine, service):
    sound = engine.speak("Hello there.", "yM93hbw8Qtvdma2wCnJG")

    ((path, body, key),) = service.asked
    assert path == "/v1/text-to-speech/yM93hbw8Qtvdma2wCnJG?output_format=pcm_24000"
    assert (body["text"], body["model_id"], key) == ("Hello there.", "eleven_multilingual_v2", KEY)
    assert (sound.seconds, sound.rate_hz) == (pytest.approx(1.0, abs=0.001), 24_000)
    assert np.abs(sound.samples).max() == pytest.approx(0.1, abs=0.001)


def test_a_busy_service_is_asked_again_after_the_time_it_asks_for(engine, service, pauses):
    busy = failure(429, "too_many_concurrent_requests", {"Retry-After": "7"})
    service.answers = [busy, failure(429, "system_busy"), failure(503, ""), SPOKEN]

    assert engine.speak("Hello there.", "v").seconds > 0.9
    assert pauses == [7.0, 2.0, 4.0]


def test_a_service_that_stays_broken_is_given_up(engine, service, pauses):
    service.answers = [failure(500, "oops")]

    with pytest.raises(SpeechError, match=f"failed {TRIES} times, at last with 500 oops"):
        engine.speak("Hello there.", "v")
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_used_up_quota_is_not_asked_again(engine, service):
    service.answers = [failure(401, "quota_exceeded")]

    with pytest.raises(AccountError, match="the quota is used up"):
        engine.speak("Hello there.", "v")
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (failure(401, "invalid_api_key"), AccountError, "does not accept the key"),
        (failure(404, "voice_not_found"), SpeechError, "refused: 404 voice_not_found"),
        (failure(422, "bad"), SpeechError, "refused: 422"),
    ],
)
def test_what_waiting_would_not_mend_is_said_at_once(engine, service, pauses, answer, error, said):
    service.answers = [answer]

    with pytest.raises(error, match=said) as raised:
        engine.speak("Hello there.", "v")
    assert KEY not in str(raised.value)
    assert pauses == []


def test_a_success_of_260_bytes_is_a_failure_after_one_more_try(engine, service, tmp_path):
    service.answers = [(200, {}, b"\0\1" * 130)]

    with pytest.raises(SpeechError, match="s of sound for 10 letters"):
        spoken_turn(engine, "Hello there.", "v", tmp_path)
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ((502, {"Content-Type": "application/json"}, b'{"detail": {"sta'), "502"),
        ((500, {"Content-Type": "text/html"}, b"<html>"), "500"),
        ((200, {"Content-Length": "48000"}, b"\0\1"), "RemoteProtocolError"),
    ],
    ids=["malformed", "html", "broken off"],
)
def test_an_answer_that_is_none_is_asked_for_again(engine, service, trouble, said):
    service.answers = [trouble, SPOKEN]
    assert engine.speak("Hello there.", "v").seconds > 0.9

    service.answers = [trouble]
    with pytest.raises(SpeechError, match=f"failed {TRIES} times, at last with {said}"):
        engine.speak("Hello there.", "v")


def test_a_service_that_hangs_is_asked_again(engine, service, pauses, monkeypatch):
    monkeypatch.setattr(elevenlabs, "TIMEOUT_S", 0.3)
    service.answers = [HANGS, SPOKEN]

    assert engine.speak("Hello there.", "v").seconds > 0.9
    assert pauses == [1.0]


def test_an_empty_success_is_a_failure_after_one_more_try(engine, service, tmp_path):
    service.answers = [(200, {}, b"")]

    with pytest.raises(SpeechError, match=r"0\.00 s of sound"):
        spoken_turn(engine, "Hello there.", "v", tmp_path)
    assert len(service.asked) == 2


def test_a_service_that_is_not_there_is_tried_and_then_named(pauses):
    engine = ElevenLabs(key=KEY, address="http://127.0.0.1:9", pause=pauses.append)

    with pytest.raises(SpeechError, match="at last with ConnectError"):
        engine.speak("Hello there.", "v")
    assert len(pauses) == TRIES - 1


def test_without_a_key_nothing_begins(monkeypatch):
    monkeypatch.delenv("ELEVENLABS_API_KEY", raising=False)

    with pytest.raises(AccountError, match="set the environment's ELEVENLABS_API_KEY"):
        ElevenLabs()
