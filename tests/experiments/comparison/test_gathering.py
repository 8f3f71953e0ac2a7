import pandas as pd
import pytest

from benchmarks.compare import synthetic_predictions
from core.stats.paired import UnequalItemsError
from experiments.comparison import distress
from experiments.comparison.asked import Asked
from experiments.comparison.gathering import REPORT_TAG, GatheringError, gather
from experiments.comparison.report import report_of
from experiments.tracking import Record, tracked_run, write


def test_each_condition_comes_from_the_latest_complete_run_that_has_it(client, add):
    add("gemma4", dataset="latest", number=5)
    whole = add("gemma4", dataset="latest", number=1)
    audio = add("gemma4", dataset="latest", number=2, conditions=("AO",))
    add("gemma4", dataset="latest", number=3, limit="5")

    found = gather(client, "distress", dataset="latest")

    assert {c: run.id for (_, c), run in found.behind.items()} == {
        "AO": audio,
        "AT": whole,
        "TO": whole,
    }
    assert list(found.runs) == ["gemma4"]
    assert "2 runs with the same settings" in found.notes[0]


def test_runs_of_one_model_that_differ_are_two_rows_named_by_the_difference(client, add):
    add("gemma4", dataset="precisions", precision="bf16", conditions=("AT", "TO"))
    add("gemma4", dataset="precisions", precision="int8", conditions=("AO",))

    found = gather(client, "distress", dataset="precisions")

    assert sorted(found.predictions) == [
        ("gemma4 (precision bf16)", "AT"),
        ("gemma4 (precision bf16)", "TO"),
        ("gemma4 (precision int8)", "AO"),
    ]


def test_two_versions_of_an_adapter_are_two_rows(client, add):
    for condition, card in (("AO", "a" * 64), ("TO", "b" * 64)):
        add("gemma4", dataset="adapters", card=card, conditions=(condition,))

    found = gather(client, "distress", dataset="adapters")

    assert sorted(found.predictions) == [
        ("gemma4 (card aaaaaaaaaaaa…)", "AO"),
        ("gemma4 (card bbbbbbbbbbbb…)", "TO"),
    ]
    assert found.notes == ()


def test_a_report_is_never_itself_gathered(client, add):
    only = add("gemma4", dataset="own")
    tags = {REPORT_TAG: "compare", "task": "distress", "model": "gemma4"}
    parameters = {"undertone.dataset": "own", "undertone.dataset_hash": "5" * 64}
    with tracked_run("compare/distress") as run:
        write(run, Record("compare", parameters=parameters, tags=tags))

    found = gather(client, "distress", dataset="own")

    assert [run.id for run in found.runs["gemma4"]] == [only]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dataset_hash", "7" * 64, r"differ in dataset hash .* 77777.*: voxtral \(runs="),
        (
            "prompts",
            "distress/system:000000000000,distress/ao:123456789abc",
            r"differ in prompts .* distress/ao:123456789abc: voxtral",
        ),
        ("max_new_tokens", "32", r"differ in max_new_tokens .* 32: voxtral"),
    ],
)
def test_runs_that_may_not_be_compared_are_refused_with_the_difference(
    client, add, name, value, said
):
    add("gemma4", dataset=f"differs in {name}", conditions=("TO",))
    add("voxtral", dataset=f"differs in {name}", conditions=("TO",), **{name: value})

    with pytest.raises(GatheringError, match=said):
        gather(client, "distress", dataset=f"differs in {name}")


def test_other_prompts_can_be_compared_when_that_is_the_question(client, add):
    ids = [
        add("gemma4", dataset="prompts", prompts=f"distress/ao:{at}", conditions=("AO",))
        for at in "12"
    ]
    with pytest.raises(GatheringError, match="allow=prompts"):
        gather(client, "distress", ids=ids)
    # The template is what sets the two rows apart, and names them.
    found = gather(client, "distress", ids=ids, allow=("prompts",))

    assert sorted(model for model, _ in found.predictions) == [
        "gemma4 (prompts distress/ao:1)",
        "gemma4 (prompts distress/ao:2)",
    ]


def test_unequal_items_are_named(client, add):
    short = synthetic_predictions(40, 1)
    ids = [
        add("gemma4", dataset="items"),
        add("voxtral", dataset="items", predictions=short[short["item_id"] != "turn-00007"]),
    ]
    found = gather(client, "distress", ids=ids)

    with pytest.raises(UnequalItemsError, match=r"voxtral.*lacks 1 items \(turn-00007\)"):
        distress.cells_of(found)
    with pytest.raises(UnequalItemsError, match=f"voxtral · AO is {ids[1][:8]}.*-P runs="):
        report_of(found, Asked(resamples=2))


def test_a_choice_between_datasets_is_asked_for(client, add):
    add("gemma4", dataset="one of two", conditions=("TO",))
    add("gemma4", dataset="two of two", conditions=("TO",))

    with pytest.raises(GatheringError, match=r"one of two \(1 run\), .*-P dataset="):
        gather(client, "distress")


@pytest.mark.parametrize(
    ("wished", "said"),
    [
        ({"dataset": "nowhere"}, "no complete evaluate run of task distress on nowhere"),
        ({"ids": ["fedcba98"]}, "no finished evaluate run of task distress has the id"),
        ({"ids": [""]}, "runs begin with ''; give it whole"),
    ],
)
def test_what_is_not_there_is_said(client, add, wished, said):
    add("gemma4", dataset="there", conditions=("TO",))
    add("voxtral", dataset="there", conditions=("TO",))

    with pytest.raises(GatheringError, match=said):
        gather(client, "distress", **wished)


def test_the_same_cell_twice_is_refused(client, add):
    ids = [add("gemma4", dataset="twice", number=n) for n in (1, 2)]

    with pytest.raises(GatheringError, match=r"both hold gemma4 in AO"):
        gather(client, "distress", ids=ids)


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_damaged_predictions_name_their_run(client, add, damage):
    run = add("gemma4", dataset=f"damaged {damage}")
    path = _artifact(client, run)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "gone":
        path.unlink()
    else:
        frame = pd.read_parquet(path)
        frame.loc[3, "gold"] = 9
        frame.to_parquet(path)

    with pytest.raises(ValueError, match=run if damage != "other" else "9") as caught:
        gather(client, "distress", dataset=f"damaged {damage}")
    assert "Traceback" not in str(caught.value)


def test_predictions_that_do_not_give_what_was_logged_are_refused(client, add):
    run = add("gemma4", dataset="changed")
    path = _artifact(client, run)
    frame = pd.read_parquet(path)
    place = frame.index[(frame["prediction"] == 1) & (frame["condition"] == "AO")][0]
    frame.loc[place, "prediction"] = 5
    frame.to_parquet(path, index=False)
    found = gather(client, "distress", dataset="changed")

    with pytest.raises(GatheringError, match=f"{run} .* logged mae/AO = .* predictions give"):
        report_of(found, Asked(resamples=10))


def _artifact(client, run):
    from pathlib import Path

    return Path(
        client.get_run(run).info.artifact_uri.removeprefix("file://"), "predictions.parquet"
    )
