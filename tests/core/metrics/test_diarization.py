import math

import pytest

from core.metrics.diarization import diarization_error, recovered
from core.words import Stretch

TWO = [Stretch(0.0, 4.0, "patient"), Stretch(5.0, 10.0, "therapist")]


def test_the_same_stretches_under_other_names_are_no_error():
    found = diarization_error(TWO, [Stretch(0.0, 4.0, "S1"), Stretch(5.0, 10.0, "S0")])

    assert found.rate == 0
    assert found.mapping == {"S1": "patient", "S0": "therapist"}


def test_missed_false_and_confused_seconds_add_up():
    # Of 9 s: 1 s missed at the start, 0.5 s heard in the pause, 2 s given to the other.
    found = diarization_error(
        TWO, [Stretch(1.0, 4.5, "S1"), Stretch(5.0, 7.0, "S1"), Stretch(7.0, 10.0, "S0")]
    )

    assert (found.missed_s, found.false_alarm_s, found.confused_s) == pytest.approx((1.0, 0.5, 2.0))
    assert found.rate == pytest.approx(3.5 / 9)


def test_two_who_speak_at_once_count_twice():
    both = [Stretch(0.0, 4.0, "a"), Stretch(2.0, 3.0, "b")]

    assert diarization_error(both, [Stretch(0.0, 4.0, "x")]).rate == pytest.approx(1 / 5)
    assert diarization_error(both, both).total_s == pytest.approx(5.0)


def test_a_collar_forgives_what_is_near_a_boundary_of_the_reference():
    # 0.2 s late at one end, 0.5 s at another; of 9 s the collars take 0.25 s at each of 4 ends.
    found = [Stretch(0.2, 4.0, "S1"), Stretch(5.5, 10.0, "S0")]

    assert diarization_error(TWO, found).rate == pytest.approx(0.7 / 9)
    near = diarization_error(TWO, found, collar_s=0.25)
    assert (near.missed_s, near.total_s) == pytest.approx((0.25, 8.0))


def test_where_two_speak_can_be_left_out():
    both = [Stretch(0.0, 4.0, "a"), Stretch(2.0, 3.0, "b")]
    found = diarization_error(both, [Stretch(0.0, 4.0, "x")], skip_overlap=True)

    assert (found.rate, found.total_s) == pytest.approx((0.0, 3.0))


def test_one_speaker_found_for_two_is_right_for_the_longer():
    assert diarization_error(TWO, [Stretch(0.0, 10.0, "x")]).rate == pytest.approx((4 + 1) / 9)


def test_nothing_found_is_all_missed_and_no_reference_is_undefined():
    assert diarization_error(TWO, []).rate == 1
    assert math.isnan(diarization_error([], TWO).rate)


def test_a_turn_is_recovered_when_both_ends_are_near():
    turns = [(1.0, 4.0), (6.0, 9.0)]

    assert recovered(turns, [(1.2, 4.3), (6.0, 9.4)], 0.3) == 0.5
    assert math.isnan(recovered([], turns, 0.3))
