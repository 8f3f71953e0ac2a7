"""One run: every pending request gets an answer or a status, whatever a batch does.

A batch that does not fit is halved, one that raises is asked again one by one,
a bad clip costs its own item only. Each batch is on the disk before the next.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from containers.runtime.adapter import Adapter, Answer, Clip, OutOfMemoryError, Prompt, PromptError
from containers.runtime.answers import AnswerFile
from containers.runtime.batches import Sized, padded_tokens, plan_batches, sized
from containers.runtime.card import Card
from containers.runtime.clips import ClipError, check_there, read_clips, seconds_of
from containers.runtime.progress import Progress
from containers.runtime.prompts import check_suits, clip_names, prompt_of
from containers.runtime.replies import Stamp, failure, reply
from containers.runtime.watch import HangWatch, Signals
from core.protocol import Request, Response

FAILURES = ("audio_error", "model_error", "timeout")


@dataclass
class Run:
    """What a run needs at hand, and what it learns on the way.

    `alone` are ids that share no batch, because one that held them hung;
    `most_tokens` is the largest padded batch that may be tried: it shrinks when
    memory runs out, so that the rest of a run does not find out again each time.
    """

    card: Card
    audio: Path
    answers: AnswerFile
    stamp: Stamp
    signals: Signals
    progress: Progress
    alone: frozenset[str] = frozenset()
    most_tokens: float = float("inf")
    halvings: int = 0
    shown: set[str] = field(default_factory=set)

    def write(self, responses: Sequence[Response], audio_s: float = 0.0) -> None:
        """Append, fsync and count; a signal waits until it is done."""
        with self.signals.held():
            self.answers.append(responses)
            failed = sum(response.status in FAILURES for response in responses)
            self.progress.add(len(responses), audio_s, failed)


def measured(
    requests: Iterable[tuple[Request, Callable[[], Request]]],
    card: Card,
    audio: Path,
    stamp: Stamp,
) -> tuple[list[Sized], list[Response]]:
    """Requests with their lengths, and a failure for each that cannot be asked at all.

    Args:
        requests: each with what reads it again, see `containers.runtime.request_file`.
    """
    seconds: dict[str, float | ClipError] = {}
    good: list[Sized] = []
    bad: list[Response] = []
    for request, read in requests:
        try:
            check_suits(request, card.capabilities)
            lengths = {name: _seconds(audio, name, seconds) for name in clip_names(request)}
            good.append(sized(request, lengths, read))
        except ClipError as error:
            check_there(audio)
            bad.append(failure(request.id, "audio_error", str(error), stamp))
        except PromptError as error:
            bad.append(failure(request.id, "model_error", str(error), stamp))
    return good, bad


def answer_all(run: Run, adapter: Adapter, requests: Sequence[Sized], watch: HangWatch) -> None:
    """Answer every request; what arrives in the file is all there is to return."""
    waiting = deque(_planned(run, requests))
    while waiting:
        batch = waiting.popleft()
        if len(batch) > 1 and padded_tokens(batch) > run.most_tokens:
            waiting.extendleft(reversed(_halves(batch)))
            continue
        batch, prompts, fallbacks = _prompts(run, batch)
        if not batch:
            continue
        started = time.perf_counter()
        try:
            answers = _answers(adapter, prompts, watch)
        except Exception as error:
            waiting.extendleft(reversed(_after_failure(run, batch, error)))
            continue
        latency_s = (time.perf_counter() - started) / len(batch)
        run.write(
            [
                reply(prompt, taken, answer, latency_s, run.stamp)
                for prompt, taken, answer in zip(prompts, fallbacks, answers, strict=True)
            ],
            sum(entry.audio_s for entry in batch),
        )


def _planned(run: Run, requests: Sequence[Sized]) -> list[list[Sized]]:
    together = [entry for entry in requests if entry.id not in run.alone]
    suspects = [entry for entry in requests if entry.id in run.alone]
    batch = run.card.capabilities.batch
    # The suspects come last: whatever they do, the others have their answers.
    return [
        *plan_batches(together, run.card.budget, together=batch),
        *plan_batches(suspects, run.card.budget, together=False),
    ]


def _seconds(audio: Path, name: str, known: dict[str, float | ClipError]) -> float:
    if name not in known:
        try:
            known[name] = seconds_of(audio / name)
        except ClipError as error:
            known[name] = error
    length = known[name]
    if isinstance(length, ClipError):
        raise length
    return length


def _prompts(
    run: Run, batch: list[Sized]
) -> tuple[list[Sized], list[Prompt], list[tuple[str, ...]]]:
    """The batch's prompts; an item whose clip cannot be read is answered so and left out."""
    names = [name for entry in batch for name in entry.clips]
    clips = read_clips(run.audio, names)
    readable = {name: clip for name, clip in clips.items() if isinstance(clip, Clip)}
    kept: list[Sized] = []
    prompts: list[Prompt] = []
    fallbacks: list[tuple[str, ...]] = []
    for entry in batch:
        bad = [name for name in entry.clips if name not in readable]
        if bad:
            reason = str(clips[bad[0]])
            run.write([failure(entry.id, "audio_error", reason, run.stamp)], entry.audio_s)
            continue
        prompt, taken = prompt_of(entry.read(), readable, run.card.capabilities)
        kept.append(entry)
        prompts.append(prompt)
        fallbacks.append(taken)
    return kept, prompts, fallbacks


def _answers(adapter: Adapter, prompts: Sequence[Prompt], watch: HangWatch) -> list[Answer]:
    with watch.watching([prompt.id for prompt in prompts]):
        answers = adapter.answer(prompts)
    if len(answers) != len(prompts):
        raise RuntimeError(f"expected {len(prompts)} answers, the adapter gave {len(answers)}.")
    return answers


def _after_failure(run: Run, batch: list[Sized], error: Exception) -> list[list[Sized]]:
    """What to try instead of a batch that raised; a batch of one is answered with the reason."""
    no_memory = is_out_of_memory(error)
    _show_once(run, error)
    if len(batch) > 1:
        if not no_memory:
            return [[entry] for entry in batch]
        run.most_tokens = padded_tokens(batch) / 2
        run.halvings += 1
        return _halves(batch)
    entry = batch[0]
    reason = str(error) if isinstance(error, PromptError) else f"{type(error).__name__}: {error}"
    if no_memory:
        reason = f"out of memory on a batch of one ({entry.audio_s:.1f} s of audio): {error}"
    run.write([failure(entry.id, "model_error", reason, run.stamp)], entry.audio_s)
    return []


def _show_once(run: Run, error: Exception) -> None:
    # A reason of one line tells the reader of the table; whoever mends the adapter needs the rest.
    if type(error).__name__ not in run.shown and not isinstance(error, PromptError):
        run.shown.add(type(error).__name__)
        traceback.print_exception(error, file=sys.stderr)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an adapter's error, or torch's own, means that there was not enough memory."""
    # torch's own error has the same name; the runtime does not import torch to ask for it.
    return isinstance(error, (OutOfMemoryError, MemoryError)) or (
        type(error).__name__ == "OutOfMemoryError"
    )


def _halves(batch: list[Sized]) -> list[list[Sized]]:
    middle = (len(batch) + 1) // 2
    return [batch[:middle], batch[middle:]]
