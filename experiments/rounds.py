"""From items to answers: plan, ask, and plan what the answers call for, until nothing is left.

A task may ask more where an answer makes it necessary (a tactic, once manipulation was
found). Each round goes through the same runner and the same response file, so that a run
ended in any round goes on there; requests.jsonl holds all rounds when the last one is over.

Items are planned and read a chunk at a time. Requests and answers are on the disk, and what
is held of them does not grow with their length: where each answer is, and nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

from containers.runtime.answered import Answered
from containers.runtime.answers import AnswerFile
from core.protocol import ProtocolError, Request, Response, write_requests
from core.replacing import replacing
from experiments.answer_file import open_answers
from experiments.answer_stamps import assert_made_by
from experiments.clips import Clips, clips_of
from experiments.planned_file import PlannedFile
from experiments.runners import RunnerError
from experiments.ways import Way, first_round, follow_ups, undecodable, ways_of

if TYPE_CHECKING:
    import pandas as pd

    from core.tasks import PlannedRequest
    from experiments.evaluation import Plan

# Items whose requests and answers are held at a time: some ten megabytes with exemplars.
CHUNK = 512

T = TypeVar("T")


@dataclass(frozen=True)
class Chunk:
    """Some items, all that was asked about them in each way, and what came back by request id.

    Clips that cannot be decoded have their response too.
    """

    items: pd.DataFrame
    ways: Sequence[Way]
    planned: list[PlannedRequest]
    responses: dict[str, Response]


@dataclass
class Asked(Generic[T]):
    """All requests of a run and what was read from their answers.

    Attributes:
        found: what was read from each chunk, by its number.
        ways: the conditions, then each variant.
        requests: how many were planned, those never sent among them.
        reused: requests that had an answer before.
        unsettled: requests that failed, and that a later run tries again.
        rounds: how often the model was given requests or would have been.
    """

    plan: Plan
    items: pd.DataFrame
    clips: Clips
    ways: Sequence[Way]
    planned: PlannedFile
    answers: Answered
    read: Callable[[Chunk], T]
    found: dict[int, T] = field(default_factory=dict)
    requests: int = 0
    reused: int = 0
    unsettled: int = 0
    rounds: int = 0

    def taken(self) -> list[T]:
        """What was read, in the order of the items; it is not held here any longer."""
        return [self.found.pop(number) for number in self.numbers()]

    def numbers(self) -> range:
        """Of the chunks."""
        return range(-(-len(self.items) // CHUNK))

    def chunk(self, number: int) -> Chunk:
        planned = self.planned.of(number)
        unplayable = undecodable(planned, self.ways)
        answers = self.answers.of(e.request.id for e in planned if e.request.id not in unplayable)
        stamps = {"card": self.plan.card.digest, "image": self.plan.image}
        assert_made_by(answers.values(), stamps, self.answers.path)
        return Chunk(self.items_of(number), self.ways, planned, answers | unplayable)

    def items_of(self, number: int) -> pd.DataFrame:
        return self.items.iloc[number * CHUNK : (number + 1) * CHUNK]


def ask(
    plan: Plan, items: pd.DataFrame, run: Callable[[], None], read: Callable[[Chunk], T]
) -> Asked[T]:
    """Plan and ask, round after round, and read what came back.

    Args:
        items: those evaluated.
        run: has the model answer what the request file holds and the response file does not.
        read: called once for each chunk, when its answers call for nothing more.

    Raises:
        TaskError: an exemplar whose clip cannot be played, clips of a variant that cannot be made.
        RunnerError: from `run`.
    """
    clips = clips_of(plan, items)
    ways = ways_of(plan, items, clips)
    # Without a name: they end with the process, and nobody else can write into them.
    with (
        tempfile.TemporaryFile(dir=plan.folder.results) as planned,
        tempfile.TemporaryFile(dir=plan.folder.results) as sent,
    ):
        answers = Answered(plan.folder.responses)
        asked = Asked(plan, items, clips, ways, PlannedFile(planned), answers, read)
        chunks: Sequence[int] = asked.numbers()
        while chunks:
            chunks = _round(asked, chunks, run, sent)
        if asked.rounds > 1:
            sent.seek(0)
            with replacing(plan.folder.requests) as whole:
                shutil.copyfileobj(sent, whole)
    return asked


def _round(
    asked: Asked[T], chunks: Sequence[int], run: Callable[[], None], sent: BinaryIO
) -> list[int]:
    """One round over these chunks; gives those about which something was asked.

    Args:
        sent: takes the requests of all rounds.
    """
    plan = asked.plan
    with ExitStack() as stack:
        planning = _Planning(asked, chunks, stack)
        requests = planning.requests()
        first = next(requests, None)
        if first is not None or not asked.rounds:
            beginning = () if first is None else (first,)
            write_requests(plan.folder.requests, chain(beginning, requests))
    if not planning.about:
        return []
    if first is not None:
        with plan.folder.requests.open("rb") as stream:
            shutil.copyfileobj(stream, sent)
    asked.rounds += 1
    asked.requests += planning.planned
    asked.reused += planning.known
    if planning.known < planning.askable:
        run()
    asked.answers.look()
    _assert_answered(asked, planning)
    return planning.about


@dataclass
class _Planning:
    """A round being planned.

    Attributes:
        about: chunks for which there was something to ask.
        planned: requests, of which `askable` have their clips; `known` of them are answered.
    """

    asked: Asked[Any]
    chunks: Sequence[int]
    open_files: ExitStack
    about: list[int] = field(default_factory=list)
    planned: int = 0
    askable: int = 0
    known: int = 0
    _others: list[Answered] | None = None
    _taken: AnswerFile | None = None

    def requests(self) -> Iterator[Request]:
        """Those to be sent, while their chunk is kept and their answers are looked for."""
        for number in self.chunks:
            more = self._more(number)
            if not more:
                continue
            self.about.append(number)
            self.planned += len(more)
            self.asked.planned.add(number, more)
            unplayable = undecodable(more, self.asked.ways)
            # This round's alone: a failure of an earlier one is not tried again on its way.
            # Two ways may come to one question, as two rises in level that full scale stops.
            asked = {entry.request.id: entry.request for entry in more}
            askable = [request for name, request in asked.items() if name not in unplayable]
            self.askable += len(askable)
            missing = {r.id for r in askable if not self.asked.answers.is_final(r.id)}
            self.known += len(askable) - len(missing) + self._carry_over(missing)
            yield from askable

    def _more(self, number: int) -> list[PlannedRequest]:
        asked = self.asked
        if not asked.rounds:
            return first_round(asked.plan, asked.items_of(number), asked.ways)
        chunk = asked.chunk(number)
        more = follow_ups(asked.plan, chunk.items, asked.ways, chunk.planned, chunk.responses)
        if not more:
            # Answers that call for nothing more never will: they do not change.
            asked.found[number] = asked.read(chunk)
        return more

    def _carry_over(self, missing: set[str]) -> int:
        """Take the answers to these very requests from this model's folders of the same dataset.

        A corrected label or a row more makes another dataset, in a folder of its own. Where item,
        words, audio, model and seed are the same the request is the same, and so is its answer.

        Raises:
            RunnerError: another process is writing this folder's answers.
        """
        if not missing:
            return 0
        found: dict[str, Response] = {}
        for other in self._of_other_versions():
            with suppress(ProtocolError):
                found |= other.of(filter(other.is_final, missing))
        if found:
            if self._taken is None:
                answers = open_answers(self.asked.plan.folder.responses)
                self._taken = self.open_files.enter_context(closing(answers))
            self._taken.append(list(found.values()))
        return len(found)

    def _of_other_versions(self) -> list[Answered]:
        if self._others is None:
            self._others = []
            for path in self.asked.plan.folder.answers_of_other_versions():
                # An unreadable file of another folder is no reason not to ask.
                with suppress(ProtocolError):
                    self._others.append(Answered(path))
        return self._others


def _assert_answered(asked: Asked[T], planning: _Planning) -> None:
    """Raise RunnerError where a model ended as if all were well and left requests out.

    A request that failed has its status and its reason; one without either was never tried,
    and figures from what is left would be a part that passes for the whole.
    """
    answered = settled = 0
    for number in planning.about:
        for name in set(asked.planned.newest_ids(number)):
            answered += name in asked.answers
            settled += asked.answers.is_final(name)
    asked.unsettled += answered - settled
    if left := planning.askable - answered:
        raise RunnerError(
            f"{asked.plan.card.name} ended without an answer or a reason for {left} of "
            f"{planning.askable} requests: something in its adapter ended the process. What it "
            "had answered is kept: the same command goes on where it stopped."
        )
