import pytest

from core.datasets.dialogue import Dialogue
from core.speech.engine import AccountError, SpeechError
from core.speech.rendering import cast, clips, jobs, missing, speak, unspoken
from core.speech.voices import voice_pool
from tests.core.speech.tones import Hummer


def dialogue(dialogue_id, *texts):
    turns = tuple((f"Person{1 + i % 2}", text) for i, text in enumerate(texts))
    return Dialogue(dialogue_id, manipulative=False, techniques=(), turns=turns)


DIALOGUES = [
    dialogue("1", "You were late.", "I know that."),
    dialogue("2", "Are you coming?", "", "Answer me.", "..."),
    dialogue("3", "I miss you all.", "And I miss you."),
]


@pytest.fixture
def casting():
    return cast(DIALOGUES, voice_pool("elevenlabs"), seed=0)


class Breaking(Hummer):
    """Raises an error when it is asked for the n-th time."""

    def __init__(self, error, at):
        super().__init__()
        self.error, self.at = error, at

    def speak(self, text, voice):
        if len(self.asked) + 1 == self.at:
            self.at = None
            raise self.error
        return super().speak(text, voice)


@pytest.mark.parametrize("workers", [1, 4])
def test_an_unchanged_rebuild_asks_the_engine_for_nothing(casting, tmp_path, workers):
    engine = Hummer()
    asked = jobs(DIALOGUES, casting)

    first = speak(engine, asked, tmp_path, workers)
    again = speak(engine, asked, tmp_path, workers)

    assert (first.spoken, first.kept) == (6, 0)
    assert (again.spoken, again.kept) == (0, 6)
    assert len(engine.asked) == 6


def test_a_changed_line_speaks_that_line_only(casting, tmp_path):
    engine = Hummer()
    speak(engine, jobs(DIALOGUES, casting), tmp_path)
    changed = [dialogue("1", "You were so late.", "I know that."), *DIALOGUES[1:]]

    result = speak(engine, jobs(changed, casting), tmp_path)

    assert (result.spoken, engine.asked[-1][0]) == (1, "You were so late.")


def test_an_interrupted_build_goes_on_with_the_same_voices(casting, tmp_path):
    asked = jobs(DIALOGUES, casting)
    with pytest.raises(KeyboardInterrupt):
        speak(Breaking(KeyboardInterrupt(), at=4), asked, tmp_path)
    engine = Hummer()

    speak(engine, jobs(DIALOGUES, cast(DIALOGUES, voice_pool("elevenlabs"), seed=0)), tmp_path)

    assert len(engine.asked) == 3
    assert missing(engine, asked, tmp_path) == []


def test_a_turn_that_fails_leaves_its_dialogue_out_by_name(casting, tmp_path):
    engine = Breaking(SpeechError("no sound"), at=1)

    result = speak(engine, jobs(DIALOGUES, casting), tmp_path)

    composed = [d.dialogue_id for d, _ in clips(engine, DIALOGUES, casting, tmp_path)]
    assert composed == ["2", "3"]
    assert unspoken(engine, DIALOGUES[0], casting, tmp_path, result) == "no sound"
    assert unspoken(engine, DIALOGUES[1], casting, tmp_path, result) is None


def test_a_used_up_quota_stops_asking_and_says_so(casting, tmp_path):
    engine = Breaking(AccountError("quota used up"), at=3)

    result = speak(engine, jobs(DIALOGUES, casting), tmp_path)

    assert (result.spoken, len(engine.asked), result.stopped) == (2, 2, "quota used up")
    assert unspoken(engine, DIALOGUES[2], casting, tmp_path, result) == "quota used up"


def test_empty_turns_are_composed_as_pauses_in_their_place(casting, tmp_path):
    engine = Hummer()
    speak(engine, jobs(DIALOGUES, casting), tmp_path)

    clip = next(c for d, c in clips(engine, DIALOGUES, casting, tmp_path) if d.dialogue_id == "2")

    assert [turn.text for turn in clip.turns] == ["Are you coming?", "", "Answer me.", "..."]
    assert [round(t.end_s - t.start_s, 3) for t in (clip.turns[1], clip.turns[3])] == [0.5, 0.5]


def test_an_empty_turn_of_nobody_needs_no_voice(tmp_path):
    engine = Hummer()
    odd = Dialogue("9", False, (), (("", ""), ("Person1", "Hello there.")))
    casting = cast([odd], voice_pool("elevenlabs"), seed=0)
    speak(engine, jobs([odd], casting), tmp_path)

    ((_, clip),) = clips(engine, [odd], casting, tmp_path)

    assert [turn.voice for turn in clip.turns] == ["", casting["9"]["Person1"].name]
