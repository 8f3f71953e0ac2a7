import os
import shutil

import pandas as pd
import pytest

from experiments.settings import ROOT
from experiments.validate_labels import OPTIONS, main

DEMO = ROOT / "demo" / "distress"
LEVELS = "item_id,reference,V,W,X\nt1,1,1,2,1\nt2,3,3,3,5\nt3,5,4,5,5\nt4,2,2,2,3\n"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """MLflow takes seconds to make its tables; a copy takes none."""
    import mlflow

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def store(tmp_path, monkeypatch, empty_database):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return tmp_path


def run(folder, *more, text=LEVELS):
    path = folder / "experts.csv"
    path.write_text(text)
    return main(["--ratings", str(path), "--resamples", "20", *more])


def predictions(folder, model, answers, condition="AO"):
    """A model's answers to turns t1, t2, ... with gold 1, 3, 5, 2 and then 4."""
    gold = [1, 3, 5, 2, 4, 4][: len(answers)]
    table = pd.DataFrame(
        {
            "item_id": [f"t{n}" for n in range(1, len(answers) + 1)],
            "prediction": pd.array(answers, dtype="Int64"),
            "gold": pd.array(gold, dtype="Int64"),
            "condition": condition,
            "status": ["ok" if a is not None else "refused" for a in answers],
            "reason": [None if a is not None else "no" for a in answers],
            "expected": [None if a is None else float(a) for a in answers],
            "choice_mass": 1.0,
            **{f"p_{n}": 0.2 for n in range(1, 6)},
            "text": "x",
            "group_id": "s",
            "seconds_given": 1.0,
            "seconds_used": 1.0,
            "latency_s": 1.0,
            "request_id": "r",
        }
    )
    path = folder / "runs" / model / "predictions.parquet"
    path.parent.mkdir(parents=True)
    table.to_parquet(path, index=False)
    return ["--predictions", str(folder / "runs")]


def only_run():
    import mlflow

    client = mlflow.MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("validate_labels/experts")
    (found,) = client.search_runs([experiment.experiment_id])
    return client, found


def test_tables_of_the_study_are_printed_and_logged(store, capsys):
    assert run(store) == 0
    said = capsys.readouterr().out
    # Medians 1 3 5 2: each label exactly.
    assert "The experts' median is within one level of the label on 100.0% of 4 turns." in said
    assert said.splitlines()[-1].startswith("look:  ")
    for figure in ("krippendorff_alpha_ordinal", "pairwise_qwk", "consensus (median)"):
        assert figure in said
    client, found = only_run()
    assert found.data.metrics["labels/mae/consensus"] == 0.0
    assert found.data.metrics["labels/mae/V"] == 0.25
    files = {each.path for each in client.list_artifacts(found.info.run_id)}
    assert {"experts.json", "labels.json", "items.csv"} <= files


def test_models_are_ranked_on_both_sets(store, capsys):
    predictions(store, "good", [1, 3, 5, 2, 4, 4])
    predictions(store, "fair", [2, 3, 5, 2, 4, 3])
    more = predictions(store, "poor", [5, 1, 1, 5, None, 1])
    assert run(store, *more) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Ranking of 3 models on the experts' turns against the experts' median" in said
    assert "Spearman 1.000, p 0.33 (every permutation)" in said
    assert "Few models: 3 can rank alike by chance; a ranking that says something takes 5" in said
    # Below the tables, the last thing before the address.
    assert said.index("Mean absolute error of the models") < said.index("Ranking of 3 models")
    # |5-1|, |1-3|, |1-5|, |5-2| and |1-4|; one turn of six is not answered.
    assert "poor │ 3.200 (5 of 6) │ 3.250 (4) │ 3.250 (4)" in said
    assert only_run()[1].data.metrics["ranking/spearman_experts"] == pytest.approx(1.0)


def test_one_model_has_no_rank_and_that_is_said_once(store, capsys):
    more = predictions(store, "alone", [1, 3, 5, 2, 4, 4])
    assert run(store, *more) == 0
    said = capsys.readouterr().out
    assert said.count("anking") == 1
    assert "No ranking: one model alone has no rank; it takes two or more." in said


@pytest.mark.parametrize("said", ["{0}/good", "{0}/good,{0}/fair", "{0}/good, {0}/fair"])
def test_the_folders_of_runs_are_told_the_folder_above(store, capsys, said):
    predictions(store, "good", [1, 3, 5, 2, 4, 4])
    folder = predictions(store, "fair", [2, 3, 5, 2, 4, 3])[1]
    assert run(store, "--predictions", said.format(folder)) == 2
    message = "expected one folder that holds the models' folders, found "
    told = capsys.readouterr().err
    assert message in told
    assert told.endswith(f"; give {folder}.\n")


def test_labels_may_come_from_the_dataset(store, capsys):
    items = pd.read_csv(DEMO / "manifest.csv")
    rated = items[["item_id", "label"]].head(6)
    text = pd.DataFrame({"item_id": rated.item_id, "A": rated.label, "B": rated.label})
    assert run(store, "--data", str(DEMO), text=text.to_csv(index=False)) == 0
    assert "column label of demo-distress" in capsys.readouterr().out
    text.loc[0, "item_id"] = "nowhere"
    assert run(store, "--data", str(DEMO), text=text.to_csv(index=False)) == 2
    assert "1 rated turns, such as nowhere, are not in demo-distress" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ratings", "none.csv"], "ratings: there is no file 'none.csv'"),
        (["--data", "nowhere"], "data: there is no folder 'nowhere'"),
        (["--data", str(DEMO), "--reference", "gold"], "data and reference: give one of them"),
        (["--condition", "XO"], "condition: expected one of AO, AT, TO, found 'XO'"),
        (["--reference", "none"], "has no column named like the labels"),
        (["--predictions", str(ROOT / "demo")], "holds no <model>/predictions.parquet"),
        (["--resamples", "many"], "resamples: expected a whole number"),
    ],
)
def test_a_wrong_value_is_one_sentence(store, capsys, arguments, message):
    assert run(store, *arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_predictions_that_do_not_fit_are_refused(store, capsys):
    more = predictions(store, "a", [1, 3])
    predictions(store, "b", [1, 3, 5])
    assert run(store, *more) == 2
    assert "b was asked about 3 turns in AO, a about others (2)" in capsys.readouterr().err
    assert run(store, *more, "--condition", "TO") == 2
    assert "no turn of" in capsys.readouterr().err
    (store / "runs" / "a" / "predictions.parquet").write_bytes(b"x")
    assert run(store, *more) == 2
    assert "predictions: " in capsys.readouterr().err


def test_mlproject_offers_every_option():
    import yaml

    entry = yaml.safe_load((ROOT / "MLproject").read_text())["entry_points"]["validate_labels"]
    assert set(entry["parameters"]) == set(OPTIONS)
    for option, (default, _) in OPTIONS.items():
        assert entry["parameters"][option].get("default", "") == default
        assert f"--{option} {{{option}}}" in " ".join(entry["command"].split())
