import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from core.parsing import rating
from experiments.export import main
from experiments.export_tables import shareable_reason, shareable_text
from tests.experiments.kept_runs import answers, keep, turns

SECRET = "my sister never called me back"


@pytest.fixture
def outputs(tmp_path):
    dataset = turns(tmp_path / "data", {"a/1": SECRET, "b": "Two.", "c": "Three."}, SECRET)
    wrote = answers(dataset, "AO", 1, text=[f"It says: {SECRET}", "3", "4"])
    refused = answers(dataset, "TO", status=["refused", "model_error", "ok"])
    refused["prediction"] = pd.array([pd.NA, pd.NA, 3], dtype="Int64")
    refused["reason"] = ["the model declined to answer", "no file /home/me/secret", None]
    keep(tmp_path / "outputs", dataset, "null", wrote, refused)
    keep(tmp_path / "outputs", dataset, "null/limit-1", answers(dataset, "AO").head(1))
    return tmp_path / "outputs"


def exported(outputs, to, **wishes):
    words = [word for name, value in wishes.items() for word in (f"--{name}", value)]
    assert main(["--to", to, "--output", str(outputs), *words]) == 0
    return outputs / "export" / to


def everything(folder: Path) -> str:
    """All that is in a folder, parquet as text."""
    texts = [path.read_text() for path in folder.rglob("*") if path.suffix in (".md", ".json")]
    texts += [pd.read_parquet(path).to_csv() for path in folder.rglob("*.parquet")]
    return "\n".join(texts)


@pytest.mark.parametrize("to", ["hf", "inspect"])
def test_no_word_of_the_dataset_and_no_path_is_handed_on_unless_asked(outputs, to):
    asked = everything(exported(outputs, to, transcripts="true"))
    assert SECRET in asked

    handed_on = everything(exported(outputs, to))
    assert SECRET not in handed_on
    assert str(outputs.parent) not in handed_on
    assert "/home/me" not in handed_on


def test_the_tables_are_tidy_and_hold_whole_runs(outputs):
    folder = exported(outputs, "hf")
    table = pd.read_parquet(folder / "data" / "distress_predictions.parquet")
    metrics = pd.read_parquet(folder / "data" / "metrics.parquet")

    # Three items in two conditions; the run of the first item alone is left out.
    assert len(table) == 6
    assert list(table["prediction"].astype(object).where(table["prediction"].notna(), None)) == [
        *(2, 3, 4),
        *(None, None, 3),
    ]
    assert list(table["text_withheld"]) == [True, *([False] * 5)]
    assert set(metrics["run"]) == set(table["run"])


def test_the_card_names_every_table_and_every_licence(outputs):
    folder = exported(outputs, "hf", licence="cc-by-4.0")
    _, head, body = (folder / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(head)

    assert said["license"] == "cc-by-4.0"
    assert all((folder / each["data_files"]).is_file() for each in said["configs"])
    assert "| turns | distress | CC-BY-NC-4.0 | made for a test | True |" in body
    table = pd.read_parquet(folder / "data" / "distress_predictions.parquet")
    explained = body.replace("`p_*`", "".join(f"`p_{n}`" for n in range(1, 6)))
    assert [c for c in table.columns if c not in explained] == []


def test_a_log_has_what_inspect_asks_for(outputs):
    folder = exported(outputs, "inspect")
    (path,) = folder.glob("*_distress-TO_*.json")
    log = json.loads(path.read_text())

    # The required fields of EvalLog, EvalSpec, EvalSample and EvalScore in inspect_ai 0.3.285.
    assert log["version"] == 2
    assert {"created", "task", "dataset", "model", "config"} <= log["eval"].keys()
    for sample in log["samples"]:
        assert {"id", "epoch", "input", "target"} <= sample.keys()
        assert all("value" in score for score in sample["scores"].values())
    first, second, third = (sample["scores"]["absolute_error"] for sample in log["samples"])
    assert (first["value"], first["reason"]) == ("N", "refusal")
    assert second["explanation"].startswith("model_error: no reason in words")
    assert third["value"] == 0
    (score,) = log["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (1, 2)
    assert score["metrics"]["mae"]["value"] == 1.0
    assert log["results"]["metadata"]["statuses"] == {"refused": 1, "model_error": 1, "ok": 1}


def test_inspect_itself_reads_the_logs(outputs):
    log = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not among our packages")
    folder = exported(outputs, "inspect", transcripts="true")

    assert len(log.list_eval_logs(str(folder))) == 2
    for path in folder.glob("*.json"):
        read = log.read_eval_log(str(path))
        assert (read.status, len(read.samples)) == ("success", 3)
        assert read.samples[0].input.endswith(SECRET)


def test_a_run_is_chosen_by_its_folder(outputs):
    (limited,) = outputs.glob("distress/*/null/limit-1")
    folder = exported(outputs, "hf", runs=str(limited))

    assert len(pd.read_parquet(folder / "data" / "distress_predictions.parquet")) == 1


def test_one_run_in_two_folders_is_not_exported_as_two(outputs, tmp_path, capsys):
    (folder,) = outputs.glob("distress/*/null")
    copy = shutil.copytree(folder, tmp_path / "copy" / "null")

    assert main(["--output", str(outputs), "--runs", f"{folder},{copy}"]) == 2
    assert "more than one folder holds null/distress/" in capsys.readouterr().err


def test_words_of_another_version_of_the_dataset_are_not_put_beside_answers(outputs, capsys):
    turns(outputs.parent / "data", {"a/1": "Others.", "b": "Two.", "c": "Three."})

    assert main(["--output", str(outputs), "--transcripts", "true"]) == 1
    assert "another version" in capsys.readouterr().err


ECHOED = ("It was a good week.", "我昨天没有睡好觉", "it_was_a_good_week", "a/b", "No, never.")


@pytest.mark.parametrize("to", ["hf", "inspect"])
@pytest.mark.parametrize("echoed", ECHOED)
def test_words_that_a_model_or_its_server_repeats_are_not_handed_on(tmp_path, to, echoed):
    dataset = turns(tmp_path / "data", {"a": echoed, "b": "Two."}, echoed)
    wrote = answers(dataset, "AO", text=echoed, quote_speaker=echoed, heard=echoed)
    refused = answers(dataset, "TO", status="refused", text="", reason=echoed)
    refused["prediction"] = pd.array([pd.NA, pd.NA], dtype="Int64")
    keep(tmp_path / "outputs", dataset, "null", wrote, refused)

    written = everything(exported(tmp_path / "outputs", to))
    assert echoed not in written
    # JSON spells what is not ASCII.
    assert json.dumps(echoed)[1:-1] not in written


@pytest.mark.parametrize(
    "said",
    [
        "3",
        "The answer is 3.",
        "**Rating: 3**",
        '{"rating": 3}',
        "3/5",
        "Distress level: 3 out of 5",
    ],
)
def test_an_answer_that_states_a_label_is_handed_on(said):
    assert shareable_text(said, "12345") == said


@pytest.mark.parametrize("said", ["Yes.", "A", "(B) No", "The answer is A: Yes"])
def test_a_letter_or_a_yes_is_handed_on_where_it_is_a_label(said):
    assert shareable_text(said, ("YES", "NO")) == said
    assert shareable_text(said, "12345") is None


@pytest.mark.parametrize(
    "said",
    [*ECHOED, "She said she could not go on", "3, I slept", "555 1234", "x" * 61, "3" * 9, None],
)
def test_an_answer_that_may_repeat_what_was_rated_is_not(said):
    assert shareable_text(said, "12345") is None


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("the model declined to answer", True),
        ("the answer is empty; asked again: the answer is empty", True),
        ("more than one answer: 1, 2", True),
        ("a level from 1 to 5 is not stated", True),
        ("used 1.0 s of 30.0 s of audio.", True),
        ("more than one answer: she, left", False),
        ("We cannot rate: it was a good week.", False),
        ("the answer is empty; asked again: it was a good week", False),
        ("/data/clip.mp3: no such file", False),
        (r"C:\clips\a.mp3 is gone", False),
        ("no answer from gpu7:8000", False),
        (None, False),
    ],
)
def test_a_reason_in_our_words_is_handed_on(said, kept):
    assert shareable_reason(said) == (said if kept else None)


@pytest.mark.parametrize(
    "answer", ["", "I can't help with that.", "2 or 3", "She cried.", "<think>She", "x" * 20_000]
)
def test_the_reasons_the_parser_gives_are_ours(answer):
    reason = rating(answer).reason
    assert reason
    assert shareable_reason(reason) == reason


@pytest.mark.parametrize(
    "wrong",
    [
        ["--to", "xml"],
        ["--transcripts", "maybe"],
        ["--licence", "mine: {all}"],
        ["--task", "knitting"],
        ["--runs", "nowhere"],
    ],
)
def test_a_wrong_value_is_said_in_a_sentence(outputs, wrong, capsys):
    assert main(["--output", str(outputs), *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1
