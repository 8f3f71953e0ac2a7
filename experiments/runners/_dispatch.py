"""A job under way on a cluster: shards sent out, their answers taken in, none left behind.

Holds what must stay true whatever workers and nodes do: every request is owed by exactly one
shard, is answered once in the response file, and is asked again elsewhere when whoever
owed it is gone. Where shards run and what they run in is decided before (`_cluster`).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, TextIO

from containers.runtime.answers import AnswerFile
from containers.runtime.loop import FAILURES
from containers.runtime.progress import Progress
from containers.runtime.prompts import clip_names
from core.protocol import Response, request_of, response_of
from experiments.runners import Job, RunnerError
from experiments.runners._cluster import Ask, slots
from experiments.runners._ends import GOES_ON
from experiments.runners._ledger import Ledger, Shard
from experiments.runners._node import STOP_S, Keeper, Order, Report
from experiments.runners._workload import Indices, Workload, back_part, deal, shard_count

LOG = "model.log"
# A keeper waits so long for an answer before it says that there is none.
TAKE_S = 1.0
# Of one shard in a row without an answer in between.
MOST_FAILURES = 3
# Of all shards without an answer from any: then it is not the nodes.
MOST_BARREN = 4
# For a node with room, which an autoscaler may have to start first.
PATIENCE_S = 900.0
# A shard is split when what it has left takes so many times as long as to start another.
WORTH_SPLITTING = 2.0
LEAST_START_S = 0.5
# From the last answer of a shard to its process's end.
ENDING_S = 30.0


@dataclass(frozen=True)
class Spread:
    """How a job goes to the cluster.

    Attributes:
        ray: the package, connected.
        order: what each shard is told, its clips still to be named.
        ask: what each shard is given.
        slots: how many fit at once.
        refused: nodes that do not take the model, with the reason, by id.
    """

    ray: Any
    order: Order
    ask: Ask
    slots: int
    refused: Mapping[str, str]


@dataclass
class Working:
    """A shard that a keeper holds.

    Attributes:
        number: ids of its requests -> their numbers in the workload.
        report: the keeper's next, not here yet.
        started: when it first reported; None while it waits for a node.
        first, last: when answers of it came.
        told: how many of its requests it has answered, and `weight` what they weigh.
        split: when a part of it was last given away.
    """

    shard: Shard
    keeper: Any
    number: dict[str, int]
    report: Any
    node: str = ""
    started: float | None = None
    first: float | None = None
    last: float = 0.0
    told: int = 0
    weight: float = 0.0
    split: float | None = None

    @property
    def is_ending(self) -> bool:
        """Whether it has answered all it was given, and its last report is on its way."""
        return self.told == len(self.number) and time.monotonic() - self.last < ENDING_S


@dataclass
class Dispatch:
    """A job's requests, and everything that is known of them and of who answers them.

    Attributes:
        hosts: new answers by the machine they came from.
        events: how often a shard was lost, failed, retried or split.
        summaries: what runtimes say of their work, of shards that came to their end.
        starts: seconds from a shard's start to its first answer.
        first_answer_s: from the beginning.
        barren: failures since the last answer.
    """

    job: Job
    work: Workload
    answers: AnswerFile
    spread: Spread
    progress: Progress
    log: TextIO
    ledger: Ledger = field(init=False)
    waiting: deque[Shard] = field(init=False)
    refused: dict[str, str] = field(init=False)
    working: list[Working] = field(default_factory=list)
    hosts: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    first_answer_s: float = 0.0
    barren: int = 0
    _stopping: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = Ledger(len(self.work))
        self.refused = dict(self.spread.refused)
        dealt = deal(self.work, shard_count(self.work, max(1, self.spread.slots)))
        self.waiting = deque(self.ledger.give(piece) for piece in dealt)

    def carry_out(self) -> None:
        """Until every request has an answer.

        Raises:
            RunnerError: no shard gets on; what was answered is kept.
        """
        idle_since = time.monotonic()
        while self.ledger.left or any(one.is_ending for one in self.working):
            self._send()
            reports = self._reports()
            self._write(reports)
            for one, report in reports:
                self._follow(one, report)
            self._stop_the_superfluous()
            self._split_the_slowest()
            if any(one.started is not None for one in self.working):
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > PATIENCE_S:
                raise RunnerError(
                    f"No node of the Ray cluster had room for a shard ({self.spread.ask}) within "
                    f"{PATIENCE_S / 60:.0f} minutes. {GOES_ON}"
                )

    def stop(self) -> None:
        """End what still runs, whatever became of the job."""
        self._stop(self.working)
        self.working = []
        refs = list(self._stopping)
        if refs:
            self.spread.ray.wait(refs, num_returns=len(refs), timeout=STOP_S)
        self._reap(everyone=True)

    def _send(self) -> None:
        # More than there is room for: Ray has the next at hand, and an autoscaler sees them.
        most = max(2, 2 * self.spread.slots)
        while self.waiting and len(self.working) < most:
            shard = self.waiting.popleft()
            # What it owed may have been answered by the one that lagged behind.
            if shard.owed:
                self.working.append(self._sent(shard))

    def _sent(self, shard: Shard) -> Working:
        number: dict[str, int] = {}
        clips: dict[str, None] = {}
        lines = []
        for index, line in self.work.read(self.ledger.owed(shard)):
            request = request_of(line, f"{self.job.requests}, request {index}")
            number[request.id] = index
            clips |= dict.fromkeys(n for n in clip_names(request) if n in self.work.seconds)
            lines.append(line)
        avoid = sorted({**self.refused, **shard.avoid})
        keeper = (
            self.spread.ray.remote(Keeper)
            .options(max_restarts=0, **self.spread.ask.options(avoid))
            .remote(replace(self.spread.order, clips=tuple(clips)), b"".join(lines))
        )
        return Working(shard, keeper, number, keeper.take.remote(0.0))

    def _reports(self) -> list[tuple[Working, Report | Exception]]:
        """What has come in; waits for the first of it."""
        ray = self.spread.ray
        refs = [one.report for one in self.working]
        ray.wait(refs, num_returns=1, timeout=TAKE_S)
        # The first wait ends with one, and there may be more by now.
        ready = set(ray.wait(refs, num_returns=len(refs), timeout=0)[0])
        come: list[tuple[Working, Report | Exception]] = []
        for one in self.working:
            if one.report in ready:
                try:
                    come.append((one, ray.get(one.report)))
                # Lost with its worker or node, or an error of ours there: one road.
                except Exception as error:
                    come.append((one, error))
        return come

    def _write(self, reports: list[tuple[Working, Report | Exception]]) -> None:
        """All new answers of a round, with one fsync."""
        new: list[Response] = []
        seconds, now = 0.0, time.monotonic()
        for one, report in reports:
            if isinstance(report, Exception):
                continue
            if one.started is None:
                one.started, one.node = now, report.node
            if report.lines and one.first is None:
                one.first = now
                self.starts.append(now - one.started)
            for line in report.lines:
                response = response_of(line, f"{report.host}, shard {one.shard.number}")
                index = one.number[response.id]
                one.last, one.told = now, one.told + 1
                one.weight += float(self.work.weight[index])
                if self.ledger.answer(index):
                    new.append(response)
                    seconds += float(self.work.audio_s[index])
                    self.hosts[report.host] += 1
        if new:
            self.answers.append(new)
            self.barren = 0
            self.first_answer_s = self.first_answer_s or self.progress.elapsed_s
            found: Counter[str] = Counter(response.status for response in new)
            self.progress.add(len(new), seconds, sum(found[status] for status in FAILURES))

    def _follow(self, one: Working, report: Report | Exception) -> None:
        """Ask on, or see to what an ended shard has left."""
        if isinstance(report, Exception):
            self._lost(one, report)
        elif not report.ended:
            one.report = one.keeper.take.remote(TAKE_S)
        else:
            self._retire(one)
            if report.summary:
                self.summaries.append(report.summary)
            if report.failure:
                self._failed(one, report)
            elif one.shard.owed:
                why = f"it ended without an answer to {one.shard.owed} requests."
                self._failed(one, replace(report, failure=why))

    def _lost(self, one: Working, error: Exception) -> None:
        self._retire(one)
        self.events["lost"] += 1
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        self._say(f"Shard {one.shard.number} was lost, {one.shard.owed} requests with it ({why})")
        self._again(one, why, "a lost worker")

    def _failed(self, one: Working, report: Report) -> None:
        if report.log:
            self._keep_log(report)
        if report.unfit:
            # Nothing was tried: no failure of the shard's, and no place for any other.
            self.refused[report.node] = report.failure
            self._say(f"Ray node {report.host} is left out: {report.failure}")
            if not self._has_room({}):
                raise RunnerError(self._sentence(one, report.host, report.failure))
            self.waiting.appendleft(self.ledger.give(self.ledger.owed(one.shard)))
            return
        self.events["failed"] += 1
        self.barren += 1
        if self.barren >= MOST_BARREN:
            raise RunnerError(self._sentence(one, report.host, report.failure))
        self._again(one, report.failure, report.host)

    def _again(self, one: Working, why: str, host: str) -> None:
        """Give what a shard still owes to another, and elsewhere if there is an elsewhere."""
        owed = self.ledger.owed(one.shard)
        if not len(owed):
            return
        failures = 0 if one.told else one.shard.failures + 1
        if failures >= MOST_FAILURES:
            raise RunnerError(self._sentence(one, host, why))
        avoid = {**one.shard.avoid, one.node: why} if one.node else dict(one.shard.avoid)
        if not self._has_room(avoid):
            avoid = {}
        self.events["retried"] += 1
        self.waiting.appendleft(self.ledger.give(owed, failures, avoid))

    def _has_room(self, avoid: Mapping[str, str]) -> bool:
        return slots(self.spread.ray, self.spread.ask, {**self.refused, **avoid}) > 0

    def _stop_the_superfluous(self) -> None:
        """End shards all of whose requests others have answered before them."""
        superfluous = [one for one in self.working if not one.shard.owed and not one.is_ending]
        self._stop(superfluous)
        self.working = [one for one in self.working if one not in superfluous]
        self._reap()

    def _split_the_slowest(self) -> None:
        """Let a node that has nothing to do take the last part of what the slowest has left."""
        if self.waiting or not self.starts or any(one.started is None for one in self.working):
            return
        left = [(self._seconds_left(one), one) for one in self.working if one.shard.owed]
        if not left:
            return
        seconds, one = max(left, key=lambda pair: pair[0])
        start_s = max(median(self.starts), LEAST_START_S)
        if seconds < WORTH_SPLITTING * start_s or not self._is_idle():
            return
        part = self._part_of(one, seconds, start_s)
        if not len(part):
            return
        one.split = time.monotonic()
        self.events["split"] += 1
        self.waiting.append(self.ledger.give(part, avoid=one.shard.avoid))

    def _part_of(self, one: Working, seconds: float, start_s: float) -> Indices:
        owed = self.ledger.owed(one.shard)
        if one.split is not None and one.last < one.split:
            # It has got nowhere since: give it time to, and then count on it no more.
            waited = time.monotonic() - one.split
            return owed if waited > WORTH_SPLITTING * start_s else owed[:0]
        if not one.told:
            return owed
        share = (seconds - start_s) / (2 * seconds)
        weight = share * float(self.work.weight[owed].sum())
        return back_part(self.work, owed, weight, self.job.card)

    def _seconds_left(self, one: Working) -> float:
        """Until a shard is done, as far as its pace tells; infinite where it has none."""
        assert one.started is not None
        spent = max(time.monotonic() - one.started, 1e-3)
        if not one.told:
            # One that takes much longer to begin than others did may never.
            usual = WORTH_SPLITTING * max(*self.starts, LEAST_START_S)
            return float("inf") if spent > 2 * usual else 0.0
        left = float(self.work.weight[self.ledger.owed(one.shard)].sum())
        return left * spent / one.weight

    def _is_idle(self) -> bool:
        return self.spread.ask.fits(self.spread.ray.available_resources()) > 0

    def _retire(self, one: Working) -> None:
        self.working.remove(one)
        self.spread.ray.kill(one.keeper)

    def _stop(self, some: list[Working]) -> None:
        for one in some:
            if one.started is None:
                self.spread.ray.kill(one.keeper)
            else:
                self._stopping[one.keeper.stop.remote()] = one.keeper

    def _reap(self, *, everyone: bool = False) -> None:
        """Give back the places of keepers that have stopped."""
        if not self._stopping:
            return
        refs = list(self._stopping)
        if not everyone:
            refs, _ = self.spread.ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in refs:
            self.spread.ray.kill(self._stopping.pop(ref))

    def _keep_log(self, report: Report) -> None:
        self._say(report.log.rstrip())
        if self.job.log is None:
            # Else it is in the job's own log already, which is where all this is said.
            with self.job.responses.with_name(LOG).open("a", encoding="utf-8") as stream:
                stream.write(f"{report.host}:\n{report.log}")

    def _sentence(self, one: Working, host: str, why: str) -> str:
        said = f"{self.job.card.name} on {host} (shard {one.shard.number}): {why}"
        return said if GOES_ON in said else f"{said} {GOES_ON}"

    def _say(self, words: str) -> None:
        print(words, file=self.log, flush=True)
