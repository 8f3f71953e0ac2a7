import json
from dataclasses import replace

import pytest

from validation.annotation_answers import Answer, binary, checked
from validation.annotation_design import DesignError, designed, shares_of
from validation.annotation_key import KeyFileError, code, fingerprint, key_of, read_key, write_key

ITEMS = [f"d{place}" for place in range(8)]


@pytest.fixture
def key():
    return key_of(
        designed(ITEMS, annotators=4, batches=4, overlap=0.5, seed=3),
        dataset="x",
        dataset_hash="h",
        texts={item: f"words of {item}" for item in ITEMS},
        clips={item: f"{item}.flac" for item in ITEMS},
        reference=dict.fromkeys(ITEMS, "YES"),
    )


def test_a_key_is_read_as_it_was_written(key, tmp_path):
    write_key(key, tmp_path / "private" / "design.json")
    assert read_key(tmp_path / "private" / "design.json") == key


def test_a_code_tells_neither_item_nor_modality_mate():
    codes = {code(0, "h", mode, "d1") for mode in ("text", "audio")}
    assert len(codes) == 2
    assert not [each for each in codes if "d1" in each[1:3]]
    assert code(0, "h", "text", "d1") != code(1, "h", "text", "d1")
    assert code(0, "h", "text", "d1") != code(0, "other", "text", "d1")


def test_a_fingerprint_is_of_the_words_not_the_blanks():
    assert fingerprint("a\r\nb  c") == fingerprint("a\nb c\n")
    assert fingerprint("a b") != fingerprint("a c")


def test_items_come_in_the_order_they_were_drawn_in(key):
    share = next(shares_of(key.design, "audio"))
    assert [e.item_id for e in key.asked(share.annotator, "audio")] == list(share.items)


@pytest.mark.parametrize(
    "edit",
    [
        lambda said: said["shown"].pop(),
        lambda said: said["shown"][0].update(code=said["shown"][1]["code"]),
        lambda said: said["design"]["shares"].pop(),
        lambda said: said["reference"].update(d1="NO"),
        lambda said: said.pop("sha256"),
    ],
)
def test_a_key_that_was_edited_is_refused(key, tmp_path, edit):
    path = tmp_path / "design.json"
    write_key(key, path)
    said = json.loads(path.read_text())
    edit(said)
    path.write_text(json.dumps(said))
    with pytest.raises(KeyFileError, match=r"design\.json: .* [Uu]se"):
        read_key(path)


def test_items_of_one_code_are_refused(key, monkeypatch):
    monkeypatch.setattr("validation.annotation_key.code", lambda *_: "T0")
    with pytest.raises(DesignError, match="use another seed"):
        key_of(
            key.design,
            dataset="x",
            dataset_hash="h",
            texts=dict.fromkeys(ITEMS, ""),
            clips=dict.fromkeys(ITEMS, ""),
            reference={},
        )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0, 0),
        (1.0, 1),
        ("1 ", 1),
        ("No", 0),
        (True, None),
        ("", None),
        (None, None),
        ("01", None),
        (float("nan"), None),
        ("1e0", None),
        ("\N{FULLWIDTH DIGIT ONE}", None),
        ([], None),
    ],
)
def test_only_the_two_classes_are_a_rating(given, meant):
    assert binary(given) == meant


def test_a_full_set_of_answers_is_a_full_set_of_ratings_and_a_lost_one_is_named(key):
    answers = [
        Answer("f", name, mode, shown.code, 1, "Tab!C1", "Tab!A1", shown.content)
        for name in key.design.annotators
        for mode in ("text", "audio")
        for shown in key.asked(name, mode)
    ]
    files = {(each.annotator, each.modality): "f" for each in answers}
    assert (len(checked(answers, key, files=files).ratings), len(answers)) == (32, 32)
    found = checked(answers[1:], key, files=files)
    assert len(found.ratings) == 31
    assert [problem.said() for problem in found.problems] == [
        f"f, Tab: expected item {answers[0].code}, found no row with it"
    ]
    moved = replace(answers[0], content="another")
    assert len(checked([moved, *answers[1:]], key, files=files).ratings) == 31
