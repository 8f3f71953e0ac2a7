"""Resamples a few at a time are those drawn all at once."""

import numpy as np
import pytest

from core.stats import resampling
from core.stats.bootstrap import bootstrap, weight_bootstrap
from core.stats.resampling import (
    resampled,
    resamples_in_pieces,
    session_weights,
    sessions_in_pieces,
)


@pytest.mark.parametrize("held", [1, 40, 10_000])
def test_tables_drawn_in_pieces_are_those_drawn_at_once(monkeypatch, held):
    monkeypatch.setattr(resampling, "CELLS", held)
    tables = np.array([[[3, 0], [5, 2]], [[1, 1], [0, 8]], [[0, 0], [0, 0]]])

    pieces = list(resamples_in_pieces(tables, seed=7, resamples=300))

    assert [start for start, _, _ in pieces[1:]] == [stop for _, stop, _ in pieces[:-1]]
    together = np.concatenate([drawn for _, _, drawn in pieces], axis=1)
    assert np.array_equal(together, resampled(tables, seed=7, stop=300))


@pytest.mark.parametrize("held", [1, 90])
def test_sessions_drawn_in_pieces_are_those_drawn_at_once(monkeypatch, held):
    monkeypatch.setattr(resampling, "CELLS", held)

    pieces = [drawn for _, _, drawn in sessions_in_pieces(6, 30, seed=7, resamples=300)]

    assert np.array_equal(np.concatenate(pieces), session_weights(6, seed=7, stop=300))


def test_what_is_held_at_a_time_changes_no_interval(monkeypatch):
    table = np.array([[9, 1], [2, 8]])
    scores = np.random.default_rng(0).random(20)

    def intervals():
        counted = bootstrap(table, {"right": lambda t: t[..., 0, 0] / t.sum((-2, -1))})["right"]
        weighed = [
            weight_bootstrap(20, {"mean": lambda w: w @ scores / w.sum(-1)}, sessions=sessions)
            for sessions in (None, np.arange(20) // 4)
        ]
        ends = [counted, *(one["mean"] for one in weighed)]
        return [(float(end.value), float(end.low), float(end.high)) for end in ends]

    whole = intervals()
    monkeypatch.setattr(resampling, "CELLS", 30)

    # A sum of the same numbers in another order differs in its last digit.
    assert intervals() == [pytest.approx(ends, rel=1e-12) for ends in whole]
