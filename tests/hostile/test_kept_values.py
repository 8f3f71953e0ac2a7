"""Values that once broke a reader or a parser, and values near whole ones, given again.

`tests/fuzz/targets.py` says what counts as an answer: a value, or the reader's own error
that names the file. The search itself is `python -m tests.fuzz.run`.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, give

ODD = [b"[", b'"', b"\0", b"\xff", b"\xed\xa0\x80", b"1e999", b"9" * 5000, b"NaN", b"null", b"{}"]
ODD += [b"..", b"/", b"\n", b",", b"=", b"", b"\xef\xbb\xbf", "\u202e".encode(), "😀".encode()]


@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_value_is_read_or_refused_by_name(target):
    for value in seeds(target):
        give(target, value)


@pytest.mark.parametrize("target", TARGETS)
@settings(
    max_examples=8, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data())
def test_a_whole_value_with_a_piece_of_it_changed_is_too(target, data):
    value = data.draw(st.sampled_from(seeds(target)))
    start = data.draw(st.integers(0, len(value)))
    end = data.draw(st.integers(start, min(len(value), start + 40)))
    piece = data.draw(st.sampled_from(ODD) | st.binary(max_size=8))

    give(target, value[:start] + piece + value[end:])
