"""Ties among raters: listed, decided by others, and by nobody who voted."""

import pandas as pd

from tests.experiments.annotation_round import changed, faults, rows, run, set_cell
from validation.annotation_key import read_key
from validation.ratings import read_ratings
from validation.scale import scale_named


def tied(filled):
    """One text item whose two raters disagree."""
    key = read_key(filled / "private" / "design.json")
    first = key.asked("annotator_3", "text")[0]
    changed(filled, lambda sheet: set_cell("C2", 1 - sheet["C2"].value)(sheet))
    return first


def adjudication(folder, text):
    path = folder / "adjudication.csv"
    path.write_text(text)
    return ["--adjudication", str(path)]


def test_a_tie_is_listed_with_those_who_may_decide_it(filled):
    item = tied(filled)
    assert run(filled) == 0
    found = rows(filled / "ratings" / "to_adjudicate.csv")
    assert [row["role"] for row in found] == ["first", "second"]
    voters = {
        row["rater"]
        for row in rows(filled / "ratings" / "ratings_text.csv")
        if row["item_id"] == item.item_id
    }
    assert {row["rater"] for row in found} == {f"annotator_{n}" for n in range(1, 5)} - voters
    assert {(row["item_id"], row["code"]) for row in found} == {(item.item_id, item.code)}


def test_the_filled_list_of_ties_decides_them(filled, capsys):
    item = tied(filled)
    run(filled)
    path = filled / "ratings" / "to_adjudicate.csv"
    said = rows(path)
    adjudicators = [row["rater"] for row in said]
    filled_list = pd.DataFrame(said).assign(rating="1")
    filled_list.to_csv(filled / "decided.csv", index=False)
    capsys.readouterr()
    assert run(filled, "--adjudication", str(filled / "decided.csv")) == 0
    assert (
        f"text {item.item_id}: UNRESOLVED (1 NO, 1 YES) -> ADJUDICATED YES by "
        f"{', '.join(adjudicators)}" in capsys.readouterr().out
    )
    (row,) = (
        row
        for row in rows(filled / "ratings" / "consensus_text.csv")
        if row["item_id"] == item.item_id
    )
    assert (row["label"], row["status"], row["raters"]) == ("YES", "ADJUDICATED", "2")


def test_a_list_that_was_filled_in_place_is_not_overwritten(filled, capsys):
    tied(filled)
    run(filled)
    path = filled / "ratings" / "to_adjudicate.csv"
    pd.DataFrame(rows(path)).assign(rating=["1", "0"]).to_csv(path, index=False)
    judged = path.read_bytes()
    assert run(filled, "--adjudication", str(path)) == 0
    assert "differ; add a third judgement below theirs." in capsys.readouterr().out
    assert run(filled) == 0
    assert path.read_bytes() == judged
    assert len(rows(path.with_name("to_adjudicate_2.csv"))) == 2


def test_agreement_asks_the_same_adjudicators(filled):
    from experiments.agreement_report import study_of

    tied(filled)
    run(filled)
    everyone = read_ratings(filled / "ratings" / "ratings_text.csv", scale_named("nominal"))
    (ours,) = study_of(everyone, everyone, resamples=0, seed=0).assignments
    listed = rows(filled / "ratings" / "to_adjudicate.csv")
    assert [row["rater"] for row in listed] == [ours.first, ours.second]


def test_a_third_breaks_the_tie_of_the_first_two(filled):
    item = tied(filled)
    lines = [f"{item.code},{name},{vote}" for name, vote in (("x", 1), ("y", 0), ("z", 0))]
    more = adjudication(filled, "\n".join(["item,rater,rating", *lines]))
    assert run(filled, *more) == 0
    (row,) = (
        row
        for row in rows(filled / "ratings" / "consensus_text.csv")
        if row["item_id"] == item.item_id
    )
    assert (row["label"], row["status"], row["adjudicators"]) == ("NO", "TIE_BROKEN", "x y z")


def test_judgements_that_may_not_be_are_faults(filled):
    item = tied(filled)
    other = next(
        each
        for each in read_key(filled / "private" / "design.json").shown
        if each.modality == "text" and each.item_id != item.item_id
    )
    lines = [
        "item,rater,rating,modality",
        f"{item.item_id},annotator_3,1,text",
        f"{item.item_id},y,1,text",
        f"{other.code},x,1,",
        f"{other.code},y,1,",
        "d99,x,0,audio",
        f"{item.item_id},x,maybe,text",
        f"{item.item_id},x,0,smell",
        f"{other.code},y,0,",
    ]
    assert run(filled, *adjudication(filled, "\n".join(lines))) == 1
    found = "\n".join(faults(filled))
    assert "annotator_3 voted on it and may not adjudicate" in found
    assert f"item {other.item_id} is MAJORITY; only UNRESOLVED is adjudicated" in found
    assert "audio: expected an item that was rated, found item d99" in found
    assert 'row 7, rating: expected 0 or 1, found "maybe"' in found
    assert 'row 8: expected one of text, audio in a column modality, found "smell"' in found
    assert (
        f"row 9: expected one judgement by a rater of an item, found a second one by y of {other.item_id}"
        in found
    )
