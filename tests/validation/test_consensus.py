import numpy as np
import pytest
from scipy import stats

from validation.consensus import (
    AdjudicationError,
    adjudicated,
    agreement_table,
    agreement_with_reference,
    assign_adjudicators,
    consensus_against_reference,
    majority_labels,
    median_labels,
    ranking_robustness,
)

NAN = np.nan


def majority(rows, ties=None, raters="ABCDEFGH"):
    values = np.full((len(rows), len(raters)), NAN)
    for place, row in enumerate(rows):
        values[place, : len(row)] = row
    items = [f"d{place}" for place in range(len(rows))]
    return majority_labels(items, list(raters), values, ("NO", "YES"), (0.0, 1.0), ties=ties)


def test_a_record_keeps_label_histogram_status_and_voters():
    (record,) = majority([[1, 0, 1]])
    assert (record.label, record.status) == ("YES", "MAJORITY")
    assert record.histogram == {"NO": 1, "YES": 2}
    assert record.voters == ("A", "B", "C")


@pytest.mark.parametrize(("ties", "label"), [(None, None), ("YES", "YES"), ("NO", "NO")])
def test_a_tie_is_unresolved_under_every_rule(ties, label):
    (record,) = majority([[1, 0]], ties)
    assert (record.label, record.status) == (label, "UNRESOLVED")


def test_the_printed_formula_gives_yes_at_half_the_votes():
    # sum >= ceil(k/2) is the first case, and at k = 2, sum = 1 it holds.
    for votes in ([1, 0], [1, 1, 0], [0, 0, 1], [1], [0], [1, 1, 0, 0]):
        formula = "YES" if sum(votes) >= -(-len(votes) // 2) else "NO"
        assert majority([votes], ties="YES")[0].label == formula


def test_an_item_nobody_rated_is_unrated():
    (record,) = majority([[]])
    assert (record.label, record.status, record.voters) == (None, "UNRATED", ())


def test_of_three_labels_two_tied_ones_are_no_majority():
    values = np.array([[0.0, 1.0, 2.0, 1.0, 0.0]])
    (record,) = majority_labels(["d"], "ABCDE", values, ("x", "y", "z"), (0, 1, 2), ties="z")
    assert (record.label, record.status) == (None, "UNRESOLVED")


def test_adjudicators_are_outside_the_voters_and_take_turns():
    records = majority([[1, 0], [1, 1], [0, 1], [1, 0]], raters="ABCDE")
    assigned = assign_adjudicators(records, "ABCDE")
    assert [(a.item_id, a.first, a.second, a.tie_breaker) for a in assigned] == [
        ("d0", "C", "D", "E"),
        ("d2", "E", "C", "D"),
        ("d3", "D", "E", "C"),
    ]


def test_too_few_outsiders_is_said():
    (record,) = majority([[1, 0]], raters="ABC")
    (assigned,) = assign_adjudicators([record], "ABC")
    assert (assigned.first, assigned.reason) == (
        None,
        "1 of 3 raters did not vote on it; two are needed",
    )
    (without_third,) = assign_adjudicators([record], "ABCD")
    assert without_third.reason == "nobody is left as tie-breaker"


def test_two_adjudicators_settle_it_and_the_votes_stay_as_they_were():
    (tie,) = majority([[1, 0]])
    settled = adjudicated(tie, {"C": "NO", "D": "NO"})
    assert (settled.label, settled.status, settled.adjudicators) == (
        "NO",
        "ADJUDICATED",
        ("C", "D"),
    )
    assert settled.histogram == {"NO": 1, "YES": 1}


def test_a_third_breaks_their_tie_and_without_one_it_stays_unresolved():
    (tie,) = majority([[1, 0]])
    assert adjudicated(tie, {"C": "NO", "D": "YES"}).status == "UNRESOLVED"
    broken = adjudicated(tie, {"C": "NO", "D": "YES", "E": "YES"})
    assert (broken.label, broken.status) == ("YES", "TIE_BROKEN")


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ({"A": "NO", "C": "NO"}, "item d0: A voted on it and may not adjudicate"),
        ({"C": "NO", "D": "maybe"}, "expected one of NO, YES, found 'maybe'"),
        ({"C": "NO"}, "two or three judgements, found 1"),
    ],
)
def test_adjudication_that_breaks_the_rules_is_refused(judgements, message):
    (tie,) = majority([[1, 0]])
    with pytest.raises(AdjudicationError, match=message):
        adjudicated(tie, judgements)


def test_a_majority_is_not_adjudicated():
    (clear,) = majority([[1, 1]])
    with pytest.raises(AdjudicationError, match="is MAJORITY"):
        adjudicated(clear, {"C": "NO", "D": "NO"})


def test_the_table_leaves_out_items_without_both_labels():
    records = majority([[1], [1, 0], [0], []])
    table = agreement_table(records, ["YES", "YES", None, "NO"], ("NO", "YES"))
    assert table.tolist() == [[0, 0], [0, 1]]
    share, kappa = agreement_with_reference(table, condition="all", n_total=4)
    assert (share.value, share.n, share.n_total) == (1.0, 1, 4)
    assert kappa.reason == "one label only in both"
    nothing = agreement_with_reference(np.zeros((2, 2), dtype=int), condition="all", n_total=4)
    assert all(np.isnan(e.value) and e.reason for e in nothing)


def test_the_median_is_of_the_ratings_there_are():
    rows = [[1, 2, 5, 5, 2], [1, 2, NAN, NAN, NAN], [NAN] * 5]
    np.testing.assert_array_equal(median_labels(np.array(rows)), [2, 1.5, NAN])


def test_consensus_and_reference_as_in_study_1():
    rng = np.random.default_rng(0)
    ours, theirs = rng.integers(1, 6, (2, 80)).astype(float)
    ours[3], theirs[5] = NAN, NAN
    within, mae, rho = consensus_against_reference(ours, theirs, condition="all")
    gap = np.abs(ours - theirs)[~np.isnan(ours - theirs)]
    assert within.n == mae.n == 78
    assert within.value == pytest.approx((gap <= 1).mean())
    assert mae.value == pytest.approx(gap.mean())
    scipy = stats.spearmanr(ours, theirs, nan_policy="omit").statistic
    assert rho.value == pytest.approx(scipy, abs=1e-12)
    assert rho.low < rho.value < rho.high


def test_rho_with_a_constant_reference_is_undefined_with_a_reason():
    _, mae, rho = consensus_against_reference(
        np.array([1.0, 2, 3]), np.array([2.0, 2, 2]), condition="all"
    )
    assert mae.value == pytest.approx(2 / 3)
    assert np.isnan(rho.value)
    assert rho.reason == "one side gave one level only"


def test_a_small_ranking_has_its_exact_p():
    # The same order of four models: 1 of 24 orders gives rho 1, and 1 gives -1.
    scores = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    found = ranking_robustness(scores, scores)
    assert (found.rho, found.exact, found.models) == (pytest.approx(1), True, 4)
    assert found.p == pytest.approx(2 / 24)


def test_ten_models_near_the_papers_rho_have_a_p_above_the_papers():
    # Squared rank differences add up to 20: rho 0.879, the untied value next to 0.882.
    full = {name: float(place) for place, name in enumerate("abcdefghij")}
    order = [3, 1, 2, 0, 4, 5, 6, 7, 9, 8]
    subset = {name: float(place) for name, place in zip("abcdefghij", order, strict=True)}
    found = ranking_robustness(full, subset)
    student = stats.spearmanr(range(10), order)
    assert found.rho == pytest.approx(student.statistic) == pytest.approx(1 - 6 * 20 / 990)
    assert not found.exact
    # Tables of the exact distribution (Zar 1972): 0.879 is significant at 0.002, not at 0.001.
    assert 0.001 < found.p < 0.002
    assert student.pvalue < 0.001


def test_tied_scores_share_their_rank():
    found = ranking_robustness({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 3})
    assert found.rho == pytest.approx(stats.spearmanr([1, 1, 2], [1, 2, 3]).statistic)


def test_equal_scores_rank_nothing():
    found = ranking_robustness({"a": 1, "b": 1}, {"a": 1, "b": 2})
    assert np.isnan(found.rho)
    assert found.reason == "all scores of a set are equal"


def test_rankings_of_different_models_are_refused():
    with pytest.raises(ValueError, match=r"ranked in one set only: \['b', 'c'\]"):
        ranking_robustness({"a": 1, "b": 2}, {"a": 1, "c": 2})
