"""What a set can show, against simulation."""

import numpy as np
import pytest

from core.stats.mcnemar import mcnemar
from core.stats.power import (
    detectable_accuracy_difference,
    detectable_error_difference,
    mcnemar_power,
)
from core.stats.wilcoxon import signed_rank_of_counts

OBSERVED = np.array([2, 4, 10, 23, 116, 23, 10, 4, 2])


def test_mcnemars_power_is_the_share_of_simulated_rejections():
    n, discordance, difference = 194, 0.3, 0.1
    drawn = np.random.default_rng(0).multinomial(n, [0.2, 0.1, 0.7], 20_000)
    simulated = np.mean(mcnemar(drawn[:, 0], drawn[:, 1], n).p <= 0.05)
    assert mcnemar_power(n, discordance, difference) == pytest.approx(simulated, abs=0.01)


def test_no_difference_is_found_no_oftener_than_the_level():
    assert mcnemar_power(194, 0.3, 0) <= 0.05


def test_the_detectable_accuracy_difference_has_the_asked_power():
    found = detectable_accuracy_difference(194, 0.3)
    assert mcnemar_power(194, 0.3, found.difference) == pytest.approx(0.8, abs=1e-3)
    assert found.difference > detectable_accuracy_difference(1802, 0.3).difference


def test_the_detectable_error_difference_is_found_with_the_asked_power():
    found = detectable_error_difference(OBSERVED)
    magnitude = OBSERVED[5:] + OBSERVED[:4][::-1]
    up = (1 + found.rank_biserial) / 2
    share = (
        np.concatenate([(magnitude * (1 - up))[::-1], OBSERVED[4:5], magnitude * up])
        / OBSERVED.sum()
    )
    drawn = np.random.default_rng(1).multinomial(OBSERVED.sum(), share, 5000)
    assert share @ np.arange(-4, 5) == pytest.approx(found.difference)
    assert np.mean(signed_rank_of_counts(drawn, resamples=0).p <= 0.05) == pytest.approx(
        0.8, abs=0.03
    )


def test_a_larger_set_finds_less():
    small = detectable_error_difference(OBSERVED, n=194)
    large = detectable_error_difference(OBSERVED, n=1802)
    assert large.difference == pytest.approx(small.difference * np.sqrt(194 / 1802), rel=0.1)


@pytest.mark.parametrize(
    "found",
    [
        detectable_accuracy_difference(20, 0.05),
        detectable_accuracy_difference(20, 0.0),
        detectable_error_difference(np.array([0, 0, 0, 1, 30, 0, 0, 0, 0])),
        detectable_error_difference(np.zeros(9)),
    ],
)
def test_too_few_differing_items_can_show_nothing_and_say_so(found):
    assert np.isnan(found.difference)
    assert found.reason
