"""Images under names of their own; a server that speaks OpenAI's protocol, and a job for it."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from containers.runtime.card import read_card
from experiments.runners import Job, Site, _pace
from tests.experiments.runners.openai_server import Server
from tests.experiments.runners.server_jobs import CARD_PATH


@pytest.fixture(scope="session", autouse=True)
def images_of_tests():
    """Names of their own, so that testing leaves a user's images as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_IMAGES", "undertone-tests")
        yield


@pytest.fixture
def server():
    state = Server()
    yield state
    state.stop()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_pace, "BACKOFF_S", 0.02)
    monkeypatch.delenv("UNDERTONE_API_KEY", raising=False)


@pytest.fixture
def card():
    card = read_card(CARD_PATH)
    return replace(card, budget=replace(card.budget, timeout_s=0.8))


@pytest.fixture
def job(tmp_path, card, server, quick):
    """A job over requests that the test writes with `ask`."""
    (tmp_path / "audio").mkdir()
    for number in range(3):
        noise = np.random.default_rng(number).normal(0, 0.1, 20_000 + 1_000 * number)
        soundfile.write(tmp_path / "audio" / f"c{number}.wav", noise, 16_000, subtype="FLOAT")
    return Job(
        card=card,
        card_path=CARD_PATH,
        weights=tmp_path,
        requests=tmp_path / "requests.jsonl",
        responses=tmp_path / "responses.jsonl",
        audio=tmp_path / "audio",
        precision="bf16",
        device_map="auto",
        log=tmp_path / "log",
        site=Site(server.url),
    )
