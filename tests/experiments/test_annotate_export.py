import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from openpyxl import load_workbook

from core.dataset import write_dataset
from experiments.annotate_export import OPTIONS, main
from experiments.settings import ROOT
from validation.annotation_key import read_key

DEMO = ROOT / "demo" / "manipulation"
FOUR = ["--annotators", "4", "--batches", "4"]


def export(folder, *more, data=DEMO):
    return main(["--data", str(data), *FOUR, "--output", str(folder), *more])


def test_demo_is_the_set_that_comes_along_and_the_way_back_is_told(tmp_path, capsys):
    assert export(tmp_path, data="demo") == 0
    said = capsys.readouterr().out
    assert "demo-manipulation: 12 items" in said
    assert said.endswith(f"Filled in: mlflow run . -e annotate_import -P answers={tmp_path}\n")


def test_each_annotator_gets_a_workbook_and_the_clips_in_it(tmp_path, capsys):
    assert export(tmp_path) == 0
    assert "1.33 ratings an item expected (items by ratings: 8 with 1, 4 with 2)" in (
        capsys.readouterr().out
    )
    folders = sorted(path.name for path in (tmp_path / "annotators").iterdir())
    assert folders == [f"annotator_{number}" for number in range(1, 5)]
    for folder in (tmp_path / "annotators").iterdir():
        sheet = load_workbook(folder / f"{folder.name}.xlsx")["Audio Only"]
        heard = [row[1].value for row in sheet.iter_rows(min_row=2)]
        assert sorted(heard) == sorted(path.name for path in (folder / "audio").iterdir())


def test_nothing_that_annotators_get_holds_an_id_or_a_label(tmp_path):
    export(tmp_path)
    key = read_key(tmp_path / "private" / "design.json")
    given = [p for p in tmp_path.rglob("*") if p.is_file() and "private" not in p.parts]
    words = [p.name for p in given]
    words += [p.read_text(encoding="utf-8") for p in given if p.suffix in (".json", ".xml")]
    for path in given:
        if path.suffix == ".xlsx":
            tabs = load_workbook(path).worksheets
            words += [str(cell.value) for tab in tabs for row in tab.rows for cell in row]
    everything = "\n".join(words)
    assert not [item for item in key.design.items if item in everything]
    assert set(key.reference.values()) == {"YES", "NO"}
    # In the interface they are the two choices.
    tasks = [
        p.read_text(encoding="utf-8")
        for p in given
        if p.name.startswith("annotator_") and p.suffix == ".json"
    ]
    assert not [text for text in tasks if '"YES"' in text or '"NO"' in text or "label" in text]


def test_the_key_says_who_got_what_and_which_clip_is_which_item(tmp_path):
    export(tmp_path)
    key = read_key(tmp_path / "private" / "design.json")
    manifest = pd.read_csv(DEMO / "manifest.csv").set_index("item_id")
    for each in key.shown:
        if each.modality == "audio":
            assert each.content == manifest.audio_sha256[each.item_id][:32] + ".flac"
    sheet = load_workbook(tmp_path / "annotators/annotator_2/annotator_2.xlsx")["Text Only"]
    codes = [row[0].value for row in sheet.iter_rows(min_row=2)]
    assert codes == [each.code for each in key.asked("annotator_2", "text")]
    texts = [manifest.transcript[each.item_id] for each in key.asked("annotator_2", "text")]
    assert [row[1].value for row in sheet.iter_rows(min_row=2)] == texts


def test_a_part_of_a_recording_is_cut_out(tmp_path):
    import soundfile

    data = tmp_path / "data"
    shutil.copytree(DEMO / "audio", data / "audio")
    clip = sorted((data / "audio").iterdir())[0].name
    rows = pd.DataFrame(
        {
            "item_id": [f"d{n}" for n in range(8)],
            "audio": f"audio/{clip}",
            "transcript": "Person1: Hello.",
            "label": ["YES", "NO"] * 4,
            "start_s": [0.25 * n for n in range(8)],
            "end_s": [0.25 * n + 0.5 for n in range(8)],
        }
    )
    about = {"name": "parts", "task": "manipulation", "licence": "CC0-1.0", "source": "x"}
    write_dataset(data, rows, synthetic=True, **about)
    assert export(tmp_path / "round", "--overlap", "0.5", data=data) == 0
    clips = list((tmp_path / "round" / "label_studio" / "audio").iterdir())
    assert len(clips) == 8
    assert {soundfile.info(path).duration for path in clips} == {0.5}


def test_the_same_export_again_is_the_same_and_another_needs_another_folder(tmp_path, capsys):
    assert export(tmp_path) == 0
    tasks = {p.name: p.read_bytes() for p in (tmp_path / "label_studio").glob("*.json")}
    assert export(tmp_path) == 0
    assert tasks == {p.name: p.read_bytes() for p in (tmp_path / "label_studio").glob("*.json")}
    capsys.readouterr()
    assert export(tmp_path, "--seed", "1") == 2
    assert "is the key of another round" in capsys.readouterr().err


def test_a_workbook_somebody_began_to_fill_in_is_not_written_over(tmp_path, capsys):
    assert export(tmp_path) == 0
    workbook = sorted(tmp_path.glob("annotators/*/*.xlsx"))[1]
    book = load_workbook(workbook)
    book["Audio Only"]["C2"] = "Yes"
    book.save(workbook)
    before = workbook.read_bytes()

    assert export(tmp_path) == 2
    assert f"{workbook} has 1 answer in it" in capsys.readouterr().err
    assert workbook.read_bytes() == before


def test_an_odd_transcript_is_told(tmp_path, capsys):
    data = tmp_path / "data"
    shutil.copytree(DEMO, data)
    items = pd.read_csv(data / "manifest.csv")
    items.loc[0, "transcript"] = "=1+1 bell \x07"
    items.loc[1, "transcript"] = "Person1: line\n" * 60
    (data / "manifest.csv").unlink()
    about = json.loads((data / "dataset.json").read_text())
    named = {name: about[name] for name in ("name", "task", "licence", "source", "synthetic")}
    write_dataset(data, items, **named)
    assert export(tmp_path / "round", data=data) == 0
    said = capsys.readouterr().out
    assert "demo_01: 1 control characters that no workbook can hold" in said
    assert "1 conversations are longer than a row shows" in said


def test_the_batches_fit_a_small_set_unless_a_number_is_asked_for(tmp_path, capsys):
    arguments = ["--data", str(DEMO), "--output", str(tmp_path / "out")]
    assert main([*arguments, "--batches", "10"]) == 2
    assert "12 items make 10 batches too small" in capsys.readouterr().err
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "12 items, 8 annotators, 6 batches a modality." in said
    assert "batches=auto: 6, not the study's 10, for which 12 items and 8 annotators" in said
    assert len(read_key(tmp_path / "out" / "private" / "design.json").design.batches) == 6


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("data", "nowhere", "data: there is no folder 'nowhere'"),
        ("annotators", "many", "annotators: expected a whole number of 0 or more, found 'many'"),
        ("batches", "some", "batches: expected auto or a whole number of 2 or more, found 'some'"),
        ("batches", "8", "12 items make 8 batches too small"),
        ("overlap", "30", "overlap: expected 0.2-0.5 (a share, not per cent)"),
        ("both_modalities", "perhaps", "both_modalities: expected true or false"),
        ("output", "", "output: expected a folder, found ''"),
        ("colour", "red", "unrecognized arguments"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_writes_nothing(tmp_path, capsys, option, value, message):
    arguments = ["--data", str(DEMO), *FOUR, "--output", str(tmp_path / "out")]
    assert main([*arguments, f"--{option}", value]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not (tmp_path / "out").exists()


def test_help_needs_nothing_heavy():
    code = (
        "import sys; from experiments import annotate_export, annotate_import\n"
        "heavy = {'pandas', 'numpy', 'openpyxl', 'scipy', 'mlflow'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ, check=False)
    assert done.returncode == 0


def test_mlproject_offers_every_option():
    import yaml

    project = yaml.safe_load(Path(ROOT, "MLproject").read_text())
    from experiments import annotate_import

    for name, options in (
        ("annotate_export", OPTIONS),
        ("annotate_import", annotate_import.OPTIONS),
    ):
        entry = project["entry_points"][name]
        assert set(entry["parameters"]) == set(options)
        assert all(
            f"--{option} {{{option}}}" in " ".join(entry["command"].split()) for option in options
        )
        for option, (default, _) in options.items():
            assert entry["parameters"][option].get("default", "") == default
