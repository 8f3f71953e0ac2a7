import pytest

from core.datasets.cutting import without_leaks
from core.turns import backchannels, context, is_backchannel, merge, patient_turns
from tests.core.datasets.spoken import said
from validation.schemas import validated
from validation.spoken import spoken_turns

ROLES = {"A": "therapist", "B": "patient"}


def told(turns):
    return [(t["speaker"], t["start_s"], t["end_s"], t["text"]) for t in turns.to_dict("records")]


def test_segments_4_99_s_apart_are_one_turn():
    turns = merge(said(("B", 0.0, 3.0, "I tried."), ("B", 7.99, 10.0, "I did not sleep.")))
    assert told(turns) == [("B", 0.0, 10.0, "I tried. I did not sleep.")]


@pytest.mark.parametrize("start", [8.0, 8.01])
def test_segments_5_s_or_5_01_s_apart_are_two(start):
    turns = merge(said(("B", 0.0, 3.0, "I tried."), ("B", start, 10.0, "I did not sleep.")))
    assert told(turns) == [("B", 0.0, 3.0, "I tried."), ("B", start, 10.0, "I did not sleep.")]


def test_another_speaker_in_between_keeps_them_apart():
    turns = merge(
        said(("B", 0.0, 2.0, "I tried."), ("A", 2.1, 2.5, "Yes."), ("B", 2.6, 4.0, "Twice."))
    )
    assert [t[0] for t in told(turns)] == ["B", "A", "B"]


def test_who_speaks_into_anothers_turn_overlaps_it_and_cuts_nothing():
    turns = merge(said(("B", 0.0, 6.0, "I lay awake all night."), ("A", 4.0, 5.0, "Of course.")))
    assert told(turns) == [
        ("B", 0.0, 6.0, "I lay awake all night."),
        ("A", 4.0, 5.0, "Of course."),
    ]


def test_a_change_of_speaker_within_a_segment_is_a_change_of_turn():
    words = said(("B", 0.0, 4.0, "I tried. How was it?"))
    words["speaker"] = ["B", "B", "A", "A", "A"]
    assert [t[3] for t in told(merge(words))] == ["I tried.", "How was it?"]


def test_a_segment_inside_an_earlier_one_does_not_shorten_the_turn():
    turns = merge(said(("B", 0.0, 6.0, "All night long."), ("B", 2.0, 3.0, "Yes.")))
    assert told(turns) == [("B", 0.0, 6.0, "All night long. Yes.")]


def test_turns_fit_their_schema():
    turns = merge(said(("A", 0.0, 2.0, "How are you?"), ("B", 2.5, 6.0, "Tired.")))
    assert list(validated(turns, spoken_turns(), "turns")["probability"]) == [0.5, 0.5]
    assert merge(said()).empty


def test_rules_keep_the_patients_long_turns_and_say_what_each_left():
    turns = merge(
        said(
            ("A", 0.0, 3.0, "How was the week?"),
            ("B", 3.5, 5.49, "It was long."),
            ("A", 6.0, 7.0, "I see."),
            ("B", 7.5, 9.5, "Yeah, yeah."),
            ("A", 10.0, 12.0, "Go on."),
            ("B", 12.5, 14.5, "I could not stop."),
            ("C", 15.0, 19.0, "Time is up, I'm afraid."),
        )
    )

    kept = patient_turns(turns, ROLES)

    assert list(kept.turns["text"]) == ["I could not stop."]
    assert [(rule.name, rule.before, rule.after) for rule in kept.rules] == [
        ("spoken by the patient", 7, 3),
        ("2 s or longer", 3, 2),
        ("more than a backchannel", 2, 1),
    ]


@pytest.mark.parametrize(
    "text", ["Yeah.", "Okay", "Mm-hmm.", "Uh-huh, uh-huh", "Yeah, yeah, yeah.", "...", ""]
)
def test_a_lone_backchannel(text):
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["Yeah, I know.", "Terrified.", "Okay, no.", "9", "Nein.", "да"])
def test_words_that_say_something(text):
    assert not is_backchannel(text)


def test_the_list_is_spelled_as_it_is_compared():
    assert {"yeah", "okay"} <= set(backchannels())
    assert all(one == one.lower() and is_backchannel(one) for one in backchannels())


SESSION = (
    ("A", 0.0, 3.0, "How was the week?"),
    ("B", 3.5, 6.0, "I lay awake until four and gave up."),
    ("A", 6.5, 7.0, "Mm-hmm."),
    ("B", 7.5, 9.5, "Then I called my sister about all of it."),
    ("A", 10.0, 12.0, "What did she say?"),
    ("B", 12.5, 19.0, "She said that I should have called before then."),
)


def test_a_context_is_the_three_turns_before_of_either_role():
    turns = merge(said(*SESSION))

    assert context(turns, ROLES, 5) == (
        "Therapist: Mm-hmm.\nPatient: Then I called my sister about all of it.\nTherapist: What did she say?"
    )
    assert context(turns, ROLES, 1) == "Therapist: How was the week?"
    assert context(turns, ROLES, 0) == ""


def test_no_context_holds_the_current_transcript():
    turns = merge(said(*SESSION))
    items = patient_turns(turns, ROLES).turns.assign(item_id="a", session_id="s")
    items["transcript"] = items["text"]
    items["context"] = [context(turns, ROLES, n) for n in items["turn_index"]]

    assert len(items) == 3
    assert without_leaks(items)[1] == []


def test_a_speaker_without_a_role_is_other_in_a_context():
    turns = merge(said(("C", 0.0, 3.0, "Welcome."), ("B", 3.5, 6.0, "Hello there.")))
    assert context(turns, ROLES, 1) == "Other: Welcome."
