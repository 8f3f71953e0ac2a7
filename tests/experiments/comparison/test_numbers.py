"""The report's numbers are MLflow's, and both are what the per-item files give."""

import pandas as pd
import pytest
from scipy.stats import spearmanr, wilcoxon
from sklearn.metrics import (
    cohen_kappa_score,
    f1_score,
    mean_absolute_error,
    recall_score,
    roc_auc_score,
    root_mean_squared_error,
)

from experiments.comparison.asked import Asked
from experiments.comparison.gathering import gather
from experiments.comparison.report import report_of
from experiments.comparison.writing import write_report


@pytest.fixture
def written(client, tmp_path):
    """Writes a report with the runs' own resamples; gives its folder and the runs' metrics."""

    def compared(task, dataset):
        found = gather(client, task, dataset=dataset)
        report = report_of(found, Asked(resamples=50))
        write_report(report.sections, report.title, report.lines, tmp_path)
        return {model: runs[0] for model, runs in found.runs.items()}

    return compared


def per_item(client, run, condition):
    frame = pd.read_parquet(client.download_artifacts(run.id, "predictions.parquet"))
    return frame[(frame["condition"] == condition) & frame["prediction"].notna()]


def test_distress(client, add, written, tmp_path):
    for number, model in enumerate(("gemma4", "voxtral")):
        add(model, dataset="numbers", number=number * 8, resamples=50)
    runs = written("distress", "numbers")
    reported = pd.read_csv(tmp_path / "tables" / "appendix_f.csv").set_index(
        ["model", "condition", "metric"]
    )

    for model, run in runs.items():
        for condition in ("AO", "AT", "TO"):
            rows = per_item(client, run, condition)
            gold, said = rows["gold"].astype(int), rows["prediction"].astype(int)
            recomputed = {
                "mae": mean_absolute_error(gold, said),
                "rmse": root_mean_squared_error(gold, said),
                "spearman": spearmanr(gold, said)[0],
                "qwk": cohen_kappa_score(gold, said, weights="quadratic", labels=[1, 2, 3, 4, 5]),
                "a1": ((gold - said).abs() <= 1).mean(),
            }
            for metric, value in recomputed.items():
                ours = reported.loc[(model, condition, metric)]
                logged = run.metrics[f"{metric}/{condition}"]
                assert ours["value"] == pytest.approx(logged, abs=1e-12)
                assert ours["value"] == pytest.approx(value, abs=1e-12)
                for end in ("low", "high"):
                    in_mlflow = run.metrics[f"zz_interval/{metric}.{condition}.{end}"]
                    assert ours[end] == pytest.approx(in_mlflow, abs=1e-12)

    pairs = pd.read_csv(tmp_path / "tables" / "paired_tests.csv").set_index(["model", "pair"])
    run = runs["gemma4"]
    both = per_item(client, run, "AT").merge(per_item(client, run, "TO"), on="item_id")
    errors = [
        (both[f"prediction_{side}"] - both[f"gold_{side}"]).astype(int).abs() for side in "xy"
    ]
    found = pairs.loc[("gemma4", "AT-TO")]
    # The paper's test as scipy has it; ours, with Pratt's zeros, is the one in MLflow.
    paper = wilcoxon(errors[0] - errors[1], zero_method="wilcox", method="approx", correction=False)
    assert found["p_paper"] == pytest.approx(paper.pvalue)
    assert found["p"] == pytest.approx(run.metrics["wilcoxon_p/AT-TO"])
    assert found["difference"] == pytest.approx(run.metrics["mae_difference/AT-TO"])
    assert found["low"] == pytest.approx(run.metrics["zz_interval/mae_difference.AT-TO.low"])
    assert found["n"] == len(both)
    assert f"{run.metrics['mae/AT']:.3f}" in (tmp_path / "tables" / "table_2.md").read_text()


def test_manipulation(client, add, written, dialogues, tmp_path):
    add("gemma4", dataset="clips", predictions=dialogues, task="manipulation", prompts="m:1")
    (run,) = written("manipulation", "clips").values()
    reported = pd.read_csv(tmp_path / "tables" / "table_3_classification.csv").set_index(
        ["condition", "metric"]
    )["value"]

    for condition in ("AO", "TO"):
        rows = per_item(client, run, condition)
        gold, said = rows["gold"], rows["prediction"]
        recomputed = {
            "recall_yes": recall_score(gold, said, pos_label="YES"),
            "specificity": recall_score(gold, said, pos_label="NO"),
            "macro_f1": f1_score(gold, said, average="macro"),
            "auroc": roc_auc_score(gold == "YES", rows["expected"]),
        }
        for metric, value in recomputed.items():
            assert reported[condition, metric] == pytest.approx(value)
            assert reported[condition, metric] == pytest.approx(
                run.metrics[f"{metric}/{condition}"], abs=1e-12
            )
