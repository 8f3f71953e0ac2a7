import numpy as np
import pytest

from validation.ratings import RatingsError, item_id, of_group, read_ratings
from validation.scale import scale_named

NAN = np.nan


def read(tmp_path, text, kind="nominal", levels="", **options):
    path = tmp_path / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    return read_ratings(path, scale_named(kind, levels), **options)


def test_a_wide_table_gives_a_column_a_rater(tmp_path):
    found = read(tmp_path, "ID,A,B\nd1,1,0\nd2,,1\n")
    assert (found.items, found.raters) == (("d1", "d2"), ("A", "B"))
    np.testing.assert_array_equal(found.values, [[1, 0], [NAN, 1]])


def test_a_long_table_gives_the_same(tmp_path):
    found = read(tmp_path, "item,rater,rating\nd1,A,1\nd1,B,0\nd2,B,YES\n")
    assert (found.items, found.raters) == (("d1", "d2"), ("A", "B"))
    np.testing.assert_array_equal(found.values, [[1, 0], [NAN, 1]])


@pytest.mark.parametrize(
    ("word", "value"), [("YES", 1), ("no", 0), ("1.0", 1), (" 0 ", 0), ("NA", NAN), ("", NAN)]
)
def test_spellings_of_a_binary_rating(tmp_path, word, value):
    found = read(tmp_path, f"ID,A,B\nd1,{word},1\n")
    given = found.values[0, 0] if found.raters[0] == "A" else NAN
    assert given == value or (np.isnan(given) and np.isnan(value))


def test_a_rating_off_the_scale_is_refused_with_its_row(tmp_path):
    with pytest.raises(RatingsError) as caught:
        read(tmp_path, "ID,A,B\nd1,1,0\nd2,2,1\nd3,0,1\n")
    assert str(caught.value) == (
        "ratings.csv, row 3 (item d2), A: expected one of 0 (NO), 1 (YES), found '2'. "
        "Fix the rows; if the scale is another one, name its levels."
    )


def test_a_rating_between_two_levels_is_not_rounded(tmp_path):
    with pytest.raises(RatingsError, match=r"row 2 .*: expected an integer 1-5, found '3.7'"):
        read(tmp_path, "ID,A,B\nt1,3.7,4\nt2,3,4\n", "ordinal")


def test_an_interval_scale_takes_fractions_within_its_ends(tmp_path):
    assert read(tmp_path, "ID,A,B\nt1,3.7,4\n", "interval").values[0, 0] == 3.7
    with pytest.raises(RatingsError, match=r"expected a number from 1 to 5, found '5\.5'"):
        read(tmp_path, "ID,A,B\nt1,5.5,4\n", "interval")


def test_many_faults_are_counted(tmp_path):
    rows = "".join(f"d{i},7,1\n" for i in range(9))
    with pytest.raises(RatingsError, match="And 6 more"):
        read(tmp_path, "ID,A,B\n" + rows)


def test_a_float_id_is_read_as_the_number_it_was(tmp_path):
    found = read(tmp_path, "ID,A,B\n85514414.0,1,0\n85514416.0,1,1\n")
    assert found.items == ("85514414", "85514416")
    assert any("such as 85514414.0, were read as 85514414" in note for note in found.notes)


@pytest.mark.parametrize("name", ["1.5", "v2.0", "d1", "85514414"])
def test_other_ids_stay_as_written(name):
    assert item_id(name) == name


def test_the_same_rating_twice_counts_once_and_is_stated(tmp_path):
    found = read(tmp_path, "item,rater,rating\nd1,A,1\nd1,A,1\nd1,B,0\n")
    np.testing.assert_array_equal(found.values, [[1, 0]])
    assert "1 repeated ratings" in found.notes[0]


def test_two_different_ratings_of_one_rater_are_refused_with_both_rows(tmp_path):
    with pytest.raises(
        RatingsError, match=r"row 4 \(item d1\), rating: A gave this item 1 in row 2"
    ):
        read(tmp_path, "item,rater,rating\nd1,A,1\nd1,B,0\nd1,A,0\n")


def test_two_rows_of_one_item_meet(tmp_path):
    found = read(tmp_path, "ID,A,B\nd1,1,\nd1.0,0,1\nd1,,0\n")
    np.testing.assert_array_equal(found.values, [[1, 0], [0, 1]])


def test_what_is_no_rating_is_left_out_and_stated(tmp_path):
    found = read(tmp_path, "ID,A,B,C,Dialogue\nd1,1,0,,Hello\nd2,,,,Bye\n")
    assert (found.items, found.raters) == (("d1",), ("A", "B"))
    assert found.notes == (
        "Left out column 'Dialogue': its cells are text, not ratings.",
        "Dropped raters without a single rating: C.",
        "Dropped 1 items without a single rating: d2.",
    )


def test_one_bad_cell_does_not_turn_a_rater_into_a_comment(tmp_path):
    with pytest.raises(RatingsError, match=r"row 4 \(item d3\), B: .* found 'maybe'"):
        read(tmp_path, "ID,A,B\nd1,1,0\nd2,0,0\nd3,1,maybe\n")


def test_a_reference_column_is_no_rater(tmp_path):
    found = read(tmp_path, "ID,MentalManip,A,B\nd1,1.0,1,0\nd2,,0,0\n")
    assert (found.raters, found.reference_name) == (("A", "B"), "MentalManip")
    np.testing.assert_array_equal(found.reference, [1, NAN])
    assert "1 items have no reference label in MentalManip." in found.notes


def test_any_column_can_be_named_as_the_reference_or_none(tmp_path):
    text = "ID,gold,A,B\nd1,1,1,0\n"
    assert read(tmp_path, text, reference="B").raters == ("gold", "A")
    assert read(tmp_path, text, reference="none").raters == ("gold", "A", "B")
    with pytest.raises(RatingsError, match="no column 'truth'; found ID, gold, A, B"):
        read(tmp_path, text, reference="truth")


def test_a_long_table_may_carry_its_reference(tmp_path):
    found = read(tmp_path, "item,rater,label,gold\nd1,A,1,0\nd1,B,0,0\n")
    np.testing.assert_array_equal(found.reference, [0])
    with pytest.raises(RatingsError, match=r"row 3 .*gold: 1 differs from 0"):
        read(tmp_path, "item,rater,label,gold\nd1,A,1,0\nd1,B,0,1\n")


def test_a_row_without_an_id_or_a_rater_is_refused(tmp_path):
    with pytest.raises(RatingsError, match="row 3, ID: expected a name, found nothing"):
        read(tmp_path, "ID,A,B\nd1,1,0\n,1,0\n")
    with pytest.raises(RatingsError, match="row 2, rater: expected a name, found nothing"):
        read(tmp_path, "item,rater,rating\nd1,,1\n")


def test_a_table_without_any_rating_has_no_items(tmp_path):
    found = read(tmp_path, "ID,A,B\nd1,,\nd2,NA,nan\n")
    assert found.values.shape == (0, 0)
    assert "Dropped 2 items without a single rating: d1, d2." in found.notes


def test_labels_of_ones_own(tmp_path):
    found = read(tmp_path, "ID,A,B\nd1,calm,angry\n", "nominal", "calm,sad,angry")
    np.testing.assert_array_equal(found.values, [[0, 2]])


def test_a_table_without_ids_is_refused_and_not_read_by_its_first_rater(tmp_path):
    with pytest.raises(
        RatingsError, match="no column of item ids, and the first one, 'A', repeats"
    ):
        read(tmp_path, "A,B,C\n1,1,0\n0,0,0\n1,1,1\n")


def test_a_group_is_letters_or_names_with_commas(tmp_path):
    found = read(tmp_path, "ID,A,B,C\nd1,1,0,1\n")
    assert of_group(found, "CA").raters == ("C", "A")
    np.testing.assert_array_equal(of_group(found, "C, B").values, [[1, 0]])
    assert of_group(found, "") is found
    assert of_group(found, "AB").notes[-1] == "Left out raters not in the group: C."


def test_a_group_of_strangers_or_of_one_is_refused(tmp_path):
    found = read(tmp_path, "ID,A,B\nd1,1,0\n")
    with pytest.raises(
        RatingsError, match=r"X not among the raters of ratings\.csv, which are A, B"
    ):
        of_group(found, "AX")
    with pytest.raises(RatingsError, match="two or more raters"):
        of_group(found, "A")
