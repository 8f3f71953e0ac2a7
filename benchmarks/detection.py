"""What detection costs around the model: planning, ids, files, follow-ups and the predictions.

    python -m benchmarks.detection [--source mentalmanip_con.csv] [--dialogues 2915] [--repeats 5]

CPU milliseconds a clip, as medians over the repeats; each has a seed of its own, so that
nothing is left from the one before. The steps are those of `experiments.rounds`, which holds
some hundred dialogues at a time. The answers are made up and their making is not counted:
all YES, so that each clip is also asked for a tactic and a quote, and a mix. Their
probabilities leave something to draw, and of their quotes six in ten are what was said, three
are words left out and changed, one is invented.

Memory is the peak of Python's objects, the dialogues themselves not counted; they are taken
again under other ids where the source has fewer than are asked about.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

import pandas as pd

from benchmarks.speech import many_dialogues
from containers.runtime.answered import Answered
from containers.runtime.response_log import ResponseLog
from core.datasets.mentalmanip import read_mentalmanip
from core.detection.questions import VOTES
from core.protocol import Request, Response, write_requests
from core.tasks import PlannedRequest, task
from experiments.planned_file import PlannedFile
from experiments.rounds import CHUNK

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
        _memory(items, Path(name))


def _memory(items: pd.DataFrame, folder: Path) -> None:
    """Print the peak at each size, and what a dialogue more adds to it."""
    peaks: list[tuple[int, int]] = []
    for count in (len(items) // 2, len(items), 2 * len(items), 4 * len(items)):
        many = pd.concat([items] * -(-count // len(items)), ignore_index=True).head(count)
        many["item_id"] = [f"{name}_{number}" for number, name in enumerate(many["item_id"])]
        tracemalloc.start()
        _overhead(many, "AT", 1.0, 0, folder)
        peaks.append((count, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
        said = f"{count:,} dialogues: peak {peaks[-1][1] / 2**20:.0f} MiB"
        if len(peaks) > 1:
            (fewer, less), (more, most) = peaks[-2:]
            said += f", {(most - less) / (more - fewer) / 1024:.1f} KiB a dialogue more"
        print(said, flush=True)


def _overhead(
    items: pd.DataFrame, condition: str, share: float, seed: int, folder: Path
) -> dict[str, float]:
    """CPU milliseconds a clip of each step of a run, every round as `experiments.rounds` does."""
    about, clock = task("manipulation"), _Clock()
    selection = clock("select", partial(about.select, items, seed=seed, settings={}))
    evaluated = selection.evaluated
    given: dict[str, Any] = {
        "seed": seed,
        "settings": {},
        "audio": {item_id: f"{item_id}.wav" for item_id in items["item_id"]},
        "model_digest": "0" * 32,
        "exemplars": selection.exemplars,
        "clips_per_prompt": CLIPS_PER_PROMPT,
    }
    requests, responses = folder / "requests.jsonl", folder / "responses.jsonl"
    responses.unlink(missing_ok=True)
    starts: Sequence[int] = range(0, len(evaluated), CHUNK)
    with tempfile.TemporaryFile(dir=folder) as stream:
        kept, answered = PlannedFile(stream), Answered(responses)
        predicted: list[pd.DataFrame] = []
        while starts:
            asked: list[int] = []

            def planned(
                starts: Sequence[int] = starts, asked: list[int] = asked
            ) -> Iterator[PlannedRequest]:
                for start in starts:
                    some = evaluated.iloc[start : start + CHUNK]
                    if before := clock("keep", partial(kept.of, start)):
                        ids = [entry.request.id for entry in before]
                        said = clock("read", partial(answered.of, ids))
                        follow_up = partial(about.follow_up, before, said, some, **given)
                        if not (more := clock("follow up", follow_up)):
                            predict = partial(about.predict, before, said, some, {})
                            predicted.append(clock("predict", predict))
                    else:
                        more = clock("plan", partial(about.plan, some, condition, **given))
                    if more:
                        asked.append(start)
                        clock("keep", partial(kept.add, start, more))
                        yield from more

            clock.around("write", partial(write_requests, requests, map(_request, planned())))
            starts = asked
            for start in asked:
                _answer_all(kept.of(start), evaluated, start, share, responses, kept)
            clock("read", answered.look)
        pd.concat(predicted)
    return {step: 1e3 * spent / len(evaluated) for step, spent in clock.spent.items()}


def _request(entry: PlannedRequest) -> Request:
    return entry.request


def _answer_all(
    planned: Sequence[PlannedRequest],
    evaluated: pd.DataFrame,
    start: int,
    share: float,
    responses: Path,
    kept: PlannedFile,
) -> None:
    """Answer what was planned last about some dialogues."""
    some = evaluated.iloc[start : start + CHUNK]
    spoken = dict(zip(some["item_id"], some["transcript"], strict=True))
    newest = set(kept.newest_ids(start))
    asked = [entry for entry in planned if entry.request.id in newest]
    with ResponseLog(responses) as log:
        log.append([_answer(entry, share, spoken[entry.item_id]) for entry in asked])


class _Clock:
    """Seconds of CPU each step took, by name; a step within another counts for itself alone."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], T]) -> T:
        began = process_time()
        done = work()
        self.spent[step] = self.spent.get(step, 0.0) + process_time() - began
        return done

    def around(self, step: str, work: Callable[[], None]) -> None:
        """Time a step that has others taken within it."""
        before, began = sum(self.spent.values()), process_time()
        work()
        within = sum(self.spent.values()) - before
        self.spent[step] = self.spent.get(step, 0.0) + process_time() - began - within


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
