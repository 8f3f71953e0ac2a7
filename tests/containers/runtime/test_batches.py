"""Which requests share a forward pass."""

from __future__ import annotations

from containers.runtime.batches import plan_batches, sized
from containers.runtime.card import Budget
from core.protocol import Request

WIDE = Budget(items=100, audio_s=10_000, tokens=1_000_000)


def request(id: str, clip: str = "", **changes) -> Request:
    parts = ({"audio": clip},) if clip else ({"text": id},)
    return Request(
        **{"id": id, "system": None, "parts": parts, "choices": {"A": ("A",)}, **changes}
    )


def ids(batches) -> list[list[str]]:
    return [[entry.id for entry in batch] for batch in batches]


def lengths(**seconds: float) -> list:
    return [sized(request(clip, clip), {clip: length}) for clip, length in seconds.items()]


def test_the_longest_clips_come_first():
    assert ids(plan_batches(lengths(a=1, b=30, c=5), WIDE)) == [["b", "c", "a"]]


def test_padding_counts_against_the_budget():
    # Two clips beside one of 30 s are padded to 90 s; the short ones alone take 2 s.
    planned = plan_batches(lengths(a=1, b=30, c=1), Budget(items=9, audio_s=59, tokens=10**6))
    assert ids(planned) == [["b"], ["a", "c"]]


def test_a_clip_over_budget_is_a_batch_of_its_own():
    assert ids(plan_batches(lengths(a=600, b=1), Budget(audio_s=60))) == [["a"], ["b"]]


def test_no_batch_has_more_items_than_the_card_allows():
    many = [sized(request(str(n)), {}) for n in range(10)]
    assert [len(batch) for batch in plan_batches(many, Budget(items=4))] == [4, 4, 2]


def test_a_model_that_takes_one_prompt_at_a_time_gets_one():
    assert ids(plan_batches(lengths(a=1, b=2), WIDE, together=False)) == [["b"], ["a"]]


def test_questions_about_one_clip_are_neighbours():
    seconds = {"x": 3.0, "y": 3.0}
    entries = [
        sized(request(id, clip), seconds)
        for id, clip in (("x1", "x"), ("y1", "y"), ("x2", "x"), ("y2", "y"))
    ]
    assert ids(plan_batches(entries, Budget(items=2))) == [["x1", "x2"], ["y1", "y2"]]


def test_other_exemplars_are_another_batch():
    one = request("a", parts=({"text": "one"}, {"text": "?"}), prefix_parts=1)
    other = request("b", parts=({"text": "two"}, {"text": "?"}), prefix_parts=1)
    same = request("c", parts=({"text": "one"}, {"text": "!"}), prefix_parts=1)
    planned = ids(plan_batches([sized(r, {}) for r in (one, other, same)], WIDE))
    assert sorted(sorted(batch) for batch in planned) == [["a", "c"], ["b"]]


def test_free_text_and_labels_do_not_mix():
    planned = plan_batches([sized(request("a"), {}), sized(request("b", choices=None), {})], WIDE)
    assert ids(planned) == [["a"], ["b"]]


def test_the_plan_does_not_depend_on_the_order_of_the_requests():
    entries = lengths(a=1, b=7, c=7, d=3)
    assert ids(plan_batches(entries, WIDE)) == ids(plan_batches(entries[::-1], WIDE))
