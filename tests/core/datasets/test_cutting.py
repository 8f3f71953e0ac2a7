import pandas as pd
import pytest
import soundfile

from core.audio import RATE_HZ
from core.datasets.cutting import TO_CUT, cut, odd_times, without_leaks
from tests.core.datasets.releases import write_recording

LONG = "I lay awake until four and then I gave up."


def turns(*spans, **columns):
    frame = pd.DataFrame(
        [
            (f"001_{n:03}", "001", n, "I could not sleep.", "", 3, start, end)
            for n, (start, end) in enumerate(spans, start=1)
        ],
        columns=list(TO_CUT),
    )
    return frame.assign(**columns)


@pytest.fixture
def recordings(tmp_path):
    return {"001": write_recording(tmp_path / "recordings" / "001.wav", 10.0)}


def test_a_clip_is_the_recording_from_start_to_end(recordings, tmp_path):
    made = cut(turns((1.0, 4.0), (5.5, 7.75)), recordings, tmp_path)

    whole, _ = soundfile.read(recordings["001"])
    clip, rate_hz = soundfile.read(tmp_path / "audio" / "001_002.flac")
    assert rate_hz == RATE_HZ
    assert len(clip) == 2.25 * RATE_HZ
    assert clip == pytest.approx(whole[int(5.5 * RATE_HZ) : int(7.75 * RATE_HZ)], abs=1e-4)
    assert made.rows[1]["seconds"] == 2.25
    assert made.rows[1]["audio"] == "audio/001_002.flac"
    assert made.findings == ()


def test_any_rate_and_format_becomes_16_khz_mono(tmp_path):
    path = write_recording(tmp_path / "001.ogg", 6.0, rate_hz=44_100)

    cut(turns((1.0, 4.0)), {"001": path}, tmp_path)

    found = soundfile.info(tmp_path / "audio" / "001_001.flac")
    assert (found.samplerate, found.channels, found.frames) == (16_000, 1, 48_000)


def test_cutting_again_gives_the_same_bytes(recordings, tmp_path):
    cut(turns((1.0, 4.0)), recordings, tmp_path)
    first = (tmp_path / "audio" / "001_001.flac").read_bytes()
    cut(turns((1.0, 4.0)), recordings, tmp_path)
    assert (tmp_path / "audio" / "001_001.flac").read_bytes() == first


def test_padding_goes_as_far_as_the_recording(recordings, tmp_path):
    made = cut(turns((0.2, 3.0), (7.0, 9.9)), recordings, tmp_path, padding_s=0.5)

    spans = [(row["clip_start_s"], row["clip_end_s"]) for row in made.times]
    assert spans == [(0.0, 3.5), (6.5, 10.0)]
    assert made.times[0]["start_s"] == 0.2


@pytest.mark.parametrize(
    ("span", "kind", "kept"),
    [
        ((8.0, 10.04), None, True),  # some frames, as codecs differ
        ((7.0, 10.2), "past_the_end", True),  # 94 % of the turn is there
        ((7.0, 10.5), "past_the_end", False),  # 86 %
        ((12.0, 15.0), "past_the_end", False),
        ((3.0, 3.0), "zero_length", False),
        ((4.0, 3.0), "zero_length", False),
        ((9.97, 10.04), "zero_length", False),  # 30 ms of it are there
    ],
)
def test_times_at_and_past_the_end(recordings, tmp_path, span, kind, kept):
    made = cut(turns(span), recordings, tmp_path)

    assert [finding.kind for finding in made.findings] == ([kind] if kind else [])
    assert len(made.rows) == kept
    assert all(finding.kept == kept for finding in made.findings)


def test_a_file_that_is_no_sound_costs_its_own_turns_only(recordings, tmp_path):
    page = tmp_path / "002.mp3"
    page.write_text("<html>Not here</html>")
    both = pd.concat(
        [
            turns((1.0, 4.0)),
            turns((1.0, 4.0), (5.0, 8.0)).assign(session_id="002", item_id=["a", "b"]),
        ]
    )

    made = cut(both, {**recordings, "002": page}, tmp_path)

    (finding,) = made.findings
    assert (finding.kind, finding.session_id, finding.turns, finding.kept) == (
        "unreadable",
        "002",
        2,
        False,
    )
    assert [row["item_id"] for row in made.rows] == ["001_001"]


def test_a_silent_clip_is_kept_and_said_to_be_silent(tmp_path):
    path = write_recording(tmp_path / "001.wav", 6.0, amplitude=1e-4)

    made = cut(turns((1.0, 4.0)), {"001": path}, tmp_path)

    assert [(f.kind, f.kept) for f in made.findings] == [("silent", True)]


def test_overlaps_order_and_short_turns_are_said():
    found = odd_times(turns((1.0, 4.0), (3.5, 6.0), (2.0, 3.2), (8.0, 9.0)))

    assert [(f.item_id, f.kind, f.found) for f in found] == [
        ("001_003", "out_of_order", "starts at 2 s, before 001_002"),
        ("001_003", "overlapping", "1.20 s are also in 001_001"),
        ("001_002", "overlapping", "0.50 s are also in 001_001"),
        ("001_003", "short", "1.20 s"),
        ("001_004", "short", "1.00 s"),
    ]
    assert all(f.kept for f in found)


def test_touching_turns_do_not_overlap():
    assert odd_times(turns((1.0, 4.0), (4.0, 6.0))) == []


def test_a_context_line_with_the_turns_own_words_is_taken_out():
    rows = turns((1.0, 4.0), transcript=LONG, context=f"Therapist: And then?\nPatient: {LONG}")

    kept, (finding,) = without_leaks(rows)

    assert kept["context"][0] == "Therapist: And then?"
    assert (finding.kind, finding.found, finding.kept) == (
        "context_holds_transcript",
        "1 of 2 lines taken out",
        True,
    )


def test_a_leak_over_several_lines_leaves_the_turn_out():
    broken = LONG.replace(" four ", " four\n")

    kept, (finding,) = without_leaks(turns((1.0, 4.0), transcript=LONG, context=broken))

    assert kept.empty
    assert not finding.kept


def test_short_answers_that_were_given_before_are_no_leak():
    rows = turns((1.0, 4.0), transcript="I don't know.", context="Patient: I don't know.")
    assert without_leaks(rows)[1] == []
