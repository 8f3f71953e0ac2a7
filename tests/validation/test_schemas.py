"""Every faulty row is reported at once, with its number, column, value and rule."""

import numpy as np
import pandas as pd
import pytest

from core.protocol import Request, Response
from validation.schemas import (
    TableError,
    as_table,
    dialogues,
    predictions,
    ratings,
    requests,
    responses,
    turns,
    validated,
)

CLIP = "0" * 32 + ".wav"


def a_turn(**changed):
    plain = {
        "item_id": "t1",
        "session_id": "s",
        "turn_index": 0,
        "audio": "audio/a.wav",
        "transcript": "I can't sleep.",
        "context": "",
        "label": 4,
    }
    return {**plain, **changed}


def a_dialogue(**changed):
    plain = {"item_id": "d1", "audio": "audio/a.wav", "transcript": "Person1: Hi.", "label": "YES"}
    return {**plain, **changed}


def a_prediction(**changed):
    plain = {
        "item_id": "t1",
        "prediction": 4,
        "gold": 3,
        "condition": "AO",
        "status": "ok",
        "reason": None,
        "expected": 3.8,
        "choice_mass": 0.97,
        "p_1": 0.0,
        "p_2": 0.1,
        "p_3": 0.1,
        "p_4": 0.7,
        "p_5": 0.1,
        "text": "4",
        "group_id": "s",
        "seconds_given": 3.0,
        "seconds_used": 3.0,
        "latency_s": 0.1,
        "request_id": "r",
    }
    return {**plain, **changed}


UNANSWERED = dict.fromkeys(
    ("prediction", "expected", "choice_mass", "p_1", "p_2", "p_3", "p_4", "p_5", "latency_s")
)


def a_request(**changed):
    plain = {
        "id": "r",
        "system": None,
        "parts": ({"audio": CLIP}, {"text": "Rate."}),
        "choices": None,
    }
    return Request(**{**plain, **changed})


def table(*rows):
    return pd.DataFrame(list(rows))


def faults(frame, schema):
    """What is wrong, as (row, column, expected, found)."""
    with pytest.raises(TableError) as refused:
        validated(frame, schema, "turns.csv")
    return [(f.row, f.column, f.expected, f.found) for f in refused.value.faults]


def five_levels():
    return predictions(("1", "2", "3", "4", "5"))


def test_a_table_that_keeps_its_schema_comes_back_whole():
    frame = table(a_turn(), a_turn(item_id="t2", turn_index=1, label=1))

    kept = validated(frame, turns(), "turns.csv")

    pd.testing.assert_frame_equal(kept, frame, check_dtype=False)
    assert kept["label"].dtype == np.int64


def test_the_error_is_the_file_the_row_the_column_the_rule_and_the_value():
    frame = table(a_turn(), a_turn(item_id="t2", turn_index=1, label="3.7"))

    with pytest.raises(TableError) as refused:
        validated(frame, turns(), "turns.csv")

    assert str(refused.value) == (
        'turns.csv, row 2, label: expected an integer 1-5, found "3.7".\n'
        "Correct these and run again."
    )


def test_all_faults_of_all_rows_are_reported_in_one_go():
    frame = table(
        a_turn(label=9, audio="../a.wav"),
        a_turn(label=3.7, start_s=2.0, end_s=1.0),
        a_turn(item_id=" ", label=1, turn_index=-1),
    )

    assert faults(frame, turns()) == [
        (1, "audio", "a path inside the folder", '"../a.wav"'),
        (1, "label", "an integer 1-5", "9.0"),
        (2, "end_s", "a time after start_s", "1.0"),
        (2, "item_id", "a value no row above has", '"t1"'),
        (2, "label", "an integer 1-5", "3.7"),
        (2, "turn_index", "a value no row above has within its session_id", "0"),
        (3, "item_id", "text that is not blank", '" "'),
        (3, "turn_index", "an integer, 0 or more", "-1"),
    ]


def test_a_long_list_is_cut_and_counted():
    frame = table(*(a_turn(item_id=f"t{i}", turn_index=i, label=6) for i in range(50)))

    with pytest.raises(TableError) as refused:
        validated(frame, turns(), "turns.csv")

    assert len(refused.value.faults) == 50
    assert str(refused.value).splitlines()[-2:] == [
        "turns.csv: and 30 more.",
        "Correct these and run again.",
    ]


def test_rows_are_numbered_as_they_stand_whatever_the_index():
    frame = table(a_turn(), a_turn(item_id="t2", turn_index=1, label=0))
    frame.index = [7, 7]

    assert faults(frame, turns()) == [(2, "label", "an integer 1-5", "0")]


def test_unknown_and_missing_columns_do_not_hide_faulty_rows():
    frame = table(a_turn(lable=3, label=6)).drop(columns="context")

    assert faults(frame, turns()) == [
        (None, "context", "a column of this name", "none"),
        (
            None,
            "lable",
            "no column but item_id, session_id, turn_index, audio, audio_sha256, start_s, end_s, "
            "seconds, transcript, context, label, speaker, gender, voice",
            "this one too",
        ),
        (1, "label", "an integer 1-5", "6"),
    ]


def test_optional_columns_may_be_there_with_gaps():
    frame = table(
        a_turn(speaker="Patient", voice=None, seconds=2.5, start_s=None, end_s=None),
        a_turn(item_id="t2", turn_index=1, speaker=None, seconds=None, start_s=1, end_s=2),
    )

    kept = validated(frame, turns(), "turns.csv")

    assert kept["start_s"].dtype == np.float64


def test_a_column_that_is_there_twice():
    frame = table(a_turn())
    frame = pd.concat([frame, frame[["label"]]], axis=1)

    assert faults(frame, turns()) == [(None, "label", "a name of its own", "it twice")]


def test_a_table_without_rows_is_no_dataset():
    assert faults(table(a_turn()).iloc[:0], turns()) == [(None, None, "rows", "none")]


@pytest.mark.parametrize("label", [0, 6, 3.7, -1, "3", "", None, True, float("inf"), [3]])
def test_only_a_whole_number_on_the_scale_is_a_label(label):
    frame = table(a_turn(label=label))

    assert [(row, column) for row, column, *_ in faults(frame, turns())] == [(1, "label")]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "int8", "object"])
def test_a_whole_number_is_one_in_any_dtype(dtype):
    frame = table(a_turn()).astype({"label": dtype})

    assert validated(frame, turns(), "t")["label"].dtype == np.int64


@pytest.mark.parametrize("dtype", ["object", "string", "str"])
def test_text_is_text_in_any_dtype(dtype):
    frame = table(a_turn(), a_turn(item_id="t2", turn_index=1)).astype({"item_id": dtype})

    assert list(validated(frame, turns(), "t")["item_id"]) == ["t1", "t2"]


def test_audio_may_be_missing_only_where_that_was_said():
    frame = table(a_turn(audio=None))

    assert faults(frame, turns()) == [(1, "audio", "a path inside the folder", "nothing")]
    assert len(validated(frame, turns(audio=False), "t")) == 1


def test_a_turn_has_audio_or_words():
    frame = table(a_turn(audio=None, transcript=" "))

    found = faults(frame, turns(audio=False))

    assert found == [(1, "transcript", "words, since there is no audio", '" "')]
    assert len(validated(table(a_turn(transcript="")), turns(), "t")) == 1


def test_a_hash_needs_a_file_and_64_digits():
    frame = table(
        a_turn(audio=None, audio_sha256="a" * 64),
        a_turn(item_id="t2", turn_index=1, audio_sha256="xyz"),
    )

    assert faults(frame, turns(audio=False)) == [
        (1, "audio_sha256", "nothing where there is no audio", f'"{"a" * 58}…'),
        (2, "audio_sha256", "64 hex digits", '"xyz"'),
    ]


def test_a_dialogue_is_labelled_yes_or_no():
    frame = table(
        a_dialogue(), a_dialogue(item_id="d2", label="Yes"), a_dialogue(item_id="d3", label=1)
    )

    assert faults(frame, dialogues()) == [
        (2, "label", "one of YES, NO", '"Yes"'),
        (3, "label", "one of YES, NO", "1"),
    ]
    optional = a_dialogue(techniques="Accusation", vulnerability=None, voices="af_heart,am_puck")
    assert len(validated(table(optional), dialogues(), "d")) == 1


def test_a_prediction_is_a_label_or_a_status_with_a_reason():
    good = table(
        a_prediction(),
        a_prediction(condition="TO", status="refused", reason="declined", **UNANSWERED),
    )
    assert validated(good, five_levels(), "p")["expected"].dtype == np.float64

    bad = table(
        a_prediction(prediction=None),
        a_prediction(condition="AT", status="unparsed", reason="no digit"),
        a_prediction(condition="TO", status="timeout", reason=None, **UNANSWERED),
    )
    rule = "a label where the status is ok, and nothing elsewhere"
    assert faults(bad, five_levels()) == [
        (1, "prediction", rule, "nothing"),
        (2, "prediction", rule, "4.0"),
        (3, "reason", "a reason, since the status is not ok", "nothing"),
    ]


@pytest.mark.parametrize(
    ("changed", "column", "expected"),
    [
        ({"prediction": 3.5}, "prediction", "one of 1, 2, 3, 4, 5"),
        ({"prediction": 6}, "prediction", "one of 1, 2, 3, 4, 5"),
        ({"gold": None}, "gold", "one of 1, 2, 3, 4, 5"),
        ({"condition": "A0"}, "condition", "one of AO, AT, TO"),
        ({"p_3": 1.2}, "p_3", "a number 0-1"),
        ({"choice_mass": -0.1}, "choice_mass", "a number 0-1"),
        ({"expected": float("inf")}, "expected", "a finite number"),
        ({"latency_s": -1}, "latency_s", "a finite number, 0 or more"),
        ({"group_id": ""}, "group_id", "text that is not blank"),
    ],
)
def test_a_prediction_keeps_its_ranges(changed, column, expected):
    found = faults(table(a_prediction(**changed)), five_levels())

    assert [(row, name, rule) for row, name, rule, _ in found] == [(1, column, expected)]


def test_a_status_that_is_none_of_the_protocol():
    found = faults(table(a_prediction(status="failed", reason="x", **UNANSWERED)), five_levels())

    assert [(row, column) for row, column, *_ in found] == [(1, "status")]
    assert found[0][2].startswith("one of ok, refused, unparsed")


def test_an_item_has_one_prediction_a_condition():
    frame = table(a_prediction(), a_prediction(condition="TO"), a_prediction())

    assert faults(frame, five_levels()) == [
        (3, "condition", "a value no row above has within its item_id", '"AO"')
    ]


def test_words_are_predictions_too_and_a_task_may_add_columns():
    row = {name: cell for name, cell in a_prediction().items() if not name.startswith("p_")}
    row |= {"prediction": "NO", "gold": "YES", "p_YES": 0.4, "p_NO": 0.6, "quote": "you made me"}

    assert len(validated(table(row), predictions(("YES", "NO"), extra=["quote"]), "p")) == 1
    assert faults(table(row), predictions(("YES", "NO")))[0][1] == "quote"


def test_requests_are_a_table_without_room_for_a_label():
    frame = as_table([a_request(), a_request(id="q", choices={"1": ("1", " 1")})], Request)

    assert len(validated(frame, requests(), "requests.jsonl")) == 2
    assert faults(frame.assign(gold=3), requests())[0][:2] == (None, "gold")


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"parts": ({"audio": "session-12-severe.wav"},)}, "parts"),
        ({"parts": ({"audio": CLIP, "text": "x"},)}, "parts"),
        ({"parts": ({"label": "5"},)}, "parts"),
        ({"choices": {}}, "choices"),
        ({"choices": {"1": ()}}, "choices"),
        ({"top_p": 0.0}, "top_p"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": float("nan")}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"prefix_parts": 3}, "prefix_parts"),
        ({"schema": 2}, "schema"),
    ],
)
def test_a_faulty_request_is_named(changed, column):
    frame = as_table([a_request(), a_request(id="q", **changed)], Request)

    assert [(row, name) for row, name, *_ in faults(frame, requests())] == [(2, column)]


def test_a_response_is_ok_or_has_a_reason():
    frame = as_table(
        [
            Response("a", "ok", choice_logprobs={"1": -0.1}, choice_mass=1.0),
            Response("b", "timeout"),
            Response("a", "ok", choice_logprobs={"1": 0.5}, choice_mass=1.5, latency_s=-1),
        ],
        Response,
    )

    assert [(row, name) for row, name, *_ in faults(frame, responses())] == [
        (2, "reason"),
        (3, "choice_logprobs"),
        (3, "choice_mass"),
        (3, "id"),
        (3, "latency_s"),
    ]


def test_no_responses_yet_is_a_table_too():
    assert len(validated(as_table([], Response), responses(), "responses.jsonl")) == 0


def test_token_counts_with_gaps_stay_whole_numbers():
    frame = as_table([Response("a", "ok", prompt_tokens=7), Response("b", "ok")], Response)

    kept = validated(frame, responses(), "responses.jsonl")["prompt_tokens"]

    assert kept.dtype == "Int64"
    assert kept[0] == 7


def test_a_rater_rates_an_item_once_and_on_the_scale():
    frame = pd.DataFrame(
        [("a", "r1", 5), ("a", "r2", 6), ("a", "r1", 4), ("b", None, 3)],
        columns=["item", "rater", "rating"],
    )

    assert faults(frame, ratings(1, 5)) == [
        (2, "rating", "an integer 1-5", "6"),
        (3, "rater", "a value no row above has within its item", '"r1"'),
        (4, "rater", "text that is not blank", "nothing"),
    ]


def test_the_table_given_is_not_changed():
    frame = table(a_turn()).astype({"label": "float64"})

    validated(frame, turns(), "t")

    assert frame["label"].dtype == np.float64
