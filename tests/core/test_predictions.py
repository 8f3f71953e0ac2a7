"""A row for every item, with a prediction or with the reason why there is none."""

import math

import pandas as pd
import pytest

from core.parsing import rating
from core.predictions import distribution, predictions
from core.protocol import Request, Response
from core.tasks import PlannedRequest

LABELS = ("1", "2", "3", "4", "5")
ITEMS = pd.DataFrame({"item_id": ["t1"], "label": [4], "session_id": ["s1"]})
PLANNED = [PlannedRequest(Request("r1", None, (), None), "t1", "AO")]


def row_of(response):
    table = predictions(
        PLANNED,
        {"r1": response} if response else {},
        ITEMS,
        labels=LABELS,
        group="session_id",
        parse=rating,
        expected=lambda shares: sum(int(label) * share for label, share in shares.items()),
    )
    assert len(table) == 1
    return table.iloc[0]


def test_an_answer_is_its_level_with_all_that_was_measured():
    row = row_of(
        Response("r1", "ok", "4", audio_seconds=3.0, audio_seconds_used=3.0, latency_s=0.2)
    )

    assert (row["prediction"], row["gold"], row["status"]) == (4, 4, "ok")
    assert pd.isna(row["reason"])
    assert (row["seconds_given"], row["seconds_used"], row["latency_s"]) == (3.0, 3.0, 0.2)
    assert (row["group_id"], row["request_id"], row["text"]) == ("s1", "r1", "4")


def test_no_response_is_a_row_with_a_reason():
    row = row_of(None)

    assert pd.isna(row["prediction"])
    assert (row["status"], row["reason"]) == ("model_error", "no response")


@pytest.mark.parametrize("status", ["audio_error", "model_error", "timeout", "refused", "unparsed"])
def test_the_text_of_a_failure_is_never_read(status):
    row = row_of(Response("r1", status, "4", reason="why"))

    assert pd.isna(row["prediction"])
    assert (row["status"], row["reason"], row["text"]) == (status, "why", "4")


@pytest.mark.parametrize(
    ("text", "status"),
    [("I can't help with that.", "refused"), ("2 or 3", "unparsed"), ("", "unparsed")],
)
def test_an_answer_that_states_no_level_says_why(text, status):
    row = row_of(Response("r1", "ok", text))

    assert pd.isna(row["prediction"])
    assert row["status"] == status
    assert row["reason"]


def test_a_clip_heard_in_part_gives_no_prediction_but_keeps_its_distribution():
    row = row_of(
        Response(
            "r1",
            "truncated",
            "4",
            reason="used 30.0 s of 41.2 s of audio.",
            finish_reason="stop",
            choice_logprobs={"4": 0.0},
            audio_seconds=41.2,
            audio_seconds_used=30.0,
        )
    )

    assert pd.isna(row["prediction"])
    assert (row["status"], row["reason"]) == ("truncated", "used 30.0 s of 41.2 s of audio.")
    assert row["p_4"] == 1.0


def test_a_clip_heard_in_part_stays_so_when_the_text_was_cut_as_well():
    row = row_of(
        Response(
            "r1",
            "truncated",
            "4\n\nShe",
            finish_reason="length",
            audio_seconds=40,
            audio_seconds_used=30,
        )
    )

    assert row["status"] == "truncated"


def test_a_text_cut_behind_its_answer_is_an_answer():
    heard = {"audio_seconds": 9.0, "audio_seconds_used": 8.9}

    assert (
        row_of(Response("r1", "truncated", "4\n\nThe", finish_reason="length", **heard))[
            "prediction"
        ]
        == 4
    )
    assert (
        row_of(Response("r1", "ok", "4. The", finish_reason="length", **heard))["prediction"] == 4
    )


def test_a_text_cut_before_its_answer_is_truncated():
    row = row_of(Response("r1", "ok", "I would rate this", finish_reason="length"))

    assert pd.isna(row["prediction"])
    assert row["status"] == "truncated"


def test_the_distribution_is_made_to_sum_to_one_and_its_mean_kept():
    # Masses 0.1 and 0.3 of the first token: 1/4 and 3/4 of the labels, mean 3.75.
    logprobs = {"3": math.log(0.1), "4": math.log(0.3)}

    row = row_of(Response("r1", "ok", "4", choice_logprobs=logprobs, choice_mass=0.4))

    assert [row[f"p_{label}"] for label in LABELS] == pytest.approx([0, 0, 0.25, 0.75, 0])
    assert row["expected"] == pytest.approx(3.75)
    assert row["choice_mass"] == 0.4


def test_a_distribution_of_tiny_mass_is_still_one():
    found = distribution(Response("r1", "ok", choice_logprobs={"1": -745.0, "2": -745.0}), LABELS)

    assert found == pytest.approx({"1": 0.5, "2": 0.5, "3": 0, "4": 0, "5": 0})


def test_without_a_distribution_its_columns_are_empty():
    row = row_of(Response("r1", "ok", "4"))

    assert row[["expected", "choice_mass", "p_1", "p_5"]].isna().all()
    assert distribution(None, LABELS) == {}
    assert distribution(Response("r1", "ok", choice_logprobs={"other": -1.0}), LABELS) == {}


def test_nothing_planned_is_a_table_without_rows():
    table = predictions(
        [], {}, ITEMS, labels=LABELS, group="session_id", parse=rating, expected=len
    )

    assert len(table) == 0
    assert list(table.columns[:3]) == ["item_id", "prediction", "gold"]


def test_it_is_the_same_after_a_trip_through_parquet(tmp_path):
    table = predictions(
        PLANNED, {}, ITEMS, labels=LABELS, group="session_id", parse=rating, expected=len
    )
    table.to_parquet(tmp_path / "predictions.parquet")

    read = pd.read_parquet(tmp_path / "predictions.parquet")
    pd.testing.assert_frame_equal(read, table, check_dtype=False)
    assert read["prediction"].dtype == table["prediction"].dtype == "Int64"
