import pytest

from validation.rating_sheets import Cell, SheetError, checked, key_of, level_of

TURNS = [("a", "1.flac", "w1"), ("b", "2.flac", "w2"), ("c", "3.flac", "w3")]
KEY = key_of("set", "hash", TURNS, experts=2, seed=1)
CODES = {turn.item_id: turn.code for turn in KEY.turns}


def cell(item, given, expert="expert_1", **beside):
    return Cell(expert, CODES.get(item, item), given, "f.xlsx", "Ratings!E2", **beside)


def test_ratings_that_stand_and_cells_left_empty():
    found = checked(KEY, [cell("a", 3), cell("b", " 5 "), cell("c", None)])

    assert found.given == (("expert_1", "a", 3), ("expert_1", "b", 5))
    assert (found.problems, found.empty) == ((), 1)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([cell("a", 3), cell("a", 4), cell("b", 1), cell("c", 1)], "each turn once"),
        ([cell("a", 3), cell("b", 1)], "expected all 3 turns, found 2"),
        ([cell("a", 3, clip="2.flac"), cell("b", 1), cell("c", 1)], "those of another turn"),
        ([cell("a", 3, words="w2"), cell("b", 1), cell("c", 1)], "those of another turn"),
        ([cell("x", 3), cell("a", 1), cell("b", 1), cell("c", 1)], "a code of this round"),
    ],
)
def test_a_turn_that_is_not_there_once_and_whole_is_a_fault(cells, said):
    (problem,) = checked(KEY, cells).problems
    assert said in problem.said()


def test_of_a_turn_rated_twice_neither_rating_stands():
    found = checked(KEY, [cell("a", 3), cell("a", 4), cell("b", 1), cell("c", 1)])
    assert "a" not in {item for _, item, _ in found.given}


@pytest.mark.parametrize(
    ("given", "level"),
    [(1, 1), (5.0, 5), ("2", 2), (" 2 ", 2), (True, None), (3.5, None), ("3.0", None), (0, None)],
)
def test_what_is_a_level(given, level):
    assert level_of(given) == level


def test_orders_differ_and_the_same_seed_gives_the_same():
    many = [(f"t{n}", f"{n}.flac", "w") for n in range(20)]
    one, again = (key_of("set", "hash", many, experts=3, seed=7) for _ in range(2))

    assert one == again
    assert len(set(one.orders.values())) == 3
    assert all(sorted(order) == sorted(one.by_code()) for order in one.orders.values())


def test_one_expert_or_no_turn_is_refused():
    with pytest.raises(SheetError, match="expected two or more, found 1"):
        key_of("set", "hash", TURNS, experts=1, seed=0)
    with pytest.raises(SheetError, match="no turn to rate"):
        key_of("set", "hash", [], experts=2, seed=0)
