import pytest
import soundfile

from core.datasets.clips import find_clips, import_clips
from core.datasets.dialogue import Dialogue
from tests.core.speech.tones import tone

TURNS = (("Person1", "You're late."), ("Person2", "I know."))


def dialogue(dialogue_id, turns=TURNS):
    return Dialogue(dialogue_id, manipulative=False, techniques=(), turns=turns)


def clip(folder, name, seconds=1.0):
    soundfile.write(folder / name, tone(seconds), 16_000, format="WAV")
    return folder / name


@pytest.fixture
def given(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


def test_a_clip_is_copied_byte_for_byte_under_its_name(given, tmp_path):
    original = clip(given, "7_composed_amanda_mark.mp3")

    files, left_out = find_clips(given)
    ((taken,), unfit) = import_clips(files, [dialogue("7")], tmp_path / "set")

    assert (tmp_path / "set" / taken.audio).read_bytes() == original.read_bytes()
    assert (taken.voices, taken.seconds) == (("amanda", "mark"), 1.0)
    assert left_out == unfit == []


def test_clips_come_in_the_order_of_the_dialogues(given, tmp_path):
    for name in ("1", "2", "3"):
        clip(given, f"{name}_composed_amanda_mark.wav")

    taken, _ = import_clips(
        find_clips(given)[0], [dialogue("3"), dialogue("9"), dialogue("1")], tmp_path / "set"
    )

    assert [clip.dialogue.dialogue_id for clip in taken] == ["3", "1"]


def test_what_does_not_fit_is_left_out_with_its_reason(given, tmp_path):
    clip(given, "1_composed_amanda_mark.wav")
    clip(given, "1_composed_mark_amanda.wav")
    clip(given, "2_composed_amanda.wav")
    clip(given, "4_composed_amanda_mark.wav")
    (given / "3_composed_amanda_mark.mp3").write_text("<html>404</html>")
    (given / "notes.txt").write_text("...")

    files, unnamed = find_clips(given)
    taken, unfit = import_clips(files, [dialogue(n) for n in "123"], tmp_path / "set")

    assert [clip.audio for clip in taken] == ["audio/1_composed_amanda_mark.wav"]
    assert [one.what for one in unnamed] == ["notes.txt"]
    reasons = {one.what: one.reason for one in unfit}
    assert reasons["1_composed_mark_amanda.wav"].startswith(
        "dialogue 1 has audio/1_composed_amanda"
    )
    assert reasons["2_composed_amanda.wav"] == "1 voices for 2 speakers"
    assert reasons["4_composed_amanda_mark.wav"] == "no dialogue 4 among those asked for"
    assert "3_composed_amanda_mark.mp3" in reasons
    assert sorted(path.name for path in (tmp_path / "set" / "audio").iterdir()) == [
        "1_composed_amanda_mark.wav"
    ]
