import pandas as pd
import pytest

from core.describing import DESCRIPTIONS, SCORES, descriptions, plan, scores
from core.modality import ModalityError
from core.prompts import template
from core.protocol import Response

LONG = "I lay awake until four and then I gave up."
ITEMS = pd.DataFrame(
    {
        "item_id": ["a", "b"],
        "context": ["Therapist: And then?", ""],
        "transcript": [LONG, "No."],
    }
)
CLIPS = {"a": "a" * 32 + ".wav", "b": "b" * 32 + ".wav"}


def planned(items=ITEMS, **changes):
    words = {"kind": DESCRIPTIONS, "runs": 3, "temperature": 1.0, "top_p": 0.9, "seed": 0}
    return plan(items, CLIPS, **{**words, "model_digest": "m", **changes})


def answers(runs, *texts, **fields):
    return {
        run.request.id: Response(run.request.id, "ok", text=text, **fields)
        for run, text in zip(runs, texts, strict=False)
    }


def test_each_turn_is_asked_three_times_with_seeds_of_their_own():
    runs = planned()

    assert [(run.item_id, run.number) for run in runs] == [
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("b", 1),
        ("b", 2),
        ("b", 3),
    ]
    assert len({run.request.seed for run in runs}) == len({run.request.id for run in runs}) == 6
    assert planned() == runs


def test_a_request_is_the_clip_and_the_papers_prompt_and_nothing_else():
    request = planned()[0].request

    assert request.system is None
    assert request.choices is None
    assert request.parts[0] == {"audio": CLIPS["a"]}
    text = "".join(part["text"] for part in request.parts[1:])
    assert text == template("ssr/describe").text.replace("{context}", "Therapist: And then?")
    assert LONG not in text


def test_a_turn_without_context_says_so():
    text = "".join(part.get("text", "") for part in planned()[3].request.parts)
    assert "Previous conversation:\n(no earlier turns)\n" in text


def test_a_context_that_holds_the_transcript_is_refused():
    with pytest.raises(ModalityError, match="item a, AO: its transcript stands in the context"):
        planned(ITEMS.assign(context=[f"Patient: {LONG}", ""]))


def test_answers_become_rows_and_failures_have_a_reason():
    runs = planned()
    given = answers(
        runs, " The patient feels calm.\n", "...", "I'm sorry, but I can't help with that."
    )
    given[runs[3].request.id] = Response(runs[3].request.id, "timeout", reason="too slow")
    given[runs[4].request.id] = Response(
        runs[4].request.id, "truncated", text="The patient feels", finish_reason="length"
    )

    table = descriptions(runs, given, "voxtral")

    assert table["description"][0] == "The patient feels calm."
    assert table["description"][1:].isna().all()
    assert list(table["status"]) == [
        "ok",
        "unparsed",
        "refused",
        "timeout",
        "truncated",
        "model_error",
    ]
    assert table["reason"][1:].notna().all()


def test_what_a_model_thought_is_no_description():
    runs = planned()[:1]
    told = descriptions(runs, answers(runs, "<think>Level 4?</think>The patient feels sad."), "m")
    assert list(told["description"]) == ["The patient feels sad."]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3", "no words in '3'"),
        ("Rating: 3", "a level, not a description: 'Rating: 3'"),
        ("The rating is 4.", "a level, not a description: 'The rating is 4.'"),
    ],
)
def test_a_level_is_no_description(text, reason):
    """Its nearest anchor would be a label that nobody gave."""
    runs = planned(runs=1)
    table = descriptions(runs, answers(runs, text, "Distressed."), "m")

    assert table["status"].to_list() == ["unparsed", "ok"]
    assert table["reason"][0] == reason
    assert table["description"].isna().to_list() == [True, False]


def test_a_description_may_hold_a_number():
    runs = planned(runs=1)
    text = "The patient sounds 3 years older than he is, and weary of it all."
    table = descriptions(runs, answers(runs, text, text), "m")

    assert table["status"].to_list() == ["ok", "ok"]


def test_scores_are_read_or_empty():
    runs = planned(kind=SCORES)

    table = scores(runs, answers(runs, "4", "I'd say 3.", "Between 2 and 3", "Calm."))

    assert table["score"].to_list()[:2] == [4, 3]
    assert table["score"][2:].isna().all()
    assert "Respond with ONLY a single number" in runs[0].request.parts[-1]["text"]
