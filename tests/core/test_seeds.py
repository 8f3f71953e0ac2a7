"""A seed and its points depend on what a draw is for, and on nothing else."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from core.seeds import generator, points, seed_of


def test_each_purpose_has_a_seed_of_its_own():
    seeds = {seed_of(run, item, "vote") for run in range(20) for item in "abc"}

    assert len(seeds) == 60
    # "ab" + "c" is not "a" + "bc".
    assert seed_of(1, "ab", "c") != seed_of(1, "a", "bc")
    assert generator(1, "a").random() == generator(1, "a").random() != generator(1, "b").random()


@pytest.mark.parametrize(
    ("seed", "first"), [(0, 0.4943096653669), (7, 0.0670480904715), (2**62, 0.0534829337526)]
)
def test_points_are_those_of_shake_256(seed, first):
    """The first eight bytes of `printf SEED | openssl dgst -shake256 -xoflen 8`, over 2^64."""
    assert points(seed, 1) == pytest.approx([first], abs=1e-12)
    assert points(seed, 3)[:1] == points(seed, 1)


def test_points_are_even_and_independent_from_seed_to_seed():
    """Seeds side by side, as nobody should choose them, draw as well as any."""
    drawn = [points(seed, 3) for seed in range(3000)]

    for place in range(3):
        column = [row[place] for row in drawn]
        assert 0 < min(column) < max(column) < 1
        assert stats.kstest(column, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(list(pairwise(column)), rowvar=False)[0, 1]) < 0.05
    assert np.abs(np.corrcoef(drawn, rowvar=False) - np.eye(3)).max() < 0.05
