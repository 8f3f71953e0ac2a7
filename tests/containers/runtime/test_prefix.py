"""What counts as shared, on keys alone."""

from __future__ import annotations

import numpy as np
import pytest

from containers.runtime.adapter import Clip, Prompt, Words

pytestmark = pytest.mark.models

PLACEHOLDER = 9


def keys(ids: list[int], *names: str) -> np.ndarray:
    """Keys of a prompt whose clips take two placeholders each."""
    from containers.runtime.language_model import Span
    from containers.runtime.prefix import position_keys

    places = np.flatnonzero(np.array(ids) == PLACEHOLDER)[::2]
    spans = [
        Span(int(place), int(place) + 2, Clip(name, "", np.zeros(1, np.float32)))
        for place, name in zip(places, names, strict=True)
    ]
    return position_keys(np.array(ids), spans)


def test_equal_placeholders_of_different_clips_are_not_shared():
    from containers.runtime.prefix import common_length

    ids = [1, 9, 9, 2, 3]
    assert common_length([keys(ids, "a.wav"), keys(ids, "b.wav")]) == 1
    assert common_length([keys(ids, "a.wav"), keys(ids, "a.wav")]) == 5


def test_what_is_shared_ends_where_any_prompt_differs():
    from containers.runtime.prefix import common_length

    assert common_length([keys([1, 2, 3, 4]), keys([1, 2, 3]), keys([1, 2, 5, 4])]) == 2


def test_the_rows_of_a_clip_have_keys_of_their_own():
    assert len(set(keys([9, 9], "a.wav").tolist())) == 2
    assert (keys([1, 9, 9], "a.wav")[1:] < 0).all()


def test_a_prefix_is_named_by_the_system_text_and_the_exemplars():
    from containers.runtime.prefix import prefix_name

    def prompt(system: str, *parts: str, shared: int) -> Prompt:
        said = tuple(Words(part) for part in parts)
        return Prompt("id", system, said, None, 1, 0.0, 1.0, 0, shared)

    name = prefix_name(prompt("s", "one", "target", shared=1))
    assert name == prefix_name(prompt("s", "one", "another target", shared=1))
    assert name != prefix_name(prompt("s", "two", "target", shared=1))
    assert name != prefix_name(prompt("other", "one", "target", shared=1))
