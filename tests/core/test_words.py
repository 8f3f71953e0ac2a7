import numpy as np
import pytest

from core.words import (
    Stretch,
    as_table,
    in_speech,
    of_whisperx,
    over_silence,
    reaching,
    settle,
    trimmed,
    with_speakers,
)

NO_TIME = float("nan")


def word(text, start=NO_TIME, end=NO_TIME, speaker=None, segment=0, within=(0.0, 10.0), of=None):
    return {
        "segment": segment,
        "segment_start_s": within[0],
        "segment_end_s": within[1],
        "segment_speaker": of,
        "word": text,
        "start_s": start,
        "end_s": end,
        "speaker": speaker,
        "probability": 0.9,
    }


def times(settled):
    return list(zip(settled.words["start_s"], settled.words["end_s"], strict=True))


def test_words_without_times_share_the_room_between_their_neighbours():
    settled = settle(
        as_table(
            [
                word("in", 1.0, 2.0, "A"),
                word("20", speaker="A"),
                word("14", speaker="A"),
                word("it", 3.0, 3.5, "A"),
            ]
        )
    )

    assert times(settled) == [(1.0, 2.0), (2.0, 2.5), (2.5, 3.0), (3.0, 3.5)]
    assert settled.without_times == 2


def test_at_the_ends_the_segment_is_the_neighbour():
    settled = settle(
        as_table(
            [
                word("7", within=(2.0, 6.0)),
                word("of", 3.0, 4.0, within=(2.0, 6.0)),
                word("9", within=(2.0, 6.0)),
            ]
        )
    )

    assert times(settled) == [(2.0, 3.0), (3.0, 4.0), (4.0, 6.0)]


def test_a_segment_of_untimed_words_is_filled_evenly_and_no_other_touched():
    settled = settle(
        as_table(
            [
                word("one", segment=0, within=(0.0, 2.0)),
                word("two", segment=0, within=(0.0, 2.0)),
                word("three", segment=1, within=(5.0, 6.0)),
            ]
        )
    )

    assert times(settled) == [(0.0, 1.0), (1.0, 2.0), (5.0, 6.0)]


def test_no_room_between_neighbours_gives_no_length_and_no_disorder():
    settled = settle(as_table([word("a", 1.0, 3.0), word("5"), word("b", 2.5, 4.0)]))

    assert times(settled)[1] == (3.0, 3.0)


def test_an_end_before_its_start_is_no_time():
    settled = settle(as_table([word("a", 1.0, 2.0), word("b", 9.0, 4.0), word("c", 3.0, 4.0)]))

    assert times(settled)[1] == (2.0, 3.0)
    assert settled.without_times == 1


def test_a_word_without_a_speaker_has_its_segments():
    settled = settle(as_table([word("a", speaker="A", of="B"), word("b", of="B")]))

    assert list(settled.words["speaker"]) == ["A", "B"]
    assert settled.without_speaker == 1


def test_in_a_segment_without_a_speaker_it_has_the_nearest_words():
    settled = settle(
        as_table([word("a", speaker="A"), word("b"), word("c"), word("d", speaker="D")])
    )

    assert list(settled.words["speaker"]) == ["A", "A", "D", "D"]


def test_a_segment_nobody_was_heard_to_say_is_unknown():
    assert list(settle(as_table([word("a")])).words["speaker"]) == ["unknown"]


def test_no_words_stay_no_words():
    assert settle(as_table([])).words.empty


def test_a_word_is_of_the_stretch_that_holds_most_of_it():
    words = as_table([word("well", 1.0, 2.0)])

    heard = with_speakers(words, [Stretch(0.0, 1.3, "A"), Stretch(1.3, 4.0, "B")])

    assert list(heard["speaker"]) == ["B"]


def test_a_long_stretch_does_not_claim_the_short_one_it_covers():
    """A says a sentence of ten seconds in which B says yes."""
    words = as_table([word("so", 1.0, 2.0), word("yes", 4.0, 4.4), word("then", 6.0, 7.0)])

    heard = with_speakers(words, [Stretch(0.0, 10.0, "A"), Stretch(3.9, 4.6, "B")])

    assert list(heard["speaker"]) == ["A", "B", "A"]
    assert list(heard["segment_speaker"]) == ["A", "A", "A"]


def test_words_after_the_last_stretch_are_not_its():
    words = as_table([word("hello", 1.0, 2.0), word("subscribe", 8.0, 9.0)])

    assert list(with_speakers(words, [Stretch(0.5, 2.5, "A")])["speaker"]) == ["A", None]


def test_text_over_silence_is_found():
    words = as_table(
        [word("yes", 1.0, 1.5), word("soft", 2.1, 2.3), word("Thanks", 5.0, 6.0), word("7")]
    )

    assert list(over_silence(words, [(0.8, 2.0)])) == [False, False, True, False]


@pytest.mark.parametrize("count", [1, 5])
def test_settled_words_always_have_times_in_order(count):
    words = settle(as_table([word(str(n), within=(1.0, 2.0)) for n in range(count)])).words

    assert np.all(np.diff(words["start_s"]) > 0)
    assert np.all(words["end_s"] >= words["start_s"])


def test_a_word_is_cut_to_where_somebody_speaks():
    words = as_table(
        [word("So", 1.0, 4.9), word("yes", 5.0, 5.5), word("far", 8.0, 9.0), word("7")]
    )

    cut = trimmed(words, [(0.5, 0.9), (4.5, 6.0)])

    assert list(cut["start_s"])[:3] == [4.5, 5.0, 8.0]
    assert list(cut["end_s"])[:3] == [4.9, 5.5, 9.0]
    assert np.isnan(cut["start_s"][3])


def test_stretches_end_where_the_voice_does_and_keep_a_breath():
    found = in_speech(
        [Stretch(0.0, 5.0, "A"), Stretch(5.0, 9.0, "B")],
        [(0.2, 2.0), (2.4, 4.0), (5.6, 7.0), (8.0, 8.5)],
    )

    assert found == (
        Stretch(0.2, 4.0, "A"),
        Stretch(5.6, 7.0, "B"),
        Stretch(8.0, 8.5, "B"),
    )


def test_stretches_that_overlap_keep_their_overlap():
    both = [Stretch(0.0, 4.0, "A"), Stretch(2.0, 3.0, "B")]
    assert in_speech(both, [(0.0, 4.0)]) == tuple(both)


def test_the_first_and_last_word_reach_to_the_ends_of_their_stretch():
    words = as_table(
        [
            word("Too", 1.3, 1.5, "A"),
            word("quiet.", 1.5, 1.8, "A"),
            word("Yes.", 5.0, 5.2, "B"),
            word("7", speaker="A"),
        ]
    )

    reached = reaching(words, [Stretch(1.0, 2.0, "A"), Stretch(4.0, 5.5, "B"), Stretch(8, 9, "A")])

    assert list(reached["start_s"])[:3] == [1.0, 1.5, 5.0]  # a second before "Yes." is too much
    assert list(reached["end_s"])[:3] == [1.5, 2.0, 5.5]
    assert np.isnan(reached["start_s"][3])


WHISPERX = {
    "segments": [
        {
            "start": 0.5,
            "end": 3.0,
            "text": " I paid 20 pounds.",
            "speaker": "SPEAKER_00",
            "words": [
                {"word": "I", "start": 0.5, "end": 0.6, "score": 0.9, "speaker": "SPEAKER_00"},
                {"word": "paid", "start": 0.7, "end": 1.0, "score": 0.8, "speaker": "SPEAKER_00"},
                {"word": "20"},
                {
                    "word": "pounds.",
                    "start": 2.0,
                    "end": 3.0,
                    "score": 0.7,
                    "speaker": "SPEAKER_01",
                },
            ],
        },
        {"start": 4.0, "end": 5.0, "text": " Oh.", "words": [{"word": "Oh."}]},
    ],
    "word_segments": [],
}


def test_whisperxs_result_becomes_a_table_of_words():
    settled = settle(of_whisperx(WHISPERX))

    assert list(settled.words["word"]) == ["I", "paid", "20", "pounds.", "Oh."]
    assert times(settled)[2] == (1.0, 2.0)
    assert times(settled)[4] == (4.0, 5.0)
    assert list(settled.words["speaker"])[2:] == ["SPEAKER_00", "SPEAKER_01", "unknown"]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ([], "expected an object with segments"),
        ({"text": "I paid."}, "expected an object with segments"),
        (
            {"segments": [{"start": 0, "end": 1, "text": "I paid."}]},
            "segment 0: expected .* aligned",
        ),
        ({"segments": [{"start": None, "end": 1, "words": []}]}, "segment 0: expected start"),
    ],
)
def test_another_result_is_refused(result, said):
    with pytest.raises(ValueError, match=said):
        of_whisperx(result)
