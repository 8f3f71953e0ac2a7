import pandas as pd
import pytest

from experiments import worst
from tests.experiments.kept_runs import answers, turns


@pytest.fixture
def dataset(tmp_path):
    return turns(tmp_path / "data", {name: f"Turn {name}." for name in "abcde"})


def written(tmp_path, dataset, predictions):
    path = tmp_path / "worst.html"
    about = {"folder": dataset.folder, "licence": dataset.licence}
    worst.save_worst(predictions, dataset.items, "null", path, **about)
    return path.read_text(encoding="utf-8")


def test_the_item_farthest_off_comes_first_and_one_without_an_answer_is_as_far_as_can_be(dataset):
    # Labels 1 to 5 and always one more, but 5 wraps to 1: off by 4.
    predictions = answers(dataset, "AO", 1)
    predictions.loc[0, ["prediction", "status", "reason"]] = [pd.NA, "refused", "no"]

    # "a" has label 1, so no answer counts as off by 4 too; its label was the less likely: 0.1 both.
    assert worst.worst_items(predictions, 2) == ["a", "e"]


def test_equal_errors_are_ordered_by_how_unlikely_the_label_was_thought(dataset):
    predictions = answers(dataset, "AO")
    predictions["p_3"] = [0.1, 0.1, 0.05, 0.1, 0.1]

    assert worst.worst_items(predictions, 1) == ["c"]


def test_a_wrong_word_is_as_wrong_as_any_other():
    rows = {"item_id": ["a", "b"], "gold": ["YES", "NO"], "prediction": ["YES", "YES"]}
    predictions = pd.DataFrame({**rows, "p_YES": [0.6, 0.6], "p_NO": [0.4, 0.4]})

    assert worst.worst_items(predictions, 1) == ["b"]


def test_clips_that_do_not_fit_are_named_and_not_cut(tmp_path, dataset, monkeypatch):
    whole = written(tmp_path, dataset, answers(dataset, "AO"))
    monkeypatch.setattr(worst, "MOST_BYTES", 1000)
    small = written(tmp_path, dataset, answers(dataset, "AO"))

    assert (whole.count("<audio"), small.count("<audio")) == (5, 0)
    assert small.count("is left out to keep this file small") == 5
    assert "CC-BY-NC-4.0" in whole


def test_a_clip_that_cannot_be_decoded_says_why(tmp_path, dataset):
    (dataset.folder / "audio" / "clip.wav").write_bytes(b"no sound")

    assert "The clip cannot be played: " in written(tmp_path, dataset, answers(dataset, "AO"))
