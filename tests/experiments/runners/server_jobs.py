"""Questions put to an OpenAI-compatible server by its runner, and what came back."""

from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests
from experiments.runners import server as runner
from experiments.settings import ROOT

CHOICES = {label: (label, f" {label}") for label in "12345"}
CARD_PATH = ROOT / "containers" / "voxtral" / "model.toml"


def question(text, clip=None, **fields):
    parts = ([{"audio": clip}] if clip else []) + [{"text": text}]
    fields = {"system": None, "choices": CHOICES, **fields}
    return Request(id=f"id of {text}", parts=tuple(parts), **fields)


def ask(job, *requests):
    write_requests(job.requests, requests)
    runner.run(job)
    return read_responses(job.responses)


def answer_to(job, text, **fields):
    return ask(job, question(text, **fields))[f"id of {text}"]
