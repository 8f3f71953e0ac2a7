"""What a condition withholds stays withheld, and conditions stay comparable."""

from dataclasses import replace

import pytest

from core.modality import ModalityError, assert_modality, assert_paired
from core.protocol import Request

SAID = "I could not find the keys and then I cried in the car."
CLIP = {"audio": "0" * 32 + ".wav"}


def request(*parts, system=None):
    return Request("", system, parts, None)


def context(text):
    return {"text": text, "slot": "context"}


def transcript(text=SAID):
    return {"text": text, "slot": "transcript"}


def test_each_condition_passes_with_what_it_allows():
    assert_modality({"t1": request(CLIP, context("Therapist: Go on."))}, "AO", {"t1": SAID})
    assert_modality({"t1": request(CLIP, transcript())}, "AT", {"t1": SAID})
    assert_modality({"t1": request(transcript())}, "TO", {"t1": SAID})


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("AO", (CLIP, transcript())),
        ("AO", (CLIP, transcript(""))),
        ("AO", ()),
        ("AO", (CLIP, CLIP)),
        ("TO", (CLIP, transcript())),
        ("TO", ()),
        ("AT", (CLIP,)),
        ("AT", (transcript(),)),
    ],
)
def test_a_part_too_many_or_too_few_is_named_with_its_item(condition, parts):
    with pytest.raises(ModalityError, match=f"item t1, {condition}: expected"):
        assert_modality({"t1": request(*parts)}, condition, {"t1": SAID})


@pytest.mark.parametrize(
    "leak",
    [
        f"Therapist: Go on.\nPatient: {SAID}",
        SAID.upper(),
        "patient: i could  not find\nthe keys, and then I cried -- in the car!",
        f"xx {SAID} yy",
    ],
)
@pytest.mark.parametrize("condition", ["AO", "AT", "TO"])
def test_a_context_that_holds_the_current_turn_is_a_leak_in_any_condition(leak, condition):
    parts = {"AO": (CLIP,), "AT": (CLIP, transcript()), "TO": (transcript(),)}[condition]

    with pytest.raises(
        ModalityError, match=r"item t1, .*: its transcript stands in the context too"
    ):
        assert_modality({"t1": request(context(leak), *parts)}, condition, {"t1": SAID})


def test_a_transcript_in_the_words_of_the_prompt_is_a_leak_too():
    with pytest.raises(ModalityError, match="in the prompt too"):
        assert_modality({"t1": request(CLIP, {"text": f"He says: {SAID}"})}, "AO", {"t1": SAID})


@pytest.mark.parametrize("said", ["Yes.", "", "I don't know what to do."])
def test_a_short_turn_may_have_been_said_before(said):
    assert_modality({"t1": request(CLIP, context(f"Patient: {said}"))}, "AO", {"t1": said})


def test_words_inside_longer_words_are_no_leak():
    said = "a b c d e f g h"

    assert_modality({"t1": request(CLIP, context("xa b c d e f g hx"))}, "AO", {"t1": said})


def test_ten_faults_are_shown_and_the_rest_counted():
    requests = {f"t{n}": request() for n in range(14)}

    with pytest.raises(ModalityError) as caught:
        assert_modality(requests, "AO", dict.fromkeys(requests, ""))

    assert str(caught.value).count("\n") == 10
    assert str(caught.value).endswith("and 4 more.")


def test_conditions_with_equal_items_and_context_are_paired():
    asked = {"t1": request(context("a")), "t2": request(context("b"))}

    assert_paired({"AO": asked, "TO": dict(asked)})


def test_conditions_that_differ_in_items_order_or_context_are_not():
    asked = {"t1": request(context("a")), "t2": request(context("b"))}

    with pytest.raises(ModalityError, match=r"AO and TO: .* t2 in one only"):
        assert_paired({"AO": asked, "TO": {"t1": asked["t1"]}})
    with pytest.raises(ModalityError, match="found another order"):
        assert_paired({"AO": asked, "TO": dict(reversed(asked.items()))})
    with pytest.raises(ModalityError, match="item t2: expected the same context"):
        assert_paired({"AO": asked, "TO": {**asked, "t2": request(context("c"))}})
    with pytest.raises(ModalityError, match="item t1: expected the same context"):
        assert_paired({"AO": asked, "TO": {**asked, "t1": replace(asked["t1"], system="x")}})
