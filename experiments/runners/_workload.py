"""The requests of a job as an index, and how they are dealt out: shards of equal weight.

Holds where each line is and what it weighs, not the requests: a driver of ten million
of them keeps some hundred bytes each. A request weighs the seconds of audio it holds,
its words counted as the audio that would fill as many positions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from containers.runtime.batches import AUDIO_TOKENS_PER_S, Sized, plan_batches, sized
from containers.runtime.card import Card
from containers.runtime.clips import ClipError, seconds_of
from containers.runtime.prompts import clip_names
from core.protocol import Request, request_of, requests_in

Indices = NDArray[np.int64]

# Requests about one clip go to one place, where it is encoded once; up to so many.
MOST_KIN = 64
# A model is loaded anew for each shard, which fewer requests are not worth.
LEAST_REQUESTS = 4
# What a driver sends in one piece.
MOST_REQUESTS = 10_000


@dataclass
class Workload:
    """Requests still to be asked, numbered from 0 in the order of their file.

    Attributes:
        path: the request file.
        lines: (n, 2) first byte and length of each line.
        weight: (n,) seconds, > 0.
        audio_s: (n,) seconds of audio, 0 for none and for clips that cannot be read.
        kin: (n,) requests of equal numbers are about one clip.
        seconds: length of each clip by name; clips that cannot be read are not in it.
    """

    path: Path
    lines: NDArray[np.int64]
    weight: NDArray[np.float64]
    audio_s: NDArray[np.float64]
    kin: NDArray[np.int64]
    seconds: Mapping[str, float]

    def __len__(self) -> int:
        return len(self.weight)

    def read(self, indices: Indices) -> Iterator[tuple[int, bytes]]:
        """The line of each request, with its number, in the order of the file."""
        with self.path.open("rb") as stream:
            for index in np.sort(indices).tolist():
                start, length = self.lines[index].tolist()
                stream.seek(start)
                yield index, stream.read(length)

    def requests(self, indices: Indices) -> Iterator[tuple[int, Request]]:
        """The requests themselves, as `read`."""
        for index, line in self.read(indices):
            yield index, request_of(line, f"{self.path}, request {index}")


def read_workload(path: Path, audio: Path, is_settled: Callable[[str], bool]) -> Workload:
    """Index the requests of a file that are not settled yet.

    Args:
        audio: folder of their clips.
        is_settled: whether a request, by id, is not asked again.

    Raises:
        core.protocol.ProtocolError: naming file and line.
    """
    lines: list[tuple[int, int]] = []
    weight: list[float] = []
    audio_s: list[float] = []
    kin: list[int] = []
    seconds: dict[str, float] = {}
    unreadable: set[str] = set()
    families: dict[tuple[str, ...], int] = {}
    start = 0
    with path.open("rb") as stream:
        for request, length in requests_in(stream, path):
            if not is_settled(request.id):
                _measure(audio, clip_names(request), seconds, unreadable)
                size = _sized(request, seconds)
                lines.append((start, length))
                weight.append(max(size.tokens, 1) / AUDIO_TOKENS_PER_S)
                audio_s.append(size.audio_s)
                own = request.parts[request.prefix_parts :]
                about = tuple(part["audio"] for part in own if "audio" in part)
                kin.append(families.setdefault(about, len(families)) if about else -len(kin) - 1)
            start += length
    return Workload(
        path,
        np.array(lines, np.int64).reshape(-1, 2),
        np.array(weight, np.float64),
        np.array(audio_s, np.float64),
        np.array(kin, np.int64),
        seconds,
    )


def shard_count(work: Workload, slots: int) -> int:
    """How many shards to begin with: one for each place they can run in, and whole rounds of
    as many where that would be more than fits in one piece."""
    rounds = max(1, ceil(len(work) / (slots * MOST_REQUESTS)))
    return max(1, min(slots * rounds, ceil(len(work) / LEAST_REQUESTS)))


def deal(work: Workload, count: int) -> list[Indices]:
    """Deal all requests into so many shards of nearly equal weight, heaviest first.

    The heaviest family goes to the lightest shard, again and again (Graham's rule: the
    heaviest shard weighs at most 4/3 of what the best division would give). Equal requests
    are dealt equally, whatever machines there are.

    Returns:
        Ascending numbers of each shard's requests; none is empty.
    """
    families = _families(work)
    weights = np.array([work.weight[family].sum() for family in families])
    firsts = np.array([family[0] for family in families], np.int64)
    piles: list[list[Indices]] = [[] for _ in range(min(count, len(families)))]
    lightest = [(0.0, place) for place in range(len(piles))]
    for number in np.lexsort((firsts, -weights)):
        total, place = heapq.heappop(lightest)
        piles[place].append(families[number])
        heapq.heappush(lightest, (total + float(weights[number]), place))
    shards = [np.sort(np.concatenate(pile)) for pile in piles]
    return sorted(shards, key=lambda shard: -float(work.weight[shard].sum()))


def back_part(work: Workload, owed: Indices, weight: float, card: Card) -> Indices:
    """Of requests a shard owes, those it will come to last, as many as weigh so much.

    At least one and never all but where there is one alone: whoever has them goes on
    with the others meanwhile.
    """
    ordered = _as_asked(work, owed, card)
    last = np.cumsum(work.weight[ordered][::-1])
    taken = int(np.clip(np.searchsorted(last, weight), 1, max(len(ordered) - 1, 1)))
    return np.sort(ordered[-taken:])


def _as_asked(work: Workload, owed: Indices, card: Card) -> Indices:
    """The order in which a runtime answers these."""
    number: dict[str, int] = {}
    entries: list[Sized] = []
    for index, request in work.requests(owed):
        number[request.id] = index
        entries.append(_sized(request, work.seconds))
    planned = plan_batches(entries, card.budget, together=False)
    return np.array([number[entry.id] for (entry,) in planned], np.int64)


def _families(work: Workload) -> list[Indices]:
    order = np.argsort(work.kin, kind="stable")
    starts = np.flatnonzero(np.diff(work.kin[order], prepend=np.nan))
    families = np.split(order.astype(np.int64), starts[1:])
    return [f[at : at + MOST_KIN] for f in families for at in range(0, len(f), MOST_KIN)]


def _measure(
    audio: Path, names: Sequence[str], seconds: dict[str, float], unreadable: set[str]
) -> None:
    for name in names:
        if name not in seconds and name not in unreadable:
            try:
                seconds[name] = seconds_of(audio / name)
            except ClipError:
                # Whoever answers the request says why; here it only weighs nothing.
                unreadable.add(name)


def _sized(request: Request, seconds: Mapping[str, float]) -> Sized:
    return sized(request, {name: seconds.get(name, 0.0) for name in clip_names(request)})
