"""Compiled tables, a column a rater, as study 2 published its annotations."""

import csv

import pandas as pd
import pytest

from experiments import annotate_import
from validation.ratings import read_ratings
from validation.scale import scale_named


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_compiled_tables_need_no_design(tmp_path, capsys):
    path = tmp_path / "annotations_text_compiled.csv"
    path.write_text("ID,MentalManip,A,B,C\nd1,1,1,0,\nd2,0,0,0,1\n")
    out = tmp_path / "out"
    assert annotate_import.main(["--answers", str(path), "--output", str(out)]) == 0
    assert "completeness is not checked" in capsys.readouterr().out
    assert len(rows(out / "ratings_text.csv")) == 5
    assert [row["status"] for row in rows(out / "consensus_text.csv")] == ["UNRESOLVED", "MAJORITY"]
    path.write_text("ID,MentalManip,A,B,C\nd1,1,1,0,\nd2,0,0,7,1\n")
    assert annotate_import.main(["--answers", str(path), "--output", str(out)]) == 2
    assert (
        "row 3 (item d2), B: expected one of 0 (NO), 1 (YES), found '7'" in capsys.readouterr().err
    )


def test_a_compiled_table_says_its_modality_in_its_name_or_is_told(tmp_path, capsys):
    path = tmp_path / "compiled.csv"
    path.write_text("ID,A,B\nd1,1,0\nd2,0,0\n")
    arguments = ["--answers", str(path), "--output", str(tmp_path / "out")]
    assert annotate_import.main(arguments) == 2
    assert "modality: the name of compiled.csv does not say" in capsys.readouterr().err
    assert annotate_import.main([*arguments, "--modality", "audio"]) == 0
    assert (tmp_path / "out" / "ratings_audio.csv").exists()


@pytest.mark.shared
def test_the_study_s_own_tables_come_through_unchanged(shared, tmp_path):
    folder = shared / "data" / "speech_mentalmanip"
    files = [folder / f"annotations_{mode}_compiled.csv" for mode in ("text", "audio")]
    arguments = ["--answers", ",".join(map(str, files)), "--output", str(tmp_path)]
    assert annotate_import.main(arguments) == 0
    for mode, path in zip(("text", "audio"), files, strict=True):
        ours = read_ratings(tmp_path / f"ratings_{mode}.csv", scale_named("nominal"))
        theirs = read_ratings(path, scale_named("nominal"))
        order = [ours.raters.index(name) for name in theirs.raters]
        assert ours.items == theirs.items
        assert pd.DataFrame(ours.values[:, order]).equals(pd.DataFrame(theirs.values))
        assert pd.Series(ours.reference).equals(pd.Series(theirs.reference))
