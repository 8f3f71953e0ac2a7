"""The tasks: one interface, from items to requests to predictions to estimates."""

import inspect
import json
import math

import pandas as pd
import pytest

from core.modality import ModalityError, assert_paired
from core.protocol import Response, digest, read_requests, write_requests
from core.tasks import Task, TaskError, task, task_names
from validation import schemas

TURNS = pd.DataFrame(
    {
        "item_id": ["s1_0", "s1_1", "s2_0"],
        "session_id": ["s1", "s1", "s2"],
        "transcript": [
            "I'm fine.",
            "My hands were shaking and I could not breathe at all.",
            "It {was} 100% ok.",
        ],
        "context": ["", "Therapist: What happened then?", "Therapist: And\nPatient: Hm."],
        "label": [1, 5, 2],
    }
)
DIALOGUES = pd.DataFrame(
    {
        "item_id": ["dialogue-1", "dialogue-2", "dialogue-3", "dialogue-4"],
        "transcript": [
            f"Person1: You owe me, number {n}, and you know it well.\nPerson2: I do not."
            for n in range(4)
        ],
        "label": ["YES", "YES", "NO", "NO"],
    }
)
ITEMS = {"distress": TURNS, "manipulation": DIALOGUES}
CONDITIONS = ("AO", "AT", "TO")


def planned(name, condition, items=None, *, seed=0, **settings):
    items = ITEMS[name] if items is None else items
    clips = {item_id: digest(item_id) + ".wav" for item_id in items["item_id"]}
    return task(name).plan(
        items, condition, seed=seed, settings=settings, audio=clips, model_digest="m"
    )


def answered(name, texts_of):
    """Predictions from texts by condition; the label's own probability 0.9."""
    entries, responses = [], {}
    for condition, texts in texts_of.items():
        of_condition = planned(name, condition)
        entries += of_condition
        for entry, text in zip(of_condition, texts, strict=True):
            if text is not None:
                responses[entry.request.id] = Response(entry.request.id, "ok", text)
    return task(name).predict(entries, responses, ITEMS[name])


def figures(name, texts_of):
    estimates = task(name).score(answered(name, texts_of), resamples=200, seed=0)
    return {f"{e.metric}/{e.condition}": e for e in estimates}


@pytest.mark.parametrize("name", task_names())
def test_every_task_offers_the_interface_as_it_is_written(name):
    module = task(name)

    assert name == module.NAME
    for wanted in Task.__annotations__:
        assert hasattr(module, wanted)
    for method in (
        "check",
        "select",
        "prompts",
        "plan",
        "follow_up",
        "predict",
        "score",
        "report",
        "variants",
        "beyond",
        "notes",
    ):
        wanted = list(inspect.signature(getattr(Task, method)).parameters.values())[1:]
        found = list(inspect.signature(getattr(module, method)).parameters.values())
        assert [(p.name, p.kind) for p in found] == [(p.name, p.kind) for p in wanted]


def test_an_unknown_task_is_named_with_the_known_ones():
    with pytest.raises(TaskError, match="expected one of distress, manipulation, found 'mood'"):
        task("mood")


@pytest.mark.parametrize("name", task_names())
def test_the_three_conditions_ask_the_same_items_in_the_same_context(name):
    plans = {condition: planned(name, condition) for condition in CONDITIONS}

    assert_paired({c: {e.item_id: e.request for e in entries} for c, entries in plans.items()})
    ids = [entry.request.id for entries in plans.values() for entry in entries]
    assert len(set(ids)) == 3 * len(ITEMS[name])


@pytest.mark.parametrize("name", task_names())
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_request_holds_what_its_condition_allows_and_nothing_that_tells_the_answer(
    name, condition
):
    for entry, row in zip(planned(name, condition), ITEMS[name].to_dict("records"), strict=True):
        sent = json.dumps(entry.request.parts, ensure_ascii=False)
        spoken = json.dumps(row["transcript"], ensure_ascii=False)[1:-1]

        assert (spoken in sent) == (condition != "AO")
        assert (".wav" in sent) == (condition != "TO")
        assert (row["item_id"] in sent, row.get("session_id", "\0") in sent) == (False, False)


def test_the_clip_comes_before_the_words():
    first, *others = planned("distress", "AT")[0].request.parts

    assert set(first) == {"audio"}
    assert not any("audio" in part for part in others)


def test_the_transcript_only_request_reads_as_the_paper_has_it():
    request = planned("distress", "TO")[1].request
    text = "".join(part["text"] for part in request.parts)

    assert request.system.startswith("You are an expert in clinical psychology")
    assert (
        "Context from the conversation:\nTherapist: What happened then?\n\nPatient's current statement:\n\"My hands were"
        in text
    )
    assert text.endswith("Respond with ONLY a single number (1-5).")
    assert (request.temperature, request.choices["5"]) == (0.0, ("5", " 5"))


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_turn_without_context_says_so(blank):
    request = planned("distress", "AO", TURNS.head(1).assign(context=blank))[0].request

    assert {"text": "(no earlier turns)", "slot": "context"} in request.parts


def test_a_leaked_context_is_an_error_that_names_the_turn():
    leaking = TURNS.assign(context="Patient: " + TURNS["transcript"])

    with pytest.raises(ModalityError, match="item s1_1, AO: its transcript stands in the context"):
        planned("distress", "AO", leaking)


def test_an_item_without_a_clip_is_an_error_except_where_none_is_played():
    plan = task("distress").plan

    with pytest.raises(TaskError, match="item s1_0: expected a clip"):
        plan(TURNS, "AT", seed=0, settings={}, audio={}, model_digest="m")
    assert len(plan(TURNS, "TO", seed=0, settings={}, audio={}, model_digest="m")) == 3


@pytest.mark.parametrize("name", task_names())
def test_wrong_settings_and_conditions_end_with_a_sentence(name):
    with pytest.raises(TaskError, match="unknown setting shot"):
        planned(name, "TO", shot="4")
    with pytest.raises(
        TaskError, match="max_new_tokens: expected a whole number, 1 or more, found '0'"
    ):
        planned(name, "TO", max_new_tokens="0")
    with pytest.raises(TaskError, match="expected a condition"):
        planned(name, "TA")
    with pytest.raises(TaskError, match="unknown setting shot"):
        task(name).prompts({"shot": "4"})


@pytest.mark.parametrize("name", task_names())
def test_ids_change_with_what_decides_the_answer_and_with_nothing_else(name):
    ids = [entry.request.id for entry in planned(name, "TO")]

    assert [entry.request.id for entry in planned(name, "TO")] == ids
    assert {entry.request.id for entry in planned(name, "TO", max_new_tokens="9")}.isdisjoint(ids)
    assert {entry.request.id for entry in planned(name, "TO", seed=1)}.isdisjoint(ids)
    relabelled = ITEMS[name].assign(label=ITEMS[name]["label"].iloc[0])
    assert [entry.request.id for entry in planned(name, "TO", relabelled)] == ids


@pytest.mark.parametrize("name", task_names())
def test_requests_survive_the_trip_to_a_model(name, tmp_path):
    requests = [entry.request for entry in planned(name, "AT")]
    write_requests(tmp_path / "requests.jsonl", requests)

    assert read_requests(tmp_path / "requests.jsonl") == requests


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("distress", ["1", "I can't help with that.", None]),
        ("manipulation", ["A", "B. No", "maybe", None]),
    ],
)
def test_predictions_pass_their_schema_and_keep_every_item(name, texts):
    table = answered(name, {"AO": texts, "TO": texts})

    schema = schemas.predictions(task(name).LABELS, extra=task(name).COLUMNS)
    schemas.validated(table, schema, "predictions")
    assert len(table) == 2 * len(ITEMS[name])
    assert table["status"].tail(1).item() == "model_error"


def test_distress_figures_by_hand():
    # gold 1, 5, 2; AO answers 2, 5 and nothing: errors 1, 0; the unanswered 2 is charged 3.
    found = figures("distress", {"AO": ["2", "5", "no idea"], "TO": ["1", "3", "2"]})

    assert (found["mae/AO"].value, found["mae/AO"].n, found["mae/AO"].n_total) == (0.5, 2, 3)
    assert (found["mae_all/AO"].value, found["mae_all/AO"].n) == (pytest.approx(4 / 3), 3)
    assert found["a1/AO"].value == 1.0
    assert found["mae/TO"].value == pytest.approx(2 / 3)
    # both answered: errors 1, 0 against 0, 2
    assert (found["mae/AO-TO"].value, found["mae/AO-TO"].n) == (-0.5, 2)
    assert found["wilcoxon_p/AO-TO"].n_total == 3
    assert 0 <= found["mae/AO"].low <= 0.5 <= found["mae/AO"].high


def test_manipulation_figures_by_hand():
    found = figures(
        "manipulation", {"AT": ["A", "B", "B", "can't say"], "TO": ["A", "A", "A", "B"]}
    )

    assert (found["accuracy/AT"].value, found["accuracy/AT"].n) == (pytest.approx(2 / 3), 3)
    assert found["accuracy_all/AT"].value == 0.5
    assert (found["recall_yes/AT"].value, found["specificity/AT"].value) == (0.5, 1.0)
    # of the three both answered: right, wrong, right against right, right, wrong
    assert (found["accuracy/AT-TO"].value, found["accuracy/AT-TO"].n) == (0.0, 3)
    assert found["mcnemar_p/AT-TO"].value == 1.0


def test_the_area_under_the_curve_rests_on_the_probability_of_yes():
    entries = planned("manipulation", "TO")
    # p(YES) of 0.9 and 0.4 where gold is YES, 0.5 and 0.1 where it is NO: 3 of 4 pairs in order.
    shares = [0.9, 0.4, 0.5, 0.1]
    responses = {
        entry.request.id: Response(
            entry.request.id, "ok", "B", choice_logprobs={"YES": math.log(p), "NO": math.log(1 - p)}
        )
        for entry, p in zip(entries, shares, strict=True)
    }
    module = task("manipulation")
    table = module.predict(entries, responses, DIALOGUES)

    found = {e.metric: e for e in module.score(table, resamples=200, seed=0)}

    assert table["expected"].tolist() == pytest.approx(shares)
    assert found["auroc"].value == 0.75
    assert (found["auroc"].n, found["auroc"].n_total) == (4, 4)


@pytest.mark.parametrize("name", task_names())
def test_without_any_answer_every_figure_is_undefined_with_a_reason(name):
    nothing = [None] * len(ITEMS[name])

    found = figures(name, {"AO": nothing, "AT": nothing, "TO": nothing})

    over_answered = {k: e for k, e in found.items() if "_all/" not in k}
    assert all(math.isnan(e.value) and e.reason and e.n == 0 for e in over_answered.values())
    assert all(not math.isnan(e.value) for k, e in found.items() if "_all/" in k)


@pytest.mark.parametrize("name", task_names())
def test_a_run_of_three_conditions_fits_the_tracking_ui(name):
    answer = {"distress": "3", "manipulation": "A"}[name]
    found = figures(name, dict.fromkeys(CONDITIONS, [answer] * len(ITEMS[name])))

    # Each figure, eight counts a condition, and room for the ends of the first three metrics.
    assert len(found) + 24 + 18 <= 99


@pytest.mark.parametrize("name", task_names())
def test_one_condition_alone_has_no_pairs_and_equal_seeds_give_equal_figures(name):
    answer = {"distress": "3", "manipulation": "A"}[name]
    table = answered(name, {"TO": [answer] * len(ITEMS[name])})
    first, second = (task(name).score(table, resamples=100, seed=3) for _ in range(2))

    assert str(first) == str(second)
    assert {e.condition for e in first} == {"TO"}
