"""A native model through the command that every image runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from containers.runtime.response_log import read_responses
from core.protocol import Request, write_requests

pytestmark = pytest.mark.models

ROOT = Path(__file__).parents[2]


def test_a_run_of_voxtral_answers_every_request_and_hears(tmp_path, model_environment):
    from tiny import voxtral
    from tiny.parts import voice, write_clip

    audio = tmp_path / "audio"
    audio.mkdir()
    for number, pitch_hz in enumerate((110, 150, 210, 180)):
        write_clip(audio, f"clip{number}", voice(1.5 + number / 2, pitch_hz, number))
    voxtral.save(tmp_path / "weights")
    shown = ({"audio": "clip3.wav"}, {"text": "Manipulated: No\n"})
    requests = [
        Request(
            id=f"{number} {purpose}",
            system="You judge dialogues.",
            parts=(*shown, {"audio": f"clip{number}.wav"}, {"text": question}),
            choices=choices,
            prefix_parts=len(shown),
        )
        for number in range(3)
        for purpose, question, choices in (
            ("verdict", "Manipulated?", {"YES": ("Yes", " Yes"), "NO": ("No", " No")}),
            ("quote", "Quote the sentence.", None),
        )
    ]
    write_requests(tmp_path / "requests.jsonl", requests)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "containers.runtime", "--precision", "fp32"),
            *("--device-map", "cpu", "--card", ROOT / "containers/voxtral/model.toml"),
            *("--weights", tmp_path / "weights", "--audio", audio),
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
    # Random weights seldom end a sentence within the limit.
    assert summary["counts"].get("ok", 0) + summary["counts"].get("truncated", 0) == 6
    assert summary["counts"]["ok"] >= 3
    # Three targets and the exemplar, once each; the canary's own clips come on top.
    assert summary["work"]["encoder_seconds"] < 1.5 + 2 + 2.5 + 3 + 4 * 8
    answers = read_responses(tmp_path / "responses.jsonl")
    for request in requests:
        answer = answers[request.id]
        assert "system_in_user_turn" in answer.fallbacks
        assert answer.audio_seconds_used == pytest.approx(answer.audio_seconds)
        assert (answer.choice_logprobs is None) == (request.choices is None)
