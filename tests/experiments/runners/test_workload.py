"""Requests as an index, dealt out by weight."""

import numpy as np
import pytest

from containers.runtime.card import read_card
from core.audio import write_clip
from core.protocol import Request, write_requests
from experiments.runners._ledger import Ledger
from experiments.runners._workload import back_part, deal, read_workload, shard_count
from experiments.settings import ROOT

CARD = read_card(ROOT / "containers" / "null" / "model.toml")


def work_of(folder, lengths_s, votes=1, settled=()):
    """A request about a clip of each length, as often as there are votes."""
    requests = []
    for number, seconds in enumerate(lengths_s):
        samples = np.full(int(16_000 * seconds), number / 1000, np.float32)
        parts = ({"audio": write_clip(folder, samples).name},)
        requests += [
            Request(f"{number}.{vote}", None, parts, None, seed=vote) for vote in range(votes)
        ]
    write_requests(folder / "requests.jsonl", requests)
    return read_workload(folder / "requests.jsonl", folder, set(settled).__contains__)


def test_shards_weigh_nearly_the_same_whatever_the_clips(tmp_path):
    lengths_s = np.random.default_rng(1).lognormal(0, 1, 200).clip(0.2, 20)
    work = work_of(tmp_path, lengths_s)

    shards = deal(work, 7)

    assert sorted(np.concatenate(shards)) == list(range(200))
    weights = [work.weight[shard].sum() for shard in shards]
    assert max(weights) / min(weights) < 1.02
    assert all((a == b).all() for a, b in zip(shards, deal(work, 7), strict=True))


def test_votes_about_one_clip_stay_together(tmp_path):
    work = work_of(tmp_path, [3, 2, 1, 1, 2, 3], votes=5)

    for shard in deal(work, 3):
        assert len({index // 5 for index in shard.tolist()}) == len(shard) / 5


def test_words_alone_are_dealt_out_one_by_one(tmp_path):
    requests = [Request(f"r{n}", None, ({"text": "How?" * 40},), None) for n in range(20)]
    write_requests(tmp_path / "requests.jsonl", requests)
    work = read_workload(tmp_path / "requests.jsonl", tmp_path, set().__contains__)

    assert [len(shard) for shard in deal(work, 4)] == [5, 5, 5, 5]


def test_what_is_settled_is_left_out_and_lines_are_found_again(tmp_path):
    work = work_of(tmp_path, [1, 2, 3], settled=["1.0"])

    assert [request.id for _, request in work.requests(np.array([1, 0]))] == ["0.0", "2.0"]


def test_a_clip_that_cannot_be_read_weighs_nothing_and_is_asked_about(tmp_path):
    work_of(tmp_path, [1, 2])
    next(path for path in tmp_path.glob("*.wav") if path.stat().st_size > 70_000).unlink()

    work = read_workload(tmp_path / "requests.jsonl", tmp_path, set().__contains__)

    assert (len(work), list(work.audio_s)) == (2, [1, 0])


@pytest.mark.parametrize(
    ("requests", "slots", "shards"),
    [(3, 8, 1), (40, 8, 8), (16, 8, 4), (25_000, 2, 4), (100_000, 8, 16)],
)
def test_a_shard_for_each_place_unless_too_few_or_too_many(requests, slots, shards):
    class Sized:
        def __len__(self):
            return requests

    assert shard_count(Sized(), slots) == shards


def test_the_last_part_is_what_a_runtime_comes_to_last(tmp_path):
    # The longest clips are asked about first.
    work = work_of(tmp_path, [1, 5, 2, 4, 3])

    part = back_part(work, np.arange(5), weight=1.01 * work.weight[[0, 2]].sum(), card=CARD)

    assert list(part) == [0, 2]


def test_some_is_always_left_with_whoever_is_at_it(tmp_path):
    work = work_of(tmp_path, [1, 2, 3])

    assert len(back_part(work, np.arange(3), weight=1e9, card=CARD)) == 2
    assert len(back_part(work, np.array([1]), weight=1e9, card=CARD)) == 1


def test_every_request_is_owed_by_one_shard_until_its_first_answer():
    ledger = Ledger(6)
    first = ledger.give(np.arange(4))
    second = ledger.give(np.array([4, 5]))
    taken = ledger.give(np.array([2, 3]))

    assert [first.owed, second.owed, taken.owed] == [2, 2, 2]
    # The one it was taken from comes to it first after all.
    assert ledger.answer(3)
    assert not ledger.answer(3)
    assert list(ledger.owed(taken)) == [2]
    assert list(ledger.owed(first)) == [0, 1]
    assert ledger.left == 5
