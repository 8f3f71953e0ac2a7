"""A server that speaks the OpenAI protocol as vLLM does, and misbehaves when told to."""

import base64
import hashlib
import io
import json
import math
import socket
import struct
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import soundfile

IDS = {form: [16 + place] for place, form in enumerate(("1", "2", "3", "4", "5"))}
IDS |= {f" {form}": [100 + ids[0]] for form, ids in IDS.items()}


class Server:
    """`schedule[word]` lists what happens to the requests whose text holds the word, one a try:
    a name of `Handler.misbehave`, or None for a sound answer."""

    def __init__(self):
        self.served = ["mistralai/Voxtral-Mini-3B-2507"]
        self.vllm = "0.33.0"
        self.hears = True
        self.logprobs = True
        self.by_id = True
        self.ids = dict(IDS)
        self.listed = 20
        self.latency_s = 0.0
        self.schedule = defaultdict(list)
        self.bodies, self.headers, self.times = [], [], []
        self.at_once, self.most_at_once = 0, 0
        self.lock = threading.Lock()
        handler = type("Handler", (Handler,), {"server_state": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def asked(self, word):
        return [body for body in self.bodies if word in words(body)]


class Handler(BaseHTTPRequestHandler):
    server_state: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        state = self.server_state
        state.headers.append(dict(self.headers))
        if self.path == "/v1/models":
            self.send(200, {"data": [{"id": name} for name in state.served]})
        elif self.path == "/version" and state.vllm:
            self.send(200, {"version": state.vllm})
        else:
            self.send(404, {"error": {"message": "Not Found"}})

    def do_POST(self):
        state = self.server_state
        state.headers.append(dict(self.headers))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.send(200, {"tokens": state.ids.get(body["prompt"], [1, 2])})
        with state.lock:
            state.bodies.append(body)
            state.times.append(time.monotonic())
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
            told = [plan for word, plan in state.schedule.items() if word in words(body)]
            what = told[0].pop(0) if told and told[0] else None
        try:
            time.sleep(state.latency_s)
            if what:
                return self.misbehave(what, body)
            if "logprob_token_ids" in body and not state.by_id:
                message = "logprob_token_ids is larger than max_logprobs"
                return self.send(400, {"error": {"message": message}})
            if "logprobs" in body and not state.logprobs:
                message = "logprobs is not supported for this model"
                return self.send(400, {"error": {"message": message}})
            return self.send(200, answer(state, body))
        finally:
            with state.lock:
                state.at_once -= 1

    def misbehave(self, what, body):
        if what.isdigit():
            return self.send(int(what), {"error": {"message": f"this is a {what}"}})
        if what.startswith("{"):
            return self.send(200, json.loads(what))
        if what.startswith("429 after "):
            return self.send(429, {"error": {"message": "slow down"}}, {"Retry-After": what[10:]})
        if what == "hang":
            time.sleep(5)
        elif what == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            for _ in range(50):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        elif what == "malformed":
            self.send_bytes(200, b'{"choices": [{"mess')
        elif what == "empty":
            self.send(200, {"choices": []})
        elif what == "filtered":
            self.send(200, {"choices": [{"finish_reason": "content_filter", "message": {}}]})
        elif what == "policy":
            error = {"code": "content_policy_violation", "message": "flagged: level 4 violence"}
            self.send(400, {"error": error})
        elif what == "quota":
            self.send(429, {"error": {"code": "insufficient_quota", "message": "pay first"}})
        elif what == "reset":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": ')
            self.wfile.flush()
            # Linger 0: close with a reset, not with an orderly end.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()
        elif what == "redirect":
            self.send(307, {}, {"Location": "http://elsewhere.example/v1"})
        else:
            raise AssertionError(what)
        return None

    def send(self, status, body, headers=None):
        self.send_bytes(status, json.dumps(body).encode(), headers)

    def send_bytes(self, status, content, headers=None):
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True


def words(body):
    parts = body["messages"][-1]["content"]
    return " ".join(part["text"] for part in parts if part["type"] == "text")


def heard(body):
    """Samples of the clips in a body, as the server's decoder reads them."""
    parts = body["messages"][-1]["content"]
    clips = [part["input_audio"] for part in parts if part["type"] == "input_audio"]
    assert all(clip["format"] == "wav" for clip in clips)
    return [soundfile.read(io.BytesIO(base64.b64decode(clip["data"]))) for clip in clips]


def shares(body, hears=True):
    """Probability of each form: made up from the words, and from the audio where it hears."""
    seed = words(body).encode()
    if hears:
        seed += b"".join(samples.tobytes() for samples, _ in heard(body))
    draws = hashlib.sha256(seed).digest()
    weights = {form: 1 + draws[place] for place, form in enumerate(IDS)}
    total = sum(weights.values()) * 1.25
    return {form: weight / total for form, weight in weights.items()}


def answer(state, body):
    likely = shares(body, state.hears)
    text = max(likely, key=likely.__getitem__).strip()
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    if body.get("logprobs"):
        listed = sorted(likely.items(), key=lambda entry: -entry[1])[: state.listed]
        named = {form: form for form in likely}
        if body.get("return_tokens_as_token_ids"):
            named = {form: f"token_id:{state.ids[form][0]}" for form in likely}
            listed = [e for e in likely.items() if state.ids[e[0]][0] in body["logprob_token_ids"]]
        top = [{"token": named[form], "logprob": math.log(share)} for form, share in listed]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    return {"choices": [choice], "usage": {"prompt_tokens": 77}}
