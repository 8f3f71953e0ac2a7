"""Exemplars: how they are chosen, and that no dialogue the model was told about is evaluated."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exemplars import ExemplarError, same_words, select

DIALOGUES = pd.DataFrame(
    {
        "item_id": ["a", "b", "c", "d", "e", "f", "twin of a"],
        "transcript": [
            "Person1: You owe me, and you know it.\nPerson2: I don't.",
            "Person1: Do it, or you'll regret it.",
            "Person1: Nobody else would want you.",
            "Person1: What time is it?",
            "Person1: Shall we go home?",
            "Person1: It snows.",
            "person1: You OWE me -- and you know it!\n\nperson2:  I don’t",
        ],
        "label": ["YES", "YES", "YES", "NO", "NO", "NO", "YES"],
        "techniques": [None, "Intimidation", "Shaming or Belittlement", None, None, None, None],
        "audio": ["x.wav"] * 7,
    }
)


def chosen(**asked):
    words = {"shots": 4, "ids": (), "seed": 0, "include": False} | asked
    return select(DIALOGUES, **words)


def test_half_of_the_shots_are_of_each_label_in_turns():
    shown = chosen().exemplars

    assert list(shown["label"]) == ["NO", "YES", "NO", "YES"]
    assert shown["item_id"].is_unique


def test_an_exemplar_is_not_evaluated_and_neither_is_a_dialogue_equal_to_one():
    found = chosen(ids=("a", "d"))

    assert list(found.evaluated["item_id"]) == ["b", "c", "e", "f"]
    assert found.excluded == {
        "a": "an exemplar",
        "d": "an exemplar",
        "twin of a": "the same dialogue as exemplar a",
    }


def test_exemplars_by_id_come_in_the_order_given():
    assert list(chosen(ids=("e", "b", "a")).exemplars["item_id"]) == ["e", "b", "a"]


def test_a_manipulative_exemplar_has_a_tactic_to_name_where_there_are_enough():
    assert set(chosen().exemplars.query("label == 'YES'")["item_id"]) == {"b", "c"}


def test_a_dialogue_without_a_clip_is_drawn_last():
    silent = DIALOGUES.assign(audio=["x.wav", None, "x.wav", "x.wav", None, "x.wav", "x.wav"])

    found = select(silent, shots=4, ids=(), seed=0, include=False)

    assert set(found.exemplars["audio"]) == {"x.wav"}


@given(st.integers(0, 50), st.permutations(range(7)), st.sampled_from([2, 4]))
def test_no_evaluated_dialogue_reads_like_an_exemplar_whatever_the_seed_and_order(
    seed, order, shots
):
    items = DIALOGUES.iloc[list(order)].reset_index(drop=True)
    found = select(items, shots=shots, ids=(), seed=seed, include=False)
    shown = set(found.exemplars["transcript"].map(same_words))

    assert not shown & set(found.evaluated["transcript"].map(same_words))
    assert len(found.evaluated) + len(found.excluded) == len(items)
    assert list(found.exemplars["item_id"]) == list(
        chosen(seed=seed, shots=shots).exemplars["item_id"]
    )


def test_other_seeds_draw_other_exemplars():
    assert len({tuple(chosen(seed=seed).exemplars["item_id"]) for seed in range(10)}) > 1


def test_asked_to_include_them_they_are_evaluated():
    found = chosen(include=True)

    assert list(found.evaluated["item_id"]) == list(DIALOGUES["item_id"])
    assert len(found.exemplars) == 4


def test_no_shots_leave_everything_to_be_evaluated():
    found = chosen(shots=0)

    assert (len(found.evaluated), len(found.exemplars), found.excluded) == (7, 0, {})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"ids": ("a", "z")}, "there is no dialogue z"),
        ({"ids": ("a", "b", "a")}, "a is named twice"),
        ({"shots": 3}, "expected an even number"),
        ({"shots": 8}, "expected 4 dialogues labelled NO to show, found 3"),
        ({"ids": tuple("abcdef")}, "leaves no dialogue to evaluate"),
    ],
)
def test_exemplars_that_cannot_be_had_are_refused_in_a_sentence(asked, said):
    with pytest.raises(ExemplarError, match=said):
        chosen(**asked)
