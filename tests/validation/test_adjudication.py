import pytest

from validation.adjudication import completed, read_judgements
from validation.annotation_key import Shown
from validation.consensus import ItemLabel
from validation.table import UnreadableTableError

CODES = {"T1": Shown("T1", "d1", "text", "")}
TIE = ItemLabel("d1", None, {"NO": 1, "YES": 1}, "UNRESOLVED", ("A", "B"))
CLEAR = ItemLabel("d2", "YES", {"NO": 0, "YES": 1}, "MAJORITY", ("A",))


def judged(folder, text, modalities=("text",)):
    path = folder / "judged.csv"
    path.write_text(text)
    return read_judgements(path, CODES, modalities)


@pytest.mark.parametrize("item", ["d1", "T1"])
def test_an_item_goes_by_its_id_or_by_its_code(tmp_path, item):
    found = judged(tmp_path, f"item,rater,rating\n{item},C,1\n{item},D,YES\n")
    assert found.given == {("text", "d1"): {"C": "YES", "D": "YES"}}
    after, problems = completed({"text": [TIE, CLEAR]}, found, "judged.csv")
    assert problems == []
    assert [(each.label, each.status) for each in after["text"]] == [
        ("YES", "ADJUDICATED"),
        ("YES", "MAJORITY"),
    ]


def test_two_modalities_need_a_column_that_says_which(tmp_path):
    both = ("text", "audio")
    found = judged(tmp_path, "item,rater,rating\nd1,C,1\n", both)
    assert found.problems[0].said() == (
        "judged.csv, row 2: expected one of text, audio in a column modality, found nothing"
    )
    found = judged(tmp_path, "item,rater,rating,modality\nd1,C,1,Audio\n", both)
    assert list(found.given) == [("audio", "d1")]


def test_rows_that_wait_for_a_judgement_are_counted(tmp_path):
    found = judged(tmp_path, "item,rater,rating\nd1,C,1\nd1,D,0\nd1,E,\n")
    assert found.notes == ("judged.csv: 1 rows without a rating were left out.",)
    after, problems = completed({"text": [TIE]}, found, "judged.csv")
    assert (after["text"][0].status, after["text"][0].adjudicators) == ("UNRESOLVED", ("C", "D"))
    assert problems == []


def test_one_judgement_alone_decides_nothing_and_is_a_fault(tmp_path):
    found = judged(tmp_path, "item,rater,rating\nd1,C,1\n")
    after, problems = completed({"text": [TIE]}, found, "judged.csv")
    assert after["text"] == [TIE]
    assert "expected two or three judgements, found 1" in problems[0].said()


def test_a_table_without_the_columns_is_refused(tmp_path):
    with pytest.raises(
        UnreadableTableError, match="expected a column rater, found item, who, rating"
    ):
        judged(tmp_path, "item,who,rating\nd1,C,1\n")
