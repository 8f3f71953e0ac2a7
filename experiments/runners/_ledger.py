"""Who owes which request: every one is owed by exactly one shard until it is answered.

A shard that ends with some unanswered gives them to another; one that lags gives its
last ones away and may still answer them first: the first answer counts, later ones do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from experiments.runners._workload import Indices

NOBODY = -1


@dataclass
class Shard:
    """Requests that are asked together.

    Attributes:
        number: from 0; never used twice in a run.
        given: what it was made of.
        owed: how many of them it still owes.
        failures: how often these ended without a single answer, in a row.
        avoid: nodes not to be asked again: id -> why.
    """

    number: int
    given: Indices
    owed: int
    failures: int = 0
    avoid: Mapping[str, str] = field(default_factory=dict)


class Ledger:
    """Owners and answers of `count` requests."""

    def __init__(self, count: int) -> None:
        self.left = count
        self._owner: NDArray[np.int32] = np.full(count, NOBODY, np.int32)
        self._answered: NDArray[np.bool_] = np.zeros(count, np.bool_)
        self._shards: list[Shard] = []

    def give(
        self, requests: Indices, failures: int = 0, avoid: Mapping[str, str] | None = None
    ) -> Shard:
        """Make a shard that owes these from now on, whoever did before."""
        shard = Shard(len(self._shards), requests, len(requests), failures, avoid or {})
        before, counts = np.unique(self._owner[requests], return_counts=True)
        for number, count in zip(before, counts, strict=True):
            if number != NOBODY:
                self._shards[number].owed -= int(count)
        self._owner[requests] = shard.number
        self._shards.append(shard)
        return shard

    def owed(self, shard: Shard) -> Indices:
        """What a shard still owes, ascending."""
        mine = self._owner[shard.given] == shard.number
        owed: Indices = shard.given[mine & ~self._answered[shard.given]]
        return owed

    def answer(self, index: int) -> bool:
        """Note an answer; False where there was one before, which counts."""
        if self._answered[index]:
            return False
        self._answered[index] = True
        self.left -= 1
        self._shards[self._owner[index]].owed -= 1
        return True
