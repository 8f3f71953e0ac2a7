"""An empty store; workbooks as annotators send them back."""

import shutil

import pytest
from openpyxl import load_workbook

from experiments import annotate_export
from experiments.settings import ROOT
from tests.experiments.annotation_round import answer
from validation.annotation_key import read_key

DEMO = ROOT / "demo" / "manipulation"


@pytest.fixture(scope="session")
def made_store(tmp_path_factory):
    """An sqlite store with its tables and no run: to make them takes seconds, to copy them none."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments(max_results=1)
    return path


@pytest.fixture
def store(tmp_path, made_store, monkeypatch):
    """The address of an empty store that MLFLOW_TRACKING_URI names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    shutil.copy(made_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return uri


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    wishes = ["--annotators", "4", "--batches", "4", "--overlap", "0.5"]
    assert annotate_export.main(["--data", str(DEMO), *wishes, "--output", str(folder)]) == 0
    key = read_key(folder / "private" / "design.json")
    for annotator in key.design.annotators:
        path = folder / "annotators" / annotator / f"{annotator}.xlsx"
        book = load_workbook(path)
        for tab in ("Text Only", "Audio Only"):
            for row in range(2, book[tab].max_row + 1):
                book[tab][f"C{row}"] = answer(key, book[tab][f"A{row}"].value)
        book.save(path)
    return folder


@pytest.fixture
def filled(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "round")
