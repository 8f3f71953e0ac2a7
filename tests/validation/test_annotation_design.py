from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from validation.annotation_design import (
    MODALITIES,
    DesignError,
    balance,
    design_faults,
    designed,
    fitting,
    shares_of,
)


def items(number):
    return [f"d{place}" for place in range(number)]


def test_equal_arguments_give_an_equal_design_and_another_seed_another():
    one, other = (designed(items(40), annotators=8, batches=8, overlap=0.5, seed=s) for s in (0, 1))
    assert one == designed(items(40), annotators=8, batches=8, overlap=0.5, seed=0)
    assert one.shares != other.shares


def test_half_an_overlap_gives_every_item_two_ratings():
    design = designed(items(100), annotators=10, batches=10, overlap=0.5)
    for mode in MODALITIES:
        found = balance(design, mode)
        assert found.items_by_ratings == {2: 100}
        assert (found.expected, found.overlap) == (2.0, 0.5)
        # A ring: each annotator shares ten items with the next one, nobody else.
        assert sorted(found.shared_by_pair.values()) == [0] * 35 + [10] * 10


def test_eight_annotators_rate_all_of_ten_batches():
    design = designed(items(100), annotators=8, batches=10, overlap=0.3)
    assert all(sum(balance(design, m).items_by_ratings.values()) == 100 for m in MODALITIES)
    assert all(0 not in balance(design, m).items_by_ratings for m in MODALITIES)
    assert {len(share.items) for share in design.shares} <= {15, 16}


def test_half_of_the_annotators_begin_with_text():
    design = designed(items(100), annotators=8, batches=10, overlap=0.3)
    assert [share.modality for share in design.shares[::2]].count("text") == 4


def test_items_come_in_another_order_for_each_annotator():
    design = designed(items(20), annotators=16, batches=4, overlap=0.5)
    orders = [share.items for share in shares_of(design, "text") if share.batch == 0]
    assert len(orders) == 4
    assert len({frozenset(order) for order in orders}) == 1
    assert len(set(orders)) == 4


def test_both_modalities_give_one_person_the_same_batch_twice():
    design = designed(items(20), annotators=4, batches=4, overlap=0.5, both_modalities=True)
    text, audio = (
        {share.annotator: set(share.items) for share in shares_of(design, m)} for m in MODALITIES
    )
    assert text == audio


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"annotators": 1}, "annotators: expected 2 or more, found 1"),
        ({"annotators": 4, "batches": 10}, "use at most 8 batches, better 4"),
        ({"batches": 1}, "batches: expected 2 or more, found 1"),
        ({"overlap": 30}, r"overlap: expected 0.2-0.5 \(a share, not per cent\)"),
        ({"overlap": 0.1}, "found 0.1"),
        ({"overlap": 0}, "0 needs two annotators for each batch, 20 in all"),
        ({"batches": 3}, "somebody would rate an item both as text and as audio"),
        ({"number": 12}, "12 items make 10 batches too small for an overlap of 0.3; use 6"),
        ({"number": 2}, "use more items"),
        ({"annotators": 2, "batches": 4}, "no item is rated twice"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence(wish, sentence):
    wishes = {"number": 100, "annotators": 8, "batches": 10, "overlap": 0.3, **wish}
    with pytest.raises(DesignError, match=sentence):
        designed(items(wishes.pop("number")), **wishes)


@pytest.mark.parametrize(("number", "batches"), [(100, 10), (12, 6)])
def test_a_small_set_has_fewer_batches_than_the_studys_ten(number, batches):
    assert len(fitting(items(number), annotators=8, overlap=0.3).batches) == batches


def test_a_set_too_small_for_any_number_of_batches_is_refused():
    with pytest.raises(DesignError, match="2 items make 2 batches too small"):
        fitting(items(2), annotators=8, overlap=0.3)


def test_an_item_that_is_there_twice_is_refused():
    with pytest.raises(DesignError, match="d1 is there twice"):
        designed([*items(20), "d1"], annotators=4, batches=4, overlap=0.5)


@settings(max_examples=150, deadline=None)
@given(
    number=st.integers(4, 120),
    annotators=st.integers(2, 14),
    batches=st.integers(2, 12),
    overlap=st.sampled_from([0, 0.2, 0.25, 0.3, 0.4, 0.5]),
    seed=st.integers(0, 10_000),
)
def test_every_design_is_whole_apart_and_balanced(number, annotators, batches, overlap, seed):
    ids = items(number)
    try:
        design = designed(ids, annotators=annotators, batches=batches, overlap=overlap, seed=seed)
    except DesignError:
        assume(False)
    assert len(design.annotators) == annotators
    for mode in MODALITIES:
        shares = list(shares_of(design, mode))
        assert sorted(share.annotator for share in shares) == sorted(design.annotators)
        ratings = {item: sum(item in share.items for share in shares) for item in ids}
        assert min(ratings.values()) >= 1
        assert max(ratings.values()) >= 2
        # An item lies in one or two batches, a batch has A/B raters give or take one.
        if annotators == batches:
            assert max(ratings.values()) <= 2
        sizes = [len(share.items) for share in shares]
        if annotators >= batches:
            assert max(sizes) - min(sizes) <= (1 if overlap == 0 else 0)
        assert balance(design, mode).expected == pytest.approx(sum(sizes) / number)
    for name in design.annotators:
        text, audio = (
            next(set(s.items) for s in shares_of(design, m) if s.annotator == name)
            for m in MODALITIES
        )
        assert not text & audio


def test_the_check_finds_what_somebody_changed():
    design = designed(items(40), annotators=8, batches=8, overlap=0.5)
    first, *rest = design.shares
    assert design_faults(design) == []
    assert "expected one batch, found 0" in design_faults(replace(design, shares=tuple(rest)))[0]
    foreign = replace(first, items=(*first.items[1:], "x"))
    assert "x is no item" in design_faults(replace(design, shares=(foreign, *rest)))[0]
    twice = replace(first, items=(*first.items, first.items[0]))
    assert "an item is there twice" in design_faults(replace(design, shares=(twice, *rest)))[0]
    swapped = replace(first, items=rest[0].items)
    assert "both as text and as audio" in design_faults(replace(design, shares=(swapped, *rest)))[0]
    short = replace(first, items=first.items[1:])
    same = replace(first, items=(short.items[0], *rest[2].items))
    assert design_faults(replace(design, shares=(same, *rest))) != []
