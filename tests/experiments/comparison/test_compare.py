"""The command as typed, down to the page in a browser."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import mlflow
import pandas as pd
import pytest

from benchmarks.compare import synthetic_predictions
from experiments import compare

HOSTILE = "<script>document.title='run'</script>"


def ran(capsys, *words):
    code = compare.main([*words, "--resamples", "20"])
    said = capsys.readouterr()
    page = [line[8:] for line in said.out.splitlines() if line.startswith("report: ")]
    return code, said.err or said.out, page


def test_it_writes_the_report_and_a_run_of_its_own(client, add, capsys, tmp_path):
    for number, model in enumerate(("gemma4", "voxtral", "baseline")):
        add(model, dataset="three", number=number * 20)

    code, said, (page,) = ran(capsys, "--dataset", "three", "--output", str(tmp_path))

    assert code == 0, said
    assert "3 models: gemma4, voxtral, baseline." in said
    figures = {path.stem for path in tmp_path.rglob("figures/*.svg")}
    assert figures == {path.stem for path in tmp_path.rglob("figures/*.csv")}
    assert {
        *("figure_2", "forest", "mae_by_condition", "confusion", "label_distribution"),
        *("calibration", "error_by_gold", "error_by_length", "error_by_session", "ranks"),
        *("critical_difference_AT", "statuses", "error_against_cost"),
    } <= figures
    experiment = client.get_experiment_by_name("compare/distress")
    run = client.search_runs([experiment.experiment_id])[0]
    assert run.info.status == "FINISHED"
    assert run.data.tags["report"] == "compare"
    artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"report.html", "figures", "tables"} <= artifacts
    table = pd.read_csv(page.replace("report.html", "tables/table_2.csv"))
    mae = table[(table["metric"] == "mae") & (table["condition"] == "AT")].set_index("model")
    for model in ("gemma4", "voxtral", "baseline"):
        assert run.data.metrics[f"mae_AT/{model}"] == pytest.approx(mae.loc[model, "value"])


def test_one_model_in_one_condition_is_a_report_that_says_what_is_missing(
    client, add, capsys, tmp_path
):
    add("gemma4", dataset="alone", conditions=("TO",))

    code, said, (page,) = ran(capsys, "--dataset", "alone", "--output", str(tmp_path))

    assert code == 0, said
    text = Path(page).read_text()
    assert "One model has no rank" in text
    assert "1 cell from 1 run. Intervals" in said
    assert "Synthetic data, as its dataset.json says" in said
    experiment = client.get_experiment_by_name("compare/distress")
    named = [run.info.run_name for run in client.search_runs([experiment.experiment_id])]
    assert "compare · distress · 1 model" in named
    assert "No model was run in two conditions" in text
    assert "No clip was heard" in text


def test_a_model_that_answered_nothing_is_in_the_tables_and_is_no_number(add, capsys, tmp_path):
    silent = synthetic_predictions(40, 1).assign(
        prediction=pd.array([pd.NA] * 120, dtype="Int64"), status="refused", reason=HOSTILE
    )
    shares = [f"p_{level}" for level in range(1, 6)]
    silent[[*shares, "expected", "choice_mass", "latency_s"]] = float("nan")
    add("gemma4", dataset="silent", conditions=("AO",))
    add("salmonn", dataset="silent", predictions=silent, conditions=("AO",))

    code, said, (page,) = ran(capsys, "--dataset", "silent", "--output", str(tmp_path))

    assert code == 0, said
    text = Path(page).read_text()
    assert "mae is undefined for salmonn AO: none of 40" in text
    assert "<script" not in text
    assert "&lt;script&gt;document.title" in text


def test_conditions_beyond_the_three_are_shown_apart(add, capsys, tmp_path, of_condition):
    frame = synthetic_predictions(40, 1)
    said = {"conditions": ("TO",), "beside.hearing": "silence"}
    run = add("gemma4", dataset="variants", predictions=frame, **said)
    uri = mlflow.MlflowClient().get_run(run).info.artifact_uri
    silence = of_condition(frame, "AT", "AT.silence")
    silence.to_parquet(Path(uri.removeprefix("file://"), "variants.parquet"), index=False)

    code, said, (page,) = ran(capsys, "--dataset", "variants", "--output", str(tmp_path))

    assert code == 0, said
    apart = pd.read_csv(page.replace("report.html", "tables/variants.csv"))
    assert apart["Condition"].tolist() == ["AT.silence"]
    assert "AT.silence" not in set(pd.read_csv(page.replace("report.html", "tables/table_2.csv")))


def test_on_the_papers_own_data_its_figures_stand_beside_ours(add, capsys, tmp_path):
    add("gemma4", dataset="cbt-audio", conditions=("AO", "AT"))

    code, said, (page,) = ran(capsys, "--dataset", "cbt-audio", "--output", str(tmp_path))

    assert code == 0, said
    beside = pd.read_csv(page.replace("report.html", "tables/published.csv"))
    published = beside.set_index(["condition", "metric"])["published"].to_dict()
    # CBT-Audio, section 4.2.
    assert published == {("AO", "mae"): 0.824, ("AT", "mae"): 0.720, ("AT", "a1"): 0.900}
    drawn = pd.read_csv(page.replace("report.html", "figures/mae_by_condition.csv"))
    assert drawn.loc[drawn["series"] == "published", "value"].tolist() == [0.824, 0.720]
    assert "1,802 items. They are marked as published" in said


def test_manipulation_with_published_figures_and_raters(add, capsys, tmp_path, dialogues):
    (tmp_path / "ratings.csv").write_text("item,A,B,C\n1,1,1,0\n2,0,0,1\n3,1,0,1\n4,0,0,0\n")
    add("qwen2_5_omni", dataset="talks", predictions=dialogues, task="manipulation", prompts="m:1")
    words = ["--task", "manipulation", "--dataset", "talks", "--published", "true"]
    words += ["--ratings", str(tmp_path / "ratings.csv"), "--output", str(tmp_path)]

    code, said, (page,) = ran(capsys, *words)

    assert code == 0, said
    roc = pd.read_csv(page.replace("report.html", "figures/roc.csv")).set_index("row")
    star = roc.loc["published qwen2_5_omni"]
    # Table 3: 87 of 250 found, 16 of 90 raised in error.
    assert (star["x"], star["y"]) == (pytest.approx(0.178), pytest.approx(0.348))
    tactics = pd.read_csv(page.replace("report.html", "tables/table_4_tactics.csv"))
    assert tactics.loc[tactics["source"] == "Table 4", "Count"].sum() == 87
    kappa = pd.read_csv(page.replace("report.html", "figures/pairwise_kappa_1.csv"))
    # A and B agree on 3 of 4, by chance on (2 * 1 + 2 * 3) / 16: (0.75 - 0.5) / 0.5.
    assert kappa.loc[0, "kappa"] == pytest.approx(0.5)
    assert Path(page.replace("report.html", "figures/by_voice.svg")).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "sarcasm"], "task: expected one of distress, manipulation"),
        (["--published", "maybe"], "published: expected one of auto, true, false"),
        (["--allow", "all"], "allow: expected one of prompts"),
        (["--ratings", "nowhere.csv"], "ratings: there is no file"),
        (["--dataset", "nowhere"], "no complete evaluate run"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_code_2(add, capsys, words, said):
    add("gemma4", dataset="some", conditions=("TO",))

    code, shown, page = ran(capsys, *words)

    assert (code, page) == (2, [])
    assert said in shown
    assert len(shown.splitlines()) == 1


@contextmanager
def chromium():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        *("disable-dev-shm-usage", "window-size=1300,900"),
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromedriver"), reason="chromedriver is not installed")
def test_in_a_browser_every_figure_shows_and_nothing_runs_or_is_fetched(add, capsys, tmp_path):
    add(HOSTILE, dataset="browser", conditions=("AO", "TO"))
    code, said, (page,) = ran(capsys, "--dataset", "browser", "--output", str(tmp_path))
    assert code == 0, said

    with chromium() as browser:
        browser.get(f"file://{page}")
        title = browser.title
        pictures = browser.execute_script(
            "return [...document.images].map(i => i.complete && i.naturalWidth > 100)"
        )
        fetched = browser.execute_script(
            "return performance.getEntriesByType('resource').map(e => e.name)"
        )
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth"
        )
        said = browser.get_log("browser")

    assert title == "Distress on browser"
    assert len(pictures) > 8
    assert all(pictures)
    assert [name for name in fetched if not name.startswith("data:")] == []
    assert wide
    assert said == []
