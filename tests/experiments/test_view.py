import base64
import json
import zlib

import pytest

from experiments import view
from experiments.tracking import Record, tracked_run, write
from tests.experiments.chromium import needs_chromium, screenshots

METRICS = ["mae/AO", "mae/TO", "qwk/AO", "coverage/AO", "refused/AO", "zz_interval/mae.AO.low"]


def state(metrics=METRICS, headline=("mae", "qwk")):
    value = json.loads(view.leaderboard(metrics, headline))
    encoding, _, packed = value["state"].partition(";")
    assert encoding == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_the_list_opens_with_the_headline_metrics_and_the_coverage():
    assert state()["selectedColumns"][:4] == [
        "metrics.`mae/AO`",
        "metrics.`mae/TO`",
        "metrics.`qwk/AO`",
        "metrics.`coverage/AO`",
    ]


def test_the_best_model_comes_first_whichever_way_the_metric_runs():
    assert (state()["orderByKey"], state()["orderByAsc"]) == ("metrics.`mae/AO`", True)
    assert state(headline=("qwk",))["orderByAsc"] is False


def test_only_the_headline_charts_are_open_and_interval_ends_come_last():
    sections = state()["compareRunSections"]

    assert [s["name"] for s in sections if s["display"]] == ["mae", "qwk"]
    assert sections[-1]["name"] == "zz_interval"


def test_ninety_metrics_fit_the_tag():
    metrics = [f"metric_{i}/{c}" for i in range(30) for c in ("AO", "AT", "TO")]

    assert len(view.leaderboard(metrics, ("metric_0",))) < view.LONGEST_TAG


@pytest.mark.slow
@needs_chromium
def test_the_ui_shows_the_leaderboard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    record = Record("null · distress", metrics=dict.fromkeys(METRICS, 0.5), headline=("mae", "qwk"))
    with tracked_run("distress/demo") as run:
        write(run, record)
    ui = screenshots()

    with ui.server(run.uri) as address, ui.browser() as chromium:
        chromium.get(f"{address}/#/experiments/{run.experiment_id}/runs?{view.ADDRESS}")
        ui.wait_for_text(chromium, "mae/AO")
        shown = chromium.find_element("tag name", "body").text

    assert "coverage/AO" in shown
    assert "refused/AO" not in shown
