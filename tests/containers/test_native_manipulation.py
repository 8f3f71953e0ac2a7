"""Study 2's own requests through a native model: the shared opening is read once for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from containers.runtime.response_log import read_responses
from core.protocol import write_requests
from core.tasks import task

pytestmark = pytest.mark.models

ROOT = Path(__file__).parents[2]
ITEMS = 7


def test_votes_tactic_and_quote_share_what_comes_before_the_dialogue(tmp_path, model_environment):
    from tiny import qwen2_5_omni
    from tiny.parts import voice, write_clip

    audio = tmp_path / "audio"
    audio.mkdir()
    for number in range(ITEMS):
        write_clip(audio, f"clip{number}", voice(1.0 + number / 4, 110 + 20 * number, number))
    qwen2_5_omni.save(tmp_path / "weights")
    manipulation = task("manipulation")
    items = pd.DataFrame(
        {
            "item_id": [f"d{n}" for n in range(ITEMS)],
            "transcript": [f"Person1: Number {n}, come here.\nPerson2: No." for n in range(ITEMS)],
            "label": ["YES", "NO"] * 3 + ["YES"],
            "audio": [f"clip{n}.wav" for n in range(ITEMS)],
        }
    )
    found = manipulation.select(items, seed=0, settings={"shots": "4"})
    terms = {
        "seed": 0,
        "settings": {"shots": "4"},
        "audio": dict(zip(items["item_id"], items["audio"], strict=True)),
        "model_digest": "m",
        "exemplars": found.exemplars,
        "clips_per_prompt": 8,
    }

    def answers(entries):
        write_requests(tmp_path / "requests.jsonl", [entry.request for entry in entries])
        done = subprocess.run(
            [
                *(sys.executable, "-m", "containers.runtime", "--precision", "fp32"),
                *("--device-map", "cpu", "--card", ROOT / "containers/qwen2_5_omni/model.toml"),
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
        return read_responses(tmp_path / "responses.jsonl"), summary["work"]

    entries = manipulation.plan(found.evaluated, "AO", **terms)
    responses, _ = answers(entries)
    # Random weights put next to nothing on A and B: the words are asked.
    words = manipulation.follow_up(entries, responses, found.evaluated, **terms)
    assert {entry.purpose for entry in words} == {"words"}
    everyone_says_yes = {
        e.request.id: type(responses[e.request.id])(
            **(
                vars(responses[e.request.id])
                | {"choice_mass": 1.0, "choice_logprobs": {"YES": -0.01, "NO": -9.0}}
            )
        )
        for e in entries
    }
    more = manipulation.follow_up(entries, everyone_says_yes, found.evaluated, **terms)
    responses, work = answers([*words, *more])

    assert {responses[e.request.id].status for e in [*words, *more]} <= {"ok", "truncated"}
    table = manipulation.predict([*entries, *more], responses | everyone_says_yes, items)
    assert table["tactic"].notna().all()
    assert set(table["tactic_path"]) == {"probabilities"}
    whole = sum(responses[e.request.id].prompt_tokens for e in [*words, *more])
    opening = whole - work["prompt_positions"]
    # Nine prompts that begin with four exemplars each: most of it is never read again.
    assert opening > whole / 2
