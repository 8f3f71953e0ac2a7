import pandas as pd

from core.audio import RATE_HZ
from core.datasets.misheard import misheard
from tests.core.datasets.releases import write_recording

SAID = {
    "a": "I lay awake until four and then I gave up.",
    "b": "My sister called and I did not answer her.",
    "c": "Yes, no.",
}


def found(tmp_path, heard):
    """Each clip has its own length, by which the stand-in for Whisper knows it."""
    rows = []
    for seconds, (item_id, transcript) in enumerate(SAID.items(), start=1):
        write_recording(tmp_path / f"{item_id}.wav", float(seconds))
        rows.append(
            {
                "item_id": item_id,
                "session_id": "001",
                "audio": f"{item_id}.wav",
                "transcript": transcript,
            }
        )
    names = list(SAID)
    return misheard(
        tmp_path, pd.DataFrame(rows), lambda samples: heard[names[len(samples) // RATE_HZ - 1]]
    )


def test_clips_that_say_what_is_written_are_no_finding(tmp_path):
    assert found(tmp_path, {**SAID, "a": "I lay awake till four and then gave up"}) == []


def test_a_clip_that_says_another_turn_is_listed_with_it(tmp_path):
    (finding,) = found(tmp_path, {**SAID, "a": SAID["b"]})

    assert (finding.item_id, finding.kind, finding.kept) == ("a", "heard_otherwise", True)
    assert finding.found.endswith("which is what b says")


def test_two_words_are_too_few_to_judge_by(tmp_path):
    assert found(tmp_path, {**SAID, "c": "Guess so."}) == []
