"""What detection costs around the model: planning, ids, files, follow-ups and the predictions.

    python -m benchmarks.detection [--source mentalmanip_con.csv] [--dialogues 2915] [--repeats 5]

CPU milliseconds a clip, as medians over the repeats; each has a seed of its own, so that
nothing is left from the one before. The answers are made up and their making is not counted:
all YES, so that each clip is also asked for a tactic and a quote, and a mix. Their
probabilities leave something to draw, and of their quotes six in ten are what was said, three
are words left out and changed, one is invented. Peak memory is that of Python's objects.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

import pandas as pd

from benchmarks.speech import many_dialogues
from core.datasets.mentalmanip import read_mentalmanip
from core.detection.questions import VOTES
from core.protocol import Response, ResponseLog, read_responses, write_requests
from core.tasks import PlannedRequest, task

T = TypeVar("T")
CLIPS_PER_PROMPT = 8
INVENTED = "you never gave me a single chance to talk"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each condition and mix, and the memory at two sizes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__)
    parser.add_argument("--source", type=Path, help="a CSV of MentalManip's layout")
    parser.add_argument("--dialogues", type=int, default=2915, help="as many at most")
    parser.add_argument("--repeats", type=int, default=5, help="runs behind each median")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        items = _items(asked.source or many_dialogues(Path(name) / "many.csv"), asked.dialogues)
        print(f"{os.cpu_count()} cores, {len(items):,} dialogues, {VOTES} votes each")
        for condition in ("AO", "AT", "TO"):
            for share, named in ((1.0, "all YES"), (0.4, "four in ten YES")):
                runs = [
                    _overhead(items, condition, share, seed, Path(name))
                    for seed in range(asked.repeats)
                ]
                steps = {step: median(run[step] for run in runs) for step in runs[0]}
                total = median(sum(run.values()) for run in runs)
                said = ", ".join(f"{step} {spent:.2f}" for step, spent in steps.items())
                print(f"{condition}, {named}: {total:.2f} ms a clip ({said})", flush=True)
        for count in (len(items) // 4, len(items)):
            tracemalloc.start()
            _overhead(items.head(count), "AT", 1.0, 0, Path(name))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{count:,} dialogues: peak {peak / 2**20:.0f} MiB")


def _overhead(
    items: pd.DataFrame, condition: str, share: float, seed: int, folder: Path
) -> dict[str, float]:
    """CPU milliseconds a clip of each step of a run, every round as `experiments.rounds` does."""
    about, clock = task("manipulation"), _Clock()
    selection = clock("select", partial(about.select, items, seed=seed, settings={}))
    evaluated = selection.evaluated
    spoken = dict(zip(evaluated["item_id"], evaluated["transcript"], strict=True))
    given: dict[str, Any] = {
        "seed": seed,
        "settings": {},
        "audio": {item_id: f"{item_id}.wav" for item_id in items["item_id"]},
        "model_digest": "0" * 32,
        "exemplars": selection.exemplars,
        "clips_per_prompt": CLIPS_PER_PROMPT,
    }
    requests, answers = folder / "requests.jsonl", folder / "responses.jsonl"
    answers.unlink(missing_ok=True)
    planned: list[PlannedRequest] = []
    responses: Mapping[str, Response] = {}
    more = clock("plan", partial(about.plan, evaluated, condition, **given))
    while more:
        planned += more
        clock("write", partial(write_requests, requests, [entry.request for entry in more]))
        with ResponseLog(answers) as log:
            log.append([_answer(entry, share, spoken[entry.item_id]) for entry in more])
        responses = clock("read", partial(read_responses, answers))
        asked = partial(about.follow_up, planned, responses, evaluated, **given)
        more = clock("follow up", asked)
    clock("write", partial(write_requests, requests, [entry.request for entry in planned]))
    clock("predict", partial(about.predict, planned, responses, evaluated, {}))
    return {step: 1e3 * spent / len(evaluated) for step, spent in clock.spent.items()}


class _Clock:
    """Seconds of CPU each step took, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], T]) -> T:
        began = process_time()
        done = work()
        self.spent[step] = self.spent.get(step, 0.0) + process_time() - began
        return done


def _answer(entry: PlannedRequest, share: float, transcript: str) -> Response:
    drawing = random.Random(entry.request.id)
    labels = list(entry.request.choices or ())
    text, weights = "", [0.8**place for place in range(len(labels))]
    if entry.purpose == "answer":
        weights = [0.8, 0.2] if drawing.random() < share else [0.2, 0.8]
        text = "A" if weights[0] > weights[1] else "B"
    elif entry.purpose == "quote":
        text = _quote(transcript.split(), drawing.random())
    logs = {
        label: math.log(weight / sum(weights))
        for label, weight in zip(labels, weights, strict=True)
    }
    return Response(
        entry.request.id,
        "ok",
        text=text,
        choice_logprobs=logs or None,
        choice_mass=0.98 if labels else None,
        audio_seconds=20.0,
        audio_seconds_used=20.0,
        latency_s=0.1,
    )


def _quote(words: Sequence[str], drawn: float) -> str:
    if drawn < 0.6:
        return " ".join(words[1:9])
    return " ".join([*words[3:9:2], "really", *words[1:4]]) if drawn < 0.9 else INVENTED


def _items(source: Path, count: int) -> pd.DataFrame:
    """A validated manifest's columns of the first dialogues of a file."""
    return pd.DataFrame(
        [
            {
                "item_id": dialogue.dialogue_id,
                "audio": f"audio/{dialogue.dialogue_id}.flac",
                "transcript": dialogue.transcript,
                "label": dialogue.label,
                "techniques": ",".join(dialogue.techniques) or None,
                "voices": "af_heart,am_michael",
            }
            for dialogue in read_mentalmanip(source).dialogues[:count]
        ]
    )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
