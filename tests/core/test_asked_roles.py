import math

import pandas as pd
import pytest

from core.asked_roles import answer_schema, question, speakers, told

TURNS = pd.DataFrame(
    [("S1", "How was the week?"), ("S0", "Long. {context}"), ("S1", "I see.")],
    columns=["speaker", "text"],
)
NAMES = ["S0", "S1"]
RIGHT = {"S0": "patient", "S1": "therapist"}


def test_a_question_names_the_speakers_and_holds_every_turn():
    asked = question(TURNS)

    assert "Speakers: S0, S1\n" in asked
    assert "S1: How was the week?\nS0: Long. {context}\nS1: I see.\n" in asked
    assert speakers(TURNS) == NAMES


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT,
        '{"S0": "patient", "S1": "therapist"}',
        '```json\n{"S0": "patient", "S1": "therapist"}\n```',
        'Here you are: {"S0": "patient", "S1": "therapist"}.',
    ],
)
def test_an_answer_gives_the_roles(answer):
    found = told(answer, NAMES, "a model")

    assert found.of == RIGHT
    assert (found.refused, found.by) == (None, "a model")
    assert math.isnan(found.confidence)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the answer is no JSON object"),
        ("S0 is the patient.", "the answer is no JSON object"),
        ('{"S0": "patient", ', "the answer is no JSON object"),
        ({"S0": "patient"}, "the answer gives S1 no role"),
        ({"S0": "client", "S1": "therapist"}, "the answer says S0 is 'client'"),
        ({"S0": ["patient"], "S1": "therapist"}, "the answer says S0 is"),
        ({"S0": "other", "S1": "therapist"}, "nobody is the patient"),
        ({"S0": "other", "S1": "other"}, "nobody is the therapist or the patient"),
    ],
)
def test_an_answer_without_roles_is_refused_with_the_reason(answer, reason):
    found = told(answer, NAMES, "a model")

    assert found.of == {}
    assert found.refused.startswith(reason)


def test_more_speakers_and_two_of_a_role_are_reported():
    found = told({**RIGHT, "S2": "patient"}, [*NAMES, "S2"], "a model")

    assert found.notes == ("2 speakers are patient", "3 speakers")


def test_a_service_can_be_held_to_the_speakers_and_roles():
    schema = answer_schema(NAMES)

    assert schema["required"] == NAMES
    assert schema["properties"]["S0"]["enum"] == ["therapist", "patient", "other"]
