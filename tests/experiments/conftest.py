"""Workbooks as annotators send them back."""

import shutil

import pytest
from openpyxl import load_workbook

from experiments import annotate_export
from experiments.settings import ROOT
from tests.experiments.annotation_round import answer
from validation.annotation_key import read_key

DEMO = ROOT / "demo" / "manipulation"


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
