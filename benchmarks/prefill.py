"""Positions read and wall time of a run, beside asking transformers once for every answer.

    python -m benchmarks.prefill [--targets 20] [--turns 60] [--part manipulation]

Needs the models extra. A Qwen2.5-Omni Thinker of about 7 million random parameters on one
CPU core, in one process. Ours goes through the runtime's own command, from requests.jsonl
to responses.jsonl; the canary is off and loading is not counted. The other side is
transformers' processor and `generate`, one prompt at a time, the processor once for all
votes on a prompt:

- manipulation: four audio exemplars, a yes/no verdict of one token with five votes and a
  tactic with each vote, so ten passes a target;
- distress: AO, AT and TO of each turn, so three passes a turn, up to 16 tokens each as in
  the task's own settings.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from core.protocol import Part, Request, write_requests

ROOT = Path(__file__).parents[1]
CARD = ROOT / "containers/qwen2_5_omni/model.toml"
EXEMPLARS, EXEMPLAR_S, TARGET_S, TURN_S, VOTES = 4, 16.0, 12.0, 12.0, 5
Choices = dict[str, tuple[str, ...]]
YES_NO: Choices = {"YES": ("A", " A"), "NO": ("B", " B")}
LEVELS: Choices = {label: (label, f" {label}") for label in "12345"}
TACTICS: Choices = {name: (name,) for name in ("Den", "Eva", "PlSeR", "PlViR")}


@dataclass(frozen=True)
class Cost:
    """What a way of working took."""

    positions: int
    seconds: float
    cpu_seconds: float


def main() -> None:
    options = _options()
    # The real vocabulary has a token for a word where this one has a token for a letter;
    # the texts are as short as the real prompts are in tokens.
    parts = {
        "manipulation": (_manipulation(options.targets), VOTES),
        "distress": (_distress(options.turns), 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        clips = _prepare(work, options)
        for part in ("manipulation", "distress") if options.part == "both" else (options.part,):
            requests, passes = parts[part]
            ours = _through_the_runtime(work / part, work, requests)
            theirs = _one_at_a_time(work, clips, requests, passes)
            print(f"{part}, {len(requests)} requests: {_compared(theirs, ours)}", flush=True)


def _compared(theirs: Cost, ours: Cost) -> str:
    return ", ".join(
        f"{was:,.{places}f} -> {now:,.{places}f} {unit} (x{was / now:.1f})"
        for unit, places, was, now in (
            ("positions", 0, theirs.positions, ours.positions),
            ("s", 1, theirs.seconds, ours.seconds),
            ("s of CPU", 1, theirs.cpu_seconds, ours.cpu_seconds),
        )
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prefill", description=__doc__)
    parser.add_argument("--targets", type=int, default=20, help="dialogues to judge")
    parser.add_argument("--turns", type=int, default=60, help="turns to rate")
    parser.add_argument("--part", choices=("both", "manipulation", "distress"), default="both")
    return parser.parse_args()


def _manipulation(targets: int) -> list[Request]:
    shown: list[Part] = []
    for number in range(EXEMPLARS):
        shown += [{"audio": f"exemplar{number}.wav"}, {"text": f"\nIt is {'AB'[number % 2]}.\n"}]
    questions = (
        ("verdict", "\nManipulation? A yes, B no. Answer:", YES_NO, 1),
        ("tactic", "\nWhich tactic is it, if any? Name it:", TACTICS, 8),
    )
    return [
        Request(
            id=f"{target} {purpose}",
            system="You judge dialogues.",
            parts=(*shown, {"audio": f"target{target}.wav"}, {"text": question}),
            choices=choices,
            max_new_tokens=tokens,
            prefix_parts=len(shown),
        )
        for target in range(targets)
        for purpose, question, choices, tokens in questions
    ]


def _distress(turns: int) -> list[Request]:
    rubric = "Rate the distress of the patient from 1 to 5. 1 is none, 3 some, 5 very high. "
    context = "Therapist: how was the week? Patient: much like the others, I suppose. "
    words = "Patient: I do not sleep, I do not eat, and I keep thinking that it is my fault. " * 2
    asked: list[Request] = []
    for turn in range(turns):
        clip: Part = {"audio": f"turn{turn}.wav"}
        spoken: Part = {"text": rubric + context}
        written: Part = {"text": rubric + context + words}
        asked += [
            Request(f"{turn} {condition}", "You rate turns.", parts, LEVELS, 16)
            for condition, parts in (
                ("AO", (clip, spoken)),
                ("AT", (clip, written)),
                ("TO", (written,)),
            )
        ]
    return asked


def _prepare(work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Checkpoint and clips on the disk; the clips by name."""
    sys.path.insert(0, str(ROOT / "tests/containers"))
    qwen2_5_omni, parts = import_module("tiny.qwen2_5_omni"), import_module("tiny.parts")

    # Wide and shallow with few key heads: as in the release, attention is not the larger part.
    qwen2_5_omni.save(work / "weights", hidden=512, layers=3, key_heads=1)
    names = {f"exemplar{number}": EXEMPLAR_S for number in range(EXEMPLARS)}
    names |= {f"target{number}": TARGET_S + number % 5 / 4 for number in range(options.targets)}
    names |= {f"turn{number}": TURN_S + number % 5 / 4 for number in range(options.turns)}
    (work / "audio").mkdir()
    return {
        f"{name}.wav": parts.write_clip(work / "audio", name, parts.voice(length, 100 + seed, seed))
        for seed, (name, length) in enumerate(names.items())
    }


def _through_the_runtime(folder: Path, work: Path, requests: Sequence[Request]) -> Cost:
    from containers.runtime import serve

    _load(work)
    before = process_time()
    _load(work)
    load_cpu_s = process_time() - before
    folder.mkdir()
    write_requests(folder / "requests.jsonl", requests)
    summary = folder / "summary"
    stdout = os.dup(1)
    started = process_time()
    with summary.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        code = serve.main(
            [
                *("--card", str(CARD), "--weights", str(work / "weights")),
                *("--audio", str(work / "audio"), "--precision", "fp32", "--device-map", "cpu"),
                *("--requests", str(folder / "requests.jsonl"), "--canary", "off"),
                *("--responses", str(folder / "responses.jsonl"), "--outlive-parent"),
            ]
        )
    spent = process_time() - started - load_cpu_s
    os.dup2(stdout, 1)
    told = json.loads(summary.read_text().splitlines()[-1])["summary"]
    if code or set(told["counts"]) != {"ok"}:
        raise SystemExit(f"the run did not answer everything: {told}")
    return Cost(told["work"]["prompt_positions"], told["seconds"] - told["load_s"], spent)


def _one_at_a_time(
    work: Path, clips: dict[str, Any], requests: Sequence[Request], passes: int
) -> Cost:
    """`passes` prompts through `generate` for each request, each read in full."""
    import torch

    from containers.runtime.prompts import prompt_of
    from containers.runtime.transformers_adapter import conversation

    adapter = _load(work)
    positions, seconds, spent = 0, 0.0, 0.0
    for request in requests:
        prompt, _ = prompt_of(request, clips, adapter.card.capabilities)
        started, before = perf_counter(), process_time()
        inputs = adapter.processor.apply_chat_template(
            [conversation(prompt)],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )
        for vote in range(passes):
            torch.manual_seed(vote)
            adapter.model.generate(**inputs, max_new_tokens=request.max_new_tokens, do_sample=True)
        seconds += perf_counter() - started
        spent += process_time() - before
        positions += passes * inputs["input_ids"].shape[1]
    return Cost(positions, seconds, spent)


def _load(work: Path) -> Any:
    from containers.qwen2_5_omni.adapter import load
    from containers.runtime.card import read_card

    return load(read_card(CARD), work / "weights", precision="fp32", device_map="cpu")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
