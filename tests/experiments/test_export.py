import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

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


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("3", "3"),
        ("The answer is 3.", "The answer is 3."),
        ("She said she could not go on", None),
        ("x" * 61, None),
        (None, None),
    ],
)
def test_an_answer_is_handed_on_and_a_quotation_is_not(said, kept):
    assert shareable_text(said) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("the model declined to answer", True),
        ("the answer is empty; asked again: the answer is empty", True),
        ("more than one answer: 1, 2", True),
        ("/data/clip.mp3: no such file", False),
        (r"C:\clips\a.mp3 is gone", False),
        ("no answer from gpu7:8000", False),
    ],
)
def test_a_reason_in_our_words_is_handed_on(said, kept):
    assert shareable_reason(said) == (said if kept else None)


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
