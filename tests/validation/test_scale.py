import pytest

from validation.scale import ScaleError, scale_named


def test_each_study_has_its_scale_by_name():
    assert scale_named("nominal").labels == ("NO", "YES")
    assert scale_named("ordinal").numbers == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_levels_can_be_spelled_out():
    assert scale_named("ordinal", "0-3").labels == ("0", "1", "2", "3")
    assert scale_named("ordinal", "low, mid, high").numbers == (0.0, 1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", 1.0),
        ("NO", 0.0),
        ("1", 1.0),
        ("1.0", 1.0),
        ("2", None),
        ("0.5", None),
        ("inf", None),
    ],
)
def test_a_written_rating_is_a_level_or_nothing(text, value):
    assert scale_named("nominal").parse(text) == value


def test_an_interval_scale_has_ends_and_no_levels():
    scale = scale_named("interval", "0-10")
    assert (scale.parse("3.25"), scale.parse("10.5"), scale.parse("-inf")) == (3.25, None, None)


@pytest.mark.parametrize(
    ("levels", "said"),
    [("1-5", "an integer 1-5"), ("1,3,5", "one of 1, 3, 5"), ("no,yes", "one of 0 (no), 1 (yes)")],
)
def test_the_scale_says_what_it_expects(levels, said):
    assert scale_named("ordinal", levels).expected() == said


@pytest.mark.parametrize(
    ("kind", "levels", "message"),
    [
        ("ratio", "", "scale: expected one of nominal, ordinal, interval, found 'ratio'"),
        ("ordinal", "5", "two or more different levels"),
        ("ordinal", "1,1,2", "two or more different levels"),
        ("ordinal", "3,2,1", "the lowest first"),
        ("interval", "low,high", "an interval scale needs numbers"),
    ],
)
def test_a_scale_that_is_none_is_refused(kind, levels, message):
    with pytest.raises(ScaleError, match=message):
        scale_named(kind, levels)
