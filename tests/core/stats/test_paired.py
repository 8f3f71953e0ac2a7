"""Comparisons of cells on the same items, alignment asserted by id."""

import numpy as np
import pandas as pd
import pytest

from core.metrics import binary
from core.metrics.ordinal import METRICS
from core.metrics.tables import counts
from core.stats.bootstrap import bootstrap, cluster_bootstrap, difference
from core.stats.holm import holm
from core.stats.paired import (
    UnequalItemsError,
    absolute_errors,
    align,
    compare_answers,
    compare_errors,
    difference_counts,
    joint_table,
)
from core.stats.wilcoxon import signed_rank


def predictions(answers, gold=(1, 2, 3, 4), ids=("a", "b", "c", "d"), groups=None):
    table = pd.DataFrame({"item_id": ids, "gold": gold, "prediction": answers})
    return table if groups is None else table.assign(group_id=list(groups))


def drawn(cells=4, n=120):
    drawing = np.random.default_rng(4)
    gold = drawing.integers(1, 6, n)
    ids = [f"turn-{number:04d}" for number in range(n)]
    groups = [f"session-{number // 10}" for number in range(n)]
    tables = {}
    for cell in range(cells):
        answers = np.clip(gold + drawing.integers(-2, 3, n), 1, 5).astype(object)
        answers[drawing.random(n) < 0.05] = None
        tables[f"model-{cell}"] = predictions(answers, gold, ids, groups)
    return tables


def test_items_are_matched_by_id_not_by_row():
    shuffled = predictions([4, 3, 2, 1], gold=(4, 3, 2, 1), ids=("d", "c", "b", "a"))
    aligned = align({"one": predictions([1, 2, 3, 4]), "two": shuffled})
    assert (aligned.predicted[0] == aligned.predicted[1]).all()


def test_unequal_item_sets_are_an_error_that_lists_the_difference():
    other = predictions([1, 2, 3, 4], ids=("a", "b", "x", "y"))
    with pytest.raises(UnequalItemsError) as error:
        align({"one": predictions([1, 2, 3, 4]), "two": other})
    assert "one lacks 2 items (x, y); two lacks 2 items (c, d)" in str(error.value)


def test_an_item_twice_is_an_error():
    with pytest.raises(UnequalItemsError, match=r"one: 1 items \(a\) occur more than once"):
        align({"one": predictions([1, 2, 3, 4], ids=("a", "a", "b", "c"))})


def test_cells_that_disagree_about_gold_are_an_error():
    with pytest.raises(UnequalItemsError, match=r"two, gold: 1 items \(d\) differ from one"):
        align(
            {"one": predictions([1, 2, 3, 4]), "two": predictions([1, 2, 3, 4], gold=(1, 2, 3, 5))}
        )


def test_items_only_one_answered_are_left_out_or_charged_the_worst_error():
    aligned = align({"one": predictions([1, None, 3, 4]), "two": predictions([1, 2, 3, None])})
    assert absolute_errors(aligned).tolist() == [[0, -1, 0, 0], [0, 0, 0, -1]]
    # gold 2 and 4: three levels at worst
    assert absolute_errors(aligned, over="all").tolist() == [[0, 3, 0, 0], [0, 0, 0, 3]]
    assert compare_errors(aligned)["n"].tolist() == [2]
    assert compare_errors(aligned, over="all")["n"].tolist() == [4]


def test_every_pair_is_the_single_test_of_its_errors():
    aligned = align(drawn())
    table = compare_errors(aligned, sign_flips=True)
    errors = absolute_errors(aligned).astype(int)
    assert len(table) == 6
    for row in table.itertuples():
        one, two = (errors[aligned.names.index(name)] for name in (row.first, row.second))
        both = (one >= 0) & (two >= 0)
        alone = signed_rank((one - two)[both])
        assert (row.n, row.n_nonzero, row.p) == (alone.n, alone.n_nonzero, alone.p)
        assert (row.r, row.r_low, row.shift) == (alone.r, alone.r_low, alone.shift)
        assert row.difference == pytest.approx((one - two)[both].mean())
        assert 0 < row.p_flip <= 1
        assert 0 < row.p_sessions <= 1
    assert table["p_holm"].tolist() == holm(table["p"]).tolist()
    assert set(table["zeros"]) == {"pratt"}


def test_the_family_is_the_pairs_of_one_call():
    aligned = align(drawn())
    pair = compare_errors(aligned, [("model-0", "model-1")])
    assert pair["p_holm"].tolist() == pair["p"].tolist()


def test_difference_counts_are_signed_first_minus_second():
    table = difference_counts(np.array([[0, 1, 4, -1], [2, 1, 0, 3]], dtype=np.int8))
    assert table[0, 1].tolist() == [0, 0, 1, 0, 1, 0, 0, 0, 1]
    assert (table[1, 0] == table[0, 1][::-1]).all()


def test_a_pair_that_always_agrees_has_p_one_and_a_reason():
    aligned = align({"one": predictions([1, 1, 1, 1]), "two": predictions([1, 1, 1, 1])})
    row = compare_errors(aligned).iloc[0]
    assert row["p"] == 1
    assert row["reason"] == "all differences are zero"
    assert np.isnan(row["r"])


def test_a_pair_without_a_common_answer_says_so():
    aligned = align({"one": predictions([None] * 4), "two": predictions([1, 2, 3, 4])})
    row = compare_errors(aligned).iloc[0]
    assert np.isnan(row["p"])
    assert row["reason"] == "no item was answered by both"


def test_the_joint_table_carries_any_metric_into_a_paired_bootstrap():
    aligned = align(drawn(2))
    joint = joint_table(aligned, "model-0", "model-1")
    assert (joint.sum(-1) == counts(aligned.gold, aligned.predicted[0])).all()
    by_session = joint_table(aligned, "model-0", "model-1", by_session=True)
    assert by_session.shape == (12, 5, 6, 6)
    assert (by_session.sum(0) == joint).all()
    apart = {"mae": difference(METRICS["mae"])}
    assert bootstrap(joint, apart)["mae"].value == cluster_bootstrap(by_session, apart)["mae"].value


def test_answers_are_compared_by_mcnemar_and_over_sessions():
    gold = ["YES", "NO"] * 10
    ids, groups = [f"clip-{n:02d}" for n in range(20)], [f"dialogue-{n // 2}" for n in range(20)]
    right = predictions(gold, gold, ids, groups)
    never = predictions(["NO"] * 20, gold, ids, groups)
    aligned = align({"right": right, "never": never})
    row = compare_answers(aligned).iloc[0]
    assert (row["first_only"], row["second_only"]) == (10, 0)
    assert row["p"] == row["p_holm"] == pytest.approx(2 / 2**10)
    assert row["p_sessions"] == pytest.approx(2 / 2**10)
    assert row["difference"] == 0.5

    quick = compare_answers(aligned, sign_flips=False).iloc[0]
    assert np.isnan(quick["p_sessions"])
    assert quick.drop("p_sessions").equals(row.drop("p_sessions"))


def test_binary_differences_have_paired_intervals_over_clips_and_over_dialogues():
    gold = ["YES", "NO"] * 10
    ids, groups = [f"clip-{n:02d}" for n in range(20)], [f"dialogue-{n // 4}" for n in range(20)]
    right = predictions(gold, gold, ids, groups)
    mostly = predictions([*gold[:16], "NO", "YES", "NO", None], gold, ids, groups)
    aligned = align({"right": right, "mostly": mostly})
    accuracy = {"accuracy": difference(binary.accuracy)}
    joint = joint_table(aligned, "right", "mostly", count=binary.joint_counts)[:, :-1, :-1]
    over_clips = bootstrap(joint, accuracy)["accuracy"]
    # of 19 clips both answered, the second got 3 wrong
    assert over_clips.value == pytest.approx(3 / 19)
    by_dialogue = joint_table(
        aligned, "right", "mostly", by_session=True, count=binary.joint_counts
    )
    over_dialogues = cluster_bootstrap(by_dialogue[..., :-1, :-1], accuracy)["accuracy"]
    assert over_dialogues.value == over_clips.value
    # all three are in one dialogue, so some resamples have none and some several times three
    assert over_dialogues.low == 0
    assert over_dialogues.high > over_clips.high


def test_sessions_need_a_group_column():
    aligned = align({"one": predictions([1, 2, 3, 4]), "two": predictions([1, 2, 3, 4])})
    with pytest.raises(ValueError, match="no group_id column"):
        joint_table(aligned, "one", "two", by_session=True)


def test_an_unknown_cell_is_refused():
    with pytest.raises(ValueError, match="found 'model-9'"):
        compare_errors(align(drawn(2)), [("model-0", "model-9")])
