import numpy as np
import pytest
from scipy.stats import bootstrap, rankdata

from core.stats.ranks import rank_intervals

DRAWING = np.random.default_rng(5)


def test_ranks_and_their_intervals_are_those_of_scipy():
    losses = DRAWING.integers(0, 4, (3, 40)) + np.array([[0], [0.1], [0.6]])

    found = rank_intervals(losses, resamples=4000, seed=1)

    means = losses.mean(1)
    assert found.rank.tolist() == rankdata(means).tolist()
    other = bootstrap(
        tuple(losses),
        lambda a, b, c, axis: rankdata([a.mean(axis), b.mean(axis), c.mean(axis)], axis=0),
        paired=True,
        method="percentile",
        n_resamples=4000,
        rng=2,
    ).confidence_interval
    assert found.low == pytest.approx(other.low)
    assert found.high == pytest.approx(other.high)


def test_the_shares_of_first_places_add_up_and_a_tie_is_shared():
    same = DRAWING.integers(0, 4, 30)

    found = rank_intervals([same, same, same + 1])

    assert found.rank.tolist() == [1.5, 1.5, 3]
    assert found.best.tolist() == pytest.approx([0.5, 0.5, 0])


def test_a_model_without_answers_has_no_rank_and_takes_none():
    found = rank_intervals([[0, 1, 1], [np.nan] * 3, [2, 2, 1]], resamples=50)

    assert found.rank[[0, 2]].tolist() == [1, 2]
    assert np.isnan([found.rank[1], found.low[1], found.high[1]]).all()
    assert found.best[1] == 0
