"""McNemar's exact test against statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference

from core.metrics.binary import joint_counts
from core.stats.mcnemar import mcnemar, mcnemar_of_joint

pairs = st.tuples(st.integers(0, 60), st.integers(0, 60))


@given(pairs)
def test_the_exact_p_is_that_of_statsmodels(discordant):
    first_only, second_only = discordant
    expected = reference([[40, first_only], [second_only, 10]], exact=True).pvalue
    found = mcnemar(first_only, second_only, 50 + first_only + second_only)
    assert found.p == pytest.approx(expected, abs=1e-12)
    assert found.mid_p <= found.p


def test_a_joint_table_gives_the_clips_only_one_got_right():
    gold = ["YES", "YES", "NO", "NO", "NO"]
    first = ["YES", "YES", "NO", "YES", None]
    second = ["NO", "YES", "NO", "NO", "NO"]
    joint = joint_counts(gold, first, second)
    answered, everything = mcnemar_of_joint(joint), mcnemar_of_joint(joint, over="all")
    assert (answered.n, answered.first_only, answered.second_only) == (4, 1, 1)
    assert (everything.n, everything.first_only, everything.second_only) == (5, 1, 2)
    assert everything.difference == pytest.approx(-0.2)


def test_no_discordant_clip_is_no_evidence():
    assert mcnemar(0, 0, 30).p == 1
    assert np.isnan(mcnemar(0, 0, 0).p)


def test_a_batch_gives_what_its_pairs_give_alone():
    batch = mcnemar([3, 10], [9, 10], [50, 60])
    assert batch.p.tolist() == [mcnemar(3, 9, 50).p, mcnemar(10, 10, 60).p]
