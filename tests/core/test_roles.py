import math

import pandas as pd
import pytest

from core.datasets.roleplay import read_sessions
from core.roles import roles
from tests.conftest import ROOT

SESSIONS = read_sessions(ROOT / "demo" / "distress")


def turns(*lines):
    return pd.DataFrame(lines, columns=["speaker", "text"])


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.session_id)
def test_the_demo_sessions_are_told_right(session):
    names = {"therapist": "SPEAKER_01", "patient": "SPEAKER_00"}

    found = roles(turns(*((names[turn.role], turn.text) for turn in session.turns)))

    assert found.of == {"SPEAKER_00": "patient", "SPEAKER_01": "therapist"}
    assert found.confidence > 0.9


def test_who_asks_is_the_therapist_and_the_cues_say_so():
    found = roles(
        turns(
            ("X", "I could not sleep, I just lay there and my heart was racing."),
            ("Y", "What went through your mind?"),
            ("X", "I felt that I can't do this, I'm so tired of my boss."),
            ("Y", "And how did that feel, in your body?"),
        )
    )

    assert found.of == {"X": "patient", "Y": "therapist"}
    assert found.cues["Y"]["questions"] > 0 > found.cues["X"]["pronouns"]


def test_too_little_to_go_by_is_refused_with_its_confidence():
    found = roles(turns(("X", "Good morning."), ("Y", "Good morning to you.")))

    assert found.of == {}
    assert 0.5 <= found.confidence < 0.9
    assert "has a confidence of 0." in found.refused


def test_the_names_of_the_speakers_do_not_matter():
    lines = [(t.role, t.text) for t in SESSIONS[0].turns]
    renamed = [("A" if role == "therapist" else "B", text) for role, text in lines]
    mirrored = [("B" if role == "therapist" else "A", text) for role, text in lines]
    assert roles(turns(*renamed)).confidence == pytest.approx(roles(turns(*mirrored)).confidence)


def test_one_speaker_is_reported_and_refused():
    found = roles(turns(("X", "Welcome to this channel."), ("X", "Today we talk of panic.")))

    assert found.of == {}
    assert math.isnan(found.confidence)
    assert "one speaker" in found.notes
    assert found.refused.startswith("expected two speakers, found 1")


def test_an_announcer_is_other_and_reported():
    lines = [(turn.role, turn.text) for turn in SESSIONS[0].turns]

    found = roles(turns(("announcer", "Part one."), *lines))

    assert found.of == {"announcer": "other", "patient": "patient", "therapist": "therapist"}
    assert any(note.startswith("3 speakers, words: announcer") for note in found.notes)
    assert "hardly heard, so neither therapist nor patient: announcer" in found.notes


def test_a_role_that_nobody_speaks_like_is_reported():
    """Two therapists who talk about a case: the likelier patient is still no patient."""
    found = roles(
        turns(
            ("X", "What do you notice about your own reaction? How do you feel in the session?"),
            ("X", "What would you try? Can you describe your next question?"),
            ("Y", "How did you ask about the evidence? Sounds like you and your client did well."),
        )
    )

    assert any("speaks more like a therapist" in note for note in found.notes)


def test_no_turns_are_refused():
    assert roles(turns()).refused.startswith("expected two speakers, found 0")
