"""More than one machine: shards of the requests on the nodes of a Ray cluster.

Each shard is carried by the process or docker runner of its node, with GPUs of its own, and
its answers come back to the one response file here as they are given. What a lost worker
or node had not answered goes to another; a node that has nothing left to do takes the last
part of what the slowest still has before it. The answers are those of the runner inside,
under the same ids: a run may be begun with one and finished with the other.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any, TextIO

from containers.runtime.answered import Answered
from containers.runtime.card import Card
from containers.runtime.progress import Progress
from containers.runtime.request_file import RequestFile
from core.replacing import replace_text
from experiments.answer_file import open_answers
from experiments.runners import HERE, SUMMARY, Job, RunnerError, Site, said_to
from experiments.runners._cluster import (
    Place,
    ask_of,
    connected,
    place,
    signals_as_sent,
    slots,
    too_small,
)
from experiments.runners._dispatch import PATIENCE_S, Dispatch, Spread
from experiments.runners._node import Order, facts
from experiments.runners._store import StoreError, push_clips
from experiments.runners._workload import Workload, read_workload
from experiments.settings import ROOT

_places: dict[tuple[str, Site], Place] = {}


def why_not(card: Card, site: Site = HERE) -> str | None:
    """What keeps the cluster from running this model, as a sentence; None if nothing."""
    try:
        _place(card, site)
    except RunnerError as error:
        return str(error)
    return None


def image(card: Card, site: Site = HERE) -> str:
    """That of the runner inside: where an answer was computed is no part of its key."""
    return _place(card, site).image


def run(job: Job) -> None:
    """Have the cluster answer every request that has no answer yet.

    Raises:
        RunnerError: for what would stop every shard; what was answered is kept.
    """
    answers = open_answers(job.responses)
    with signals_as_sent(), closing(answers), said_to(job) as log:
        work = read_workload(job.requests, job.audio, Answered(job.responses).is_final)
        if not len(work):
            return
        spread = _spread(job, work, log)
        progress = Progress(len(work), float(work.audio_s.sum()), log)
        dispatch = Dispatch(job, work, answers, spread, progress, log)
        try:
            dispatch.carry_out()
        finally:
            progress.finish()
            dispatch.stop()
            _summarise(dispatch)


def _place(card: Card, site: Site) -> Place:
    # A plan asks why_not, image and run one after the other, and means one look at the nodes.
    key = (card.digest, site)
    if key not in _places:
        with signals_as_sent():
            _places[key] = place(card, site)
    return _places[key]


def _spread(job: Job, work: Workload, log: TextIO) -> Spread:
    if job.device_map.startswith("cuda:"):
        raise RunnerError(
            f"device_map={job.device_map}: Ray gives each shard GPUs of its own; say cuda or auto."
        )
    ray, found = connected(job.site), _place(job.card, job.site)
    ask = ask_of(job.card, job.precision, job.device_map, job.gpus, list(found.nodes.values()))
    refused = {**found.refused, **too_small(ask, job.card, job.precision, found.nodes)}
    room = slots(ray, ask, refused)
    for node, reason in refused.items():
        print(f"Ray node {node[:8]} is left out: {reason}", file=log)
    rest = "" if room else f"; waiting up to {PATIENCE_S / 60:.0f} minutes for a node with that"
    print(
        f"Ray: {job.card.name} by the {found.inner} runner, {ask} a shard, room for {room}{rest}.",
        file=log,
        flush=True,
    )
    if job.site.store and work.seconds:
        try:
            put = push_clips(job.site.store, job.audio, sorted(work.seconds))
        except StoreError as error:
            raise RunnerError(str(error)) from error
        print(f"{put} of {len(work.seconds)} clips put into {job.site.store}", file=log, flush=True)
    return Spread(ray, _order(job, found), ask, room, refused)


def _order(job: Job, found: Place) -> Order:
    return Order(
        model=job.card.name,
        card=str(job.card_path.resolve().relative_to(ROOT)),
        card_digest=job.card.digest,
        code=facts(job.card.name, runners=()).code,
        inner=found.inner,
        image=found.image,
        weights=str(job.weights.resolve()),
        audio=str(job.audio.resolve()),
        clips=(),
        precision=job.precision,
        device_map=job.device_map,
        offline=job.offline,
        store=job.site.store,
    )


def _summarise(dispatch: Dispatch) -> None:
    """What was done, where, and what the runtimes say of it, beside the answers."""
    job, progress = dispatch.job, dispatch.progress
    with closing(RequestFile(job.requests)) as requests:
        counts = dispatch.answers.counts(requests)
    elapsed = max(progress.elapsed_s, 1e-9)
    told = dispatch.summaries
    summary: dict[str, Any] = {
        "model": job.card.name,
        "requests": sum(counts.values()),
        "counts": counts,
        "answered": progress.answered,
        "seconds": round(elapsed, 3),
        "items_per_s": round(progress.answered / elapsed, 2),
        "audio_s_per_s": round(progress.audio_s / elapsed, 2),
        "first_answer_s": round(dispatch.first_answer_s, 3),
        "load_s": max((one.get("load_s", 0.0) for one in told), default=0.0),
        "hosts": dict(dispatch.hosts),
        "shards": dict(dispatch.events),
        "hearing": next((one["hearing"] for one in told if one.get("hearing")), None),
        "work": _added([one["work"] for one in told if one.get("work")]),
        **_footprint(told),
        "ended": "done" if not dispatch.ledger.left else "stopped",
    }
    replace_text(job.responses.with_name(SUMMARY), json.dumps({"summary": summary}) + "\n")


def _footprint(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the shard that took most; GPUs of one shard, as hours are added over shards."""
    taken = [one for one in told if "peak_memory_bytes" in one]
    largest = max(taken, key=lambda one: one["peak_memory_bytes"], default={})
    return {name: largest[name] for name in ("peak_memory_bytes", "gpus") if name in largest}


def _added(works: list[dict[str, Any]]) -> dict[str, Any]:
    """The work of all shards together: counts, some of them by kind."""
    total: dict[str, Any] = {}
    for work in works:
        for name, count in work.items():
            before = total.get(name)
            if isinstance(count, dict):
                total[name] = _added([before or {}, count])
            else:
                total[name] = count + (before or 0)
    return total
