"""A store with a few synthetic runs, each scenario on a dataset of its own name."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.compare import synthetic_predictions, write_synthetic_run
from core.detection.tables import typed
from core.tasks import manipulation

ITEMS = 40


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Folder of an MLflow store, its address in MLFLOW_TRACKING_URI while tests here run."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def here(store, monkeypatch):
    """The current folder is the store's, so that its artifacts lie there."""
    monkeypatch.chdir(store)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}/mlflow.db")
    return store


@pytest.fixture
def client(here):
    from experiments.tracking import open_store

    return open_store()[0]


@pytest.fixture
def add(here):
    """Writes a run; gives its id. Predictions are drawn unless given."""

    def added(
        model,
        *,
        dataset,
        number=0,
        conditions=("AO", "AT", "TO"),
        predictions=None,
        resamples=2,
        **said,
    ):
        frame = synthetic_predictions(ITEMS, number) if predictions is None else predictions
        frame = frame[frame["condition"].isin(conditions)]
        # Names of models may hold anything; a folder's name may not.
        folder = here / f"files-{len(list(here.iterdir()))}"
        return write_synthetic_run(
            frame, model, folder, dataset=dataset, resamples=resamples, **said
        )

    return added


@pytest.fixture
def dialogues():
    """Synthetic predictions of the manipulation task: twelve clips in two conditions."""
    drawing = np.random.default_rng(3)
    rows = []
    for condition in ("AO", "TO"):
        for number in range(12):
            gold = "YES" if number % 2 else "NO"
            p_yes = float(np.round(drawing.uniform(), 3))
            said = "YES" if p_yes > 0.5 else "NO"
            rows.append(
                {
                    "item_id": f"clip-{number:02d}",
                    "prediction": said,
                    "gold": gold,
                    "condition": condition,
                    "status": "ok",
                    "expected": p_yes,
                    "choice_mass": 1.0,
                    "p_YES": p_yes,
                    "p_NO": 1 - p_yes,
                    "text": "A" if said == "YES" else "B",
                    "group_id": f"clip-{number:02d}",
                    "seconds_given": 20.0 + number if condition == "AO" else np.nan,
                    "seconds_used": 20.0 + number if condition == "AO" else np.nan,
                    "latency_s": 0.5,
                    "request_id": f"{condition}-{number}",
                    "tactic": "Denial" if said == "YES" else None,
                    "gold_tactics": "Denial,Evasion" if gold == "YES" else None,
                    "voices": "amanda,mark" if number % 3 else "mark,sassy",
                }
            )
    return typed(rows, manipulation.LABELS, manipulation.COLUMNS)


@pytest.fixture
def of_condition():
    """Rows of synthetic predictions under another condition's name."""

    def renamed(frame: pd.DataFrame, condition: str, name: str) -> pd.DataFrame:
        rows = frame[frame["condition"] == condition]
        return rows.assign(condition=name, request_id=rows["request_id"] + name)

    return renamed
