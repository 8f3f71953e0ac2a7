"""The model behind an OpenAI-compatible server, `vllm serve` first of all.

Requests go out side by side, as many as the server bears; answers are appended
as they come. The server is nobody we started: what it serves is checked by name,
and that it hears is checked as with every other model.

What is exact and what is not: on vLLM the label probabilities are the model's own,
read by token id. On other servers they are lower bounds from the likeliest tokens,
or missing, and every response says which. How many seconds of a clip a server
used it does not say; the card's limit stands for it.
"""

from __future__ import annotations

import json
import queue
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from containers.runtime.answers import AnswerFile
from containers.runtime.batches import Sized, plan_batches
from containers.runtime.canary import DeafError, Hearing
from containers.runtime.card import Card
from containers.runtime.clips import ClipError, read_clips
from containers.runtime.loop import FAILURES, measured
from containers.runtime.progress import Progress
from containers.runtime.prompts import clip_names, prompt_of
from containers.runtime.replies import Stamp, failure
from containers.runtime.request_file import RequestFile
from core.protocol import Request, Response, digest
from core.replacing import replace_text
from experiments.answer_file import open_answers
from experiments.runners import HERE, SUMMARY, Job, RunnerError, Site, said_to
from experiments.runners._asking import Asker
from experiments.runners._chat import Dialect
from experiments.runners._endpoint import Endpoint
from experiments.runners._hearing import check_server_hears
from experiments.runners._pace import Pace

CANARY_CLIPS = 8
# The weights are somebody else's: in which numbers they are computed is not told.
AS_SERVED = "as served"


def why_not(card: Card, site: Site = HERE) -> str | None:
    """What keeps the endpoint from being asked, as a sentence; None if nothing."""
    try:
        _served(card, Endpoint(site), site)
    except RunnerError as error:
        return str(error)
    return None


def image(card: Card, site: Site = HERE) -> str:
    """Digest of what answers there: the model's name and the server's version.

    The address is left out: the same server moved to another port gives the same answers.
    """
    endpoint = Endpoint(site)
    model = _served(card, endpoint, site)
    return "server:" + digest({"model": model, "vllm": endpoint.vllm_version()})


def run(job: Job) -> None:
    """Put every request that has no answer yet to the server.

    Raises:
        RunnerError: for what concerns all requests; what was answered is kept.
    """
    answers = open_answers(job.responses)
    try:
        with closing(RequestFile(job.requests)) as requests:
            if any(answers.pending(requests.placed())):
                _ask_all(job, answers, requests)
    finally:
        answers.close()


def _served(card: Card, endpoint: Endpoint, site: Site) -> str:
    """The name the endpoint knows the model by."""
    served = endpoint.models()
    wanted = site.served_model or next((repo.id for repo in card.repos), card.name)
    if wanted in served:
        return wanted
    named = ", ".join(served) or "nothing"
    hint = "" if site.served_model else " If one of these is it, name it with -P served_model=...;"
    raise RunnerError(
        f"{endpoint.url} serves {named}, not {wanted}.{hint} if not, start the server that does "
        f"(mlflow run . -e serve_args -P model={card.name} prints how)."
    )


@dataclass
class _Round:
    """One run over the pending requests."""

    job: Job
    answers: AnswerFile
    asker: Asker
    progress: Progress
    waiting: queue.SimpleQueue[Sized] = field(default_factory=queue.SimpleQueue)
    done: queue.SimpleQueue[tuple[Response, float] | BaseException] = field(
        default_factory=queue.SimpleQueue
    )
    ended: threading.Event = field(default_factory=threading.Event)

    def write(self, response: Response, audio_s: float) -> None:
        self.answers.append([response])
        self.progress.add(1, audio_s, int(response.status in FAILURES))


def _ask_all(job: Job, answers: AnswerFile, requests: RequestFile) -> None:
    endpoint = Endpoint(job.site)
    model = _served(job.card, endpoint, job.site)
    version = endpoint.vllm_version() or ""
    dialect = Dialect(model, version, forms=_forms(endpoint, model, requests) if version else {})
    stamp = Stamp(job.card.digest, image(job.card, job.site), AS_SERVED)
    good, bad = measured(answers.pending(requests.placed()), job.card, job.audio, stamp)
    asked = len(good) + len(bad)
    with said_to(job) as log:
        _say_what_leaves(endpoint, good, log)
        progress = Progress(asked, sum(entry.audio_s for entry in good), log)
        asker = Asker(endpoint, dialect, job.card, stamp, Pace(), log)
        asking = _Round(job, answers, asker, progress)
        for response in bad:
            asking.write(response, 0.0)
        hearing: Hearing | None = None
        try:
            hearing = _canary(job, asker, good)
            _ask_side_by_side(asking, good)
        finally:
            progress.finish()
            _summarise(asking, requests, hearing, asked)


def _ask_side_by_side(asking: _Round, good: Sequence[Sized]) -> None:
    budget = asking.job.card.budget
    # In the order of batches: what shares a prefix or a clip is cached by the server.
    for (entry,) in plan_batches(good, budget, together=False):
        asking.waiting.put(entry)
    for number in range(min(len(good), Pace().most)):
        name = f"asking {number}"
        threading.Thread(target=_work, args=(asking,), name=name, daemon=True).start()
    try:
        for _ in good:
            outcome = asking.done.get()
            if isinstance(outcome, BaseException):
                raise outcome
            asking.write(*outcome)
    finally:
        asking.ended.set()


def _work(asking: _Round) -> None:
    while not asking.ended.is_set():
        try:
            entry = asking.waiting.get_nowait()
        except queue.Empty:
            return
        try:
            asking.done.put((_answer(asking, entry.read()), entry.audio_s))
        except BaseException as error:
            asking.done.put(error)
            return


def _answer(asking: _Round, request: Request) -> Response:
    clips = read_clips(asking.job.audio, clip_names(request))
    for clip in clips.values():
        if isinstance(clip, ClipError):
            return failure(request.id, "audio_error", str(clip), asking.asker.stamp)
    readable = {name: clip for name, clip in clips.items() if not isinstance(clip, ClipError)}
    prompt, fallbacks = prompt_of(request, readable, asking.job.card.capabilities)
    return asking.asker.answer(prompt, fallbacks)


def _forms(endpoint: Endpoint, model: str, requests: RequestFile) -> dict[str, tuple[int, ...]]:
    """Token ids of every surface form of the run, as far as the server tells them."""
    texts = {
        form for request in requests for forms in (request.choices or {}).values() for form in forms
    }
    spelled = {text: endpoint.token_ids(model, text) for text in sorted(texts)}
    return {text: tuple(ids) for text, ids in spelled.items() if ids}


def _canary(job: Job, asker: Asker, good: Sequence[Sized]) -> Hearing | None:
    spoken = sorted((entry for entry in good if entry.audio_s), key=lambda e: -e.audio_s)
    if not spoken:
        return None
    question = next((entry for entry in spoken if not entry.worded), spoken[0])
    names = dict.fromkeys(name for entry in (question, *spoken) for name in entry.clips)
    found = read_clips(job.audio, list(names)[: CANARY_CLIPS + len(question.clips)])
    clips = {name: clip for name, clip in found.items() if not isinstance(clip, ClipError)}
    if not set(question.clips) <= set(clips):
        return None
    prompt, _ = prompt_of(question.read(), clips, job.card.capabilities)
    try:
        with tempfile.TemporaryDirectory(prefix="undertone-canary-") as folder:
            return check_server_hears(asker, prompt, list(clips.values()), Path(folder))
    except DeafError as error:
        raise RunnerError(f"{job.card.name} at {asker.endpoint.url}: {error}") from error


def _say_what_leaves(endpoint: Endpoint, good: Sequence[Sized], log: TextIO) -> None:
    if endpoint.is_here:
        return
    clips = {name for entry in good for name in entry.clips}
    plain = " over an unencrypted connection" if endpoint.is_plain else ""
    print(
        f"Leaving this machine for {endpoint.host}{plain}: {len(clips)} audio clips and the words "
        f"of {len(good)} requests (prompts, transcripts). Labels, item names and paths stay.",
        file=log,
        flush=True,
    )


def _summarise(asking: _Round, requests: RequestFile, hearing: Hearing | None, asked: int) -> None:
    answers = asking.answers.counts(requests)
    summary: dict[str, Any] = {
        "model": asking.job.card.name,
        "requests": sum(answers.values()),
        "counts": answers,
        "asked": asked,
        "answered": asking.progress.answered,
        "seconds": round(asking.progress.elapsed_s, 3),
        "retries": asking.asker.retries,
        "most_at_once": asking.asker.pace.highest,
        "hearing": hearing and asdict(hearing),
    }
    place = asking.job.responses.with_name(SUMMARY)
    replace_text(place, json.dumps({"summary": summary}) + "\n")
