import pytest

from core.speech.engine import speakable, turn_key
from tests.core.speech.tones import Hummer


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("You can't -- not now.", "You can't — not now."),
        ("It's  <u>mine</u>,\nnot yours.", "It's mine, not yours."),
        ("*sighs* Fine.", "sighs Fine."),
        ("“Don’t,” he said", '"Don\'t," he said'),
        ("Oh my gosh\ufffdI feel so upset...", "Oh my gosh I feel so upset..."),
        ("...", ""),
        ("?!", ""),
        ("  ", ""),
    ],
)
def test_what_is_read_aloud_is_the_words(written, spoken):
    assert speakable(written) == spoken


def test_a_key_changes_with_everything_that_changes_the_sound():
    engine, faster, newer = Hummer(), Hummer(), Hummer()
    faster.settings = {"pitch": 2.0}
    newer.model = "two"

    keys = {
        turn_key(engine, "Hello.", "a"),
        turn_key(engine, "Hello!", "a"),
        turn_key(engine, "Hello.", "b"),
        turn_key(faster, "Hello.", "a"),
        turn_key(newer, "Hello.", "a"),
    }

    assert len(keys) == 5


def test_spacing_that_is_not_heard_does_not_change_the_key():
    assert turn_key(Hummer(), "Hello  there.", "a") == turn_key(Hummer(), "Hello there.\n", "a")
