"""Options of a task: which words fit."""

import pytest

from core.task_settings import number, text, whole, word


@pytest.mark.parametrize(
    ("setting", "fits", "fails"),
    [
        (whole("4", ""), ["0", "12"], ["-1", "1.0", "", "four", "²"]),
        (whole("1", "", least=1), ["1"], ["0"]),
        (number("0.5", "", low=0, high=1), ["0", "0.25", "1"], ["1.1", "nan", "-0.1", "half"]),
        (word("", ("a", "b")), ["a", "b"], ["c", "A", ""]),
        (text("", ""), ["", "any"], []),
    ],
)
def test_a_value_fits_or_has_a_fault_that_names_the_option(setting, fits, fails):
    assert [setting.fault("option", said) for said in fits] == [None] * len(fits)
    for said in fails:
        assert setting.fault("option", said).startswith("option: expected ")
        assert repr(said) in setting.fault("option", said)


def test_the_first_word_is_the_default():
    assert word("", ("a", "b")).default == "a"
