"""A tiny SALMONN in the released layout, with another implementation's numbers for it.

Float32 on a CPU. It pins the encoders, the Q-Former, the LoRA and the prompt's tokens, all through
the adapter, and runs through the command that every image runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from containers.runtime.adapter import Clip, Prompt, Words
from containers.runtime.card import read_card
from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests

pytestmark = [pytest.mark.models, pytest.mark.shared]

ROOT = Path(__file__).parents[3]
CARD = ROOT / "containers/salmonn/model.toml"


@pytest.fixture(scope="module")
def golden(shared) -> Path:
    folder = shared / "fixtures/salmonn_tiny"
    if not folder.is_dir():
        pytest.fail(f"{folder} is missing")
    return folder


@pytest.fixture(scope="module")
def expected(golden) -> dict:
    return json.loads((golden / "expected.json").read_text())


@pytest.fixture(scope="module")
def adapter(golden):
    from containers.salmonn.adapter import load

    return load(read_card(CARD), golden, precision="fp32", device_map="cpu")


def asked(golden: Path, prompt: str) -> Prompt:
    """The request that SALMONN's template turns into this prompt."""
    samples, _ = soundfile.read(golden / "input.wav", dtype="float32")
    begin, _, question = prompt.partition("<SpeechHere></Speech> ")
    assert begin == "USER: <Speech>"
    question = question.removesuffix("\nASSISTANT:")
    clip = Clip("input.wav", str(golden / "input.wav"), samples)
    return Prompt("id", None, (clip, Words(question)), None, 6, 0.0, 1.0, 0)


def test_speech_tokens(adapter, golden):
    import torch

    samples, _ = soundfile.read(golden / "input.wav", dtype="float32")
    with torch.inference_mode():
        tokens, seconds = adapter.encode(samples)
    reference = np.load(golden / "expected_speech_tokens.npz")["speech_tokens"]
    assert seconds == 2.5
    assert tokens.shape == reference.shape == (88, 32)
    np.testing.assert_allclose(tokens.numpy(), reference, atol=1e-4)


@pytest.mark.parametrize("case", ["question", "rating"])
def test_first_token_logits_and_greedy_tokens(adapter, golden, expected, case):
    import torch

    from containers.runtime.decoding import Sampling, generate
    from containers.runtime.prefix import PrefixStore, prefill

    wanted = expected["cases"][case]
    rendered = adapter.render(asked(golden, wanted["prompt"]))
    assert len(rendered.ids) == wanted["positions"]
    with torch.inference_mode():
        logits, past = prefill(adapter, [rendered], PrefixStore())
        (written,) = generate(adapter, logits, past, [Sampling(max_new_tokens=6)])
    # The last entry is the padding token the authors add, with random weights in every load.
    reference = np.array(wanted["first_token_logits"])[:-1]
    np.testing.assert_allclose(logits[0].numpy(), reference, atol=1e-4)
    # The reference's `generate` puts a bos in front.
    assert [1, *written.ids] == wanted["greedy_token_ids"]


def test_both_prompts_in_one_batch_give_the_same(adapter, golden, expected):
    cases = list(expected["cases"].values())
    logits = adapter.next_token_logits([asked(golden, case["prompt"]) for case in cases])
    reference = np.array([case["first_token_logits"] for case in cases])[:, :-1]
    np.testing.assert_allclose(logits, reference, atol=1e-4)


def test_a_run_through_the_command_hears_and_answers(golden, expected, tmp_path, model_environment):
    audio = tmp_path / "audio"
    audio.mkdir()
    shutil.copy(golden / "input.wav", audio)
    requests = [
        Request(
            id=f"{case} {purpose}",
            system=system,
            parts=({"audio": "input.wav"}, {"text": "Is the speaker angry? A or B."}),
            choices=choices,
            max_new_tokens=6,
        )
        for case, system in (("bare", None), ("told", "Listen."))
        for purpose, choices in (
            ("verdict", {"YES": ("A", " A"), "NO": ("B", " B")}),
            ("words", None),
        )
    ]
    write_requests(tmp_path / "requests.jsonl", requests)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "containers.runtime", "--precision", "fp32"),
            *("--device-map", "cpu", "--card", CARD, "--weights", golden, "--audio", audio),
            *("--requests", tmp_path / "requests.jsonl"),
            *("--responses", tmp_path / "responses.jsonl"),
        ],
        cwd=ROOT,
        env=model_environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert min(summary["hearing"]["changes"].values()) > 0.01
    # Once for the four requests; the canary's own clips come on top.
    assert summary["work"]["encoder_seconds"] < 2 * 2.5 + 3 * 8
    answers = read_responses(tmp_path / "responses.jsonl")
    assert [answers[r.id].audio_seconds_used for r in requests] == [2.5] * 4
    logits = np.array(expected["cases"]["question"]["first_token_logits"])[:-1]
    likely = logits - np.logaddexp.reduce(logits)
    # Token 263 is " A", 272 "A"; " B" is a space (266) and a "B", and so has no figure here.
    yes = np.logaddexp(likely[263], likely[272])
    assert answers["bare verdict"].choice_logprobs["YES"] == pytest.approx(yes, abs=1e-4)
    assert answers["told words"].fallbacks == ("system_in_user_turn", "speech_first")
