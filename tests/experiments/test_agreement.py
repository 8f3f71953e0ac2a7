import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.agreement import OPTIONS, main
from experiments.agreement_files import item_table, save_heatmap
from experiments.agreement_report import metrics, sentences, study_of
from experiments.settings import ROOT
from validation.ratings import of_group, read_ratings
from validation.scale import scale_named

BINARY = "ID,MentalManip,A,B,C,note\nd1,1,1,0,,x\nd2,0,0,0,0,y\nd3,1,1,1,1,z\nd4,0,1,,,w\n"
VALID = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. :/"
LEVELS = "clip,reference,e1,e2,e3\nc1,1,1,2,1\nc2,3,3,3,5\nc3,5,4,5,5\nc4,2,2,2,3\n"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    return tmp_path


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """MLflow takes seconds to make its tables; a copy takes none."""
    import mlflow

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def prepared(store, empty_database):
    shutil.copy(empty_database, store / "mlflow.db")
    return store


def written(folder: Path, text: str) -> Path:
    path = folder / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    return path


def study(folder, text, kind="nominal", group=""):
    everyone = read_ratings(written(folder, text), scale_named(kind))
    return study_of(everyone, of_group(everyone, group), resamples=100, seed=0)


def only_run(name="agreement/ratings"):
    import mlflow

    client = mlflow.MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    (run,) = client.search_runs([client.get_experiment_by_name(name).experiment_id])
    return client, run


def test_a_table_is_printed_and_logged(prepared, capsys):
    assert main(["--ratings", str(written(prepared, BINARY)), "--resamples", "50"]) == 0
    shown = capsys.readouterr().out
    assert "Left out column 'note': its cells are text, not ratings." in shown
    assert shown.splitlines()[-1].startswith("look:  ")
    assert "Few items: fleiss_kappa rests on 2 of 4 items" in shown
    client, run = only_run()
    assert run.info.status == "FINISHED"
    assert run.data.metrics["items/fleiss_kappa"] == 2
    assert run.data.params["undertone.scale"] == "nominal"
    assert "UNRESOLVED d1" in run.data.tags["mlflow.note.content"]
    files = {each.path for each in client.list_artifacts(run.info.run_id)}
    tables = {"agreement.json", "pairs.json", "reference.json", "items.json"}
    assert files == {"items.csv", "pairwise_kappa.png", *tables}


def test_an_ordinal_scale_compares_the_median_of_its_raters(prepared, capsys):
    arguments = ["--ratings", str(written(prepared, LEVELS)), "--scale", "ordinal"]
    assert main([*arguments, "--group", "e1,e3", "--resamples", "50"]) == 0
    assert "mean_pairwise_kappa_quadratic" in capsys.readouterr().out
    _, run = only_run()
    assert run.data.metrics["reference_mae/all_median"] == 0.0
    assert run.data.metrics["reference_mae/e1_e3_median"] == pytest.approx((0 + 1 + 0.5 + 0.5) / 4)
    assert "agreement/krippendorff_alpha_ordinal" in run.data.metrics


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("scale", "likert", "scale: expected one of nominal, ordinal, interval, found 'likert'"),
        ("group", "AXZ", "X, Z not among the raters of ratings.csv, which are A, B, C"),
        ("reference", "truth", "no column 'truth'"),
        ("resamples", "many", "resamples: expected a whole number of 0 to 1000000, found 'many'"),
        ("resamples", "9" * 12, "resamples: expected a whole number of 0 to 1000000"),
        ("seed", "-1", "seed: expected a whole number of 0 or more, found '-1'"),
        ("ratings", "none.csv", "ratings: there is no file"),
        ("levels", "3", "levels: expected two or more different levels"),
        ("rater", "A", "unrecognized arguments"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_opens_no_run(store, capsys, option, value, message):
    arguments = ["--ratings", str(written(store, BINARY)), f"--{option}", value]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not (store / "mlflow.db").exists()


def test_a_rating_off_the_scale_opens_no_run(store, capsys):
    assert main(["--ratings", str(written(store, "ID,A,B\nd1,1,0\nd2,7,1\n"))]) == 2
    assert "ratings.csv, row 3 (item d2), A: expected one of 0 (NO), 1 (YES)" in (
        capsys.readouterr().err
    )
    assert not (store / "mlflow.db").exists()


def test_the_run_that_mlflow_opened_is_adopted(prepared, monkeypatch):
    import mlflow

    client = mlflow.MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    run_id = client.create_run("0").info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    assert main(["--ratings", str(written(prepared, BINARY)), "--resamples", "0"]) == 0
    assert "agreement/percent_agreement" in client.get_run(run_id).data.metrics
    assert len(client.search_experiments()) == 1


def test_a_group_is_measured_while_the_consensus_stays_everyones(tmp_path):
    found = study(tmp_path, BINARY, group="BC")
    assert {estimate.condition for estimate in found.estimates} == {"BC"}
    assert [record.label for record in found.records] == [None, "NO", "YES", "YES"]
    rules = [each.rule for each in found.comparisons]
    assert rules[0] == "all, ties left out (text of study 2)"
    assert "BC, ties NO (printed Table 6 of study 2)" in rules


def test_single_votes_are_not_passed_off_as_majorities(tmp_path):
    assert "1 of 4 items have a single rating: their consensus is one person's vote." in sentences(
        study(tmp_path, BINARY)
    )


def test_the_votes_are_shown_by_level_and_by_item(tmp_path):
    said = sentences(study(tmp_path, BINARY))
    assert "Ratings by level: NO: 4, YES: 5." in said
    assert "9 ratings; items by number of ratings: 1 with 1, 1 with 2, 2 with 3." in said[0]


def test_the_votes_the_consensus_and_the_ties_are_told(tmp_path):
    said = sentences(study(tmp_path, "ID,A,B,C\nd1,1,0,\nd2,0,0,0\nd3,1,1,1\nd4,1,,\nd5,1,,\n"))
    assert (
        "Vote histogram of all raters, items by votes for (NO, YES): (0, 1): 2, (1, 1): 1, "
        "(3, 0): 1, (0, 3): 1." in said
    )
    assert (
        "Consensus of all raters (majority), items by label: NO: 1, YES: 3, UNRESOLVED: 1." in said
    )
    assert "1 items are UNRESOLVED (tied)." in said


def test_an_ordinal_scale_tells_its_medians_and_what_lies_between_two_levels(tmp_path):
    # Medians by hand: 1, 2.5, 5.
    text = "clip,e1,e2,e3\nc1,1,1,2\nc2,2,3,\nc3,5,4,5\n"
    said = sentences(study(tmp_path, text, "ordinal"))
    assert (
        "Consensus of all raters (median), items by level: 1: 1, 2: 0, 2.5: 1, 3: 0, 4: 0, 5: 1."
        in said
    )
    assert (
        "1 items are UNRESOLVED (tied: their median lies between two levels, and is kept so): "
        "c2 (2.5)." in said
    )
    said = sentences(study(tmp_path, LEVELS, "ordinal"))
    assert "No item is tied between two levels." in said


def test_a_median_between_two_named_levels_is_named_after_both(tmp_path):
    scale = scale_named("ordinal", "calm,tense,upset")
    everyone = read_ratings(written(tmp_path, "clip,e1,e2\nc1,calm,tense\nc2,upset,upset\n"), scale)
    said = sentences(study_of(everyone, everyone, resamples=0, seed=0))
    assert any("calm: 0, calm/tense: 1, tense: 0, upset: 1." in line for line in said)


def test_an_interval_scale_tells_the_range_of_its_medians(tmp_path):
    said = sentences(study(tmp_path, "clip,e1,e2\nc1,1.5,2\nc2,4,4.5\nc3,3,3\n", "interval"))
    assert (
        "Consensus of all raters (median): from 1.75 to 4.25, half of the items at 3 or below."
        in said
    )


def test_a_group_is_told_from_everyone(tmp_path):
    said = sentences(study(tmp_path, BINARY, group="BC"))
    assert "5 ratings; items by number of ratings from BC: 1 with 0, 1 with 1, 2 with 2." in said[0]
    assert any(line.startswith("Ratings from BC by level: ") for line in said)
    assert (
        "Counting all 3 raters, 1 of 4 items have a single rating: their consensus is one "
        "person's vote." in said
    )


def test_an_item_keeps_what_the_study_records(tmp_path):
    table = item_table(study(tmp_path, BINARY, group="BC"))
    first = table.set_index("item_id").loc["d1"]
    assert pd.isna(first["label"])
    assert (first["status"], first["votes_NO"], first["votes_YES"]) == ("UNRESOLVED", 1, 1)
    assert (first["raters"], first["raters_in_group"], first["reference"]) == (2, 1, "YES")
    assert (first["rating_A"], first["rating_B"]) == ("YES", "NO")
    assert first["adjudicator_first"] is None


def test_metrics_stay_below_what_the_runs_page_can_bear(tmp_path):
    for kind, text, group in (("nominal", BINARY, "AB"), ("ordinal", LEVELS, "e1,e2")):
        found = metrics(study(tmp_path, text, kind, group))
        assert len(found) < 100
        assert not {name for name in found if set(name) - set(VALID)}


@pytest.mark.parametrize("text", ["ID,A,B\nd1,,\n", "ID,A,B\nd1,1,\nd2,1,\n", "ID,A\nd1,1\n"])
def test_a_table_without_agreement_to_measure_says_so(prepared, capsys, text):
    assert main(["--ratings", str(written(prepared, text))]) == 0
    assert "no item has two ratings" in capsys.readouterr().out


def test_the_heatmap_is_drawn_with_pairs_that_share_nothing(tmp_path):
    found = study(tmp_path, "ID,A,B,C\nd1,1,0,\nd2,0,0,\nd3,,,1\n")
    save_heatmap(found, tmp_path / "heat.png")
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")


def test_help_shows_every_option_and_loads_nothing_heavy():
    shown = answer_of("-m", "experiments.agreement", "--help")
    assert all(f"--{name} " in shown for name in OPTIONS)
    heavy = "import sys, experiments.agreement; print({'numpy', 'mlflow'} & set(sys.modules))"
    assert answer_of("-c", heavy).strip() == "set()"


def answer_of(*words):
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.shared
@pytest.mark.parametrize(
    ("modality", "group", "alpha", "alpha_items", "table"),
    [
        ("text", "BFGH", "0.526", "10 of 100", ["31", "19", "9", "41", "0.720"]),
        ("audio", "BCFH", "0.422", "20 of 100", ["28", "22", "22", "28", "0.560"]),
    ],
)
def test_the_printed_tables_hold_the_published_figures_and_their_items(
    shared, prepared, capsys, modality, group, alpha, alpha_items, table
):
    path = shared / "data" / "speech_mentalmanip" / f"annotations_{modality}_compiled.csv"
    assert main(["--ratings", str(path), "--group", group]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = {line.split()[1]: line for line in lines if line.startswith("│")}
    assert f" {alpha} [" in cells["krippendorff_alpha_nominal"]
    assert alpha_items in cells["krippendorff_alpha_nominal"]
    # The paper prints this one figure as 0.513 for text and 0.514 for audio: it is 37/72.
    assert " 0.514 [" in cells["fleiss_kappa"]
    assert "10 of 100" in cells["fleiss_kappa"]
    (row,) = [line for line in lines if "all, ties NO (printed Table 6" in line]
    assert [cell.split()[0] for cell in row.split("│")[2:7]] == table
