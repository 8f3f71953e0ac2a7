import json
import sys
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from core.dataset import read_dataset
from core.ssr import examples
from experiments import cbt_labels
from experiments.settings import ROOT
from tests.core.datasets.releases import write_recording
from validation.schemas import turns, validated

CALM, TENSE, FRANTIC = examples()[0].text, examples()[6].text, examples()[9].text


@pytest.fixture
def make(tmp_path):
    rows = [
        ("001_001", 1, CALM),
        ("001_001", 2, CALM),
        ("001_001", 3, FRANTIC),
        ("001_003", 1, CALM),
        ("001_003", 2, TENSE),
        ("001_003", 3, FRANTIC),
        ("001_005", 1, ""),
        ("001_005", 2, None),
        ("001_005", 3, " "),
    ]
    table = pd.DataFrame(rows, columns=["item_id", "run", "description"])
    table.to_csv(tmp_path / "descriptions.csv", index=False)

    def run(**options):
        words = {
            "descriptions": tmp_path / "descriptions.csv",
            "output": tmp_path / "labels",
            "track": "false",
            **options,
        }
        return cbt_labels.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    return run


@pytest.fixture
def spoken(tmp_path):
    folder = tmp_path / "turns"
    rows = []
    for number in (1, 3, 5):
        write_recording(folder / "audio" / f"001_{number:03}.flac", 3.0)
        rows.append(
            (
                f"001_{number:03}",
                "001",
                number,
                f"audio/001_{number:03}.flac",
                "Words.",
                "",
                1.0,
                4.0,
                "A",
                3.0,
            )
        )
    names = ["item_id", "session_id", "turn_index", "audio", "transcript", "context"]
    names += ["start_s", "end_s", "speaker", "seconds"]
    pd.DataFrame(rows, columns=names).to_parquet(folder / "unlabelled.parquet")
    return folder


def test_three_runs_become_a_label_by_majority_then_median(make, tmp_path):
    assert make() == 0

    labels = pd.read_csv(tmp_path / "labels" / "labels.csv", dtype={"item_id": str})
    assert list(labels["votes"]) == ["1|1|5", "1|4|5", "-|-|-"]
    assert labels["label"].to_list()[:2] == [1, 4]
    assert labels["label"].isna().to_list() == [False, False, True]
    assert labels.loc[0, [f"p_{n}" for n in range(1, 6)]].sum() == pytest.approx(1)


def test_every_description_keeps_its_similarities(make, tmp_path):
    make()

    rated = pd.read_csv(tmp_path / "labels" / "similarities.csv")
    assert len(rated) == 9
    first = rated.iloc[0]
    assert first["label"] == 1
    assert first["cosine_1"] == first[[f"cosine_{n}" for n in range(1, 6)]].max()
    assert rated.iloc[6:][["cosine_1", "label", "p_1"]].isna().all(axis=None)


def test_the_summary_shows_stability_and_the_embeddings_own_bias(make, capsys):
    make()

    said = capsys.readouterr().out
    assert "3 turns, 3 runs, embedded by all-MiniLM-L6-v2 int8 (8199be6f)" in said
    assert "without a label: 1 turns; descriptions without words: 3" in said
    # Of 1|1|5 and 1|4|5 no turn holds within one level; of their six pairs 1-1 and 4-5 do.
    assert "all runs within one level: 0.0% of 2 turns with all runs, all equal 0.0%" in said
    assert "pairs of runs: within one level 33.3%, equal 16.7%" in said
    assert "9 of 10 example descriptions" in said
    assert "written for 3: 3, 1" in said


def test_numbers_asked_for_directly_are_set_beside(make, tmp_path, capsys):
    scores = tmp_path / "scores.csv"
    scores.write_text("item_id,run,score\n001_001,1,1\n001_003,1,2\n")

    assert make(scores=scores) == 0

    out = capsys.readouterr().out
    assert "on 2 turns: equal 50.0%, within one level 50.0%" in out
    assert "holds 50.0% of the labels and 50.0% of the scores" in out
    direct = pd.read_csv(tmp_path / "labels" / "direct.csv").set_index("ssr")
    assert (direct.loc[1, "direct_1"], direct.loc[4, "direct_2"], direct.to_numpy().sum()) == (
        1,
        1,
        2,
    )


def test_the_runs_spread_and_the_embeddings_bias_are_tables(make, tmp_path):
    make()

    spread = pd.read_csv(tmp_path / "labels" / "stability.csv").set_index("of")
    assert spread.loc["run 1", ["n", "n_1", "share_1"]].to_list() == [2, 2, 1.0]
    assert spread.loc["voted", ["n_1", "n_4"]].to_list() == [1, 1]
    bias = pd.read_csv(tmp_path / "labels" / "bias.csv")
    assert list(bias["level"]) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert (bias["level"] == bias["label"]).sum() == 9


def test_the_dataset_says_what_decided_its_labels(make, spoken, tmp_path):
    described = {"model": "gpt-audio-1.5", "host": "api.openai.com", "prompt_sha256": "ab"}
    (tmp_path / "descriptions.json").write_text(json.dumps({**described, "asked": 9}))

    make(turns=spoken)

    about = json.loads((tmp_path / "labels" / "dataset.json").read_text())
    assert about["described_by"]["model"] == "gpt-audio-1.5"
    assert about["described_by"]["prompt_sha256"] == "ab"
    assert "asked" not in about["described_by"]
    assert about["embedder"].startswith("all-MiniLM-L6-v2 int8 (")
    content = (tmp_path / "descriptions.csv").read_bytes()
    assert about["descriptions_sha256"] == sha256(content).hexdigest()
    assert len(about["anchors_sha256"]) == 64


def test_bge_m3_is_asked_for_at_the_revision_that_is_given(make, monkeypatch, tmp_path):
    asked = []

    class Model:
        def __init__(self, name, revision):
            asked.append((name, revision))

        def encode(self, texts, normalize_embeddings):
            return np.eye(16)[[len(text) % 16 for text in texts]]

    library = SimpleNamespace(SentenceTransformer=Model)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)

    assert make(embedder="bge-m3", revision="a" * 40) == 0
    assert asked == [("BAAI/bge-m3", "a" * 40)]
    about = json.loads((tmp_path / "labels" / "labels.json").read_text())
    assert about["embedder"] == f"BAAI/bge-m3@{'a' * 40}"


def test_with_turns_it_becomes_a_dataset_that_can_be_evaluated(make, spoken, tmp_path, capsys):
    assert make(turns=spoken, synthetic="true", licence="CC0-1.0") == 0

    dataset = read_dataset(tmp_path / "labels", "distress")
    items = validated(dataset.items, turns(), "manifest")
    assert list(zip(items["item_id"], items["label"], strict=True)) == [
        ("001_001", 1),
        ("001_003", 4),
    ]
    assert (dataset.synthetic, dataset.licence) == (True, "CC0-1.0")
    assert dataset.about["turns_without_a_label"] == 1
    assert "cbt-own: 2 of 3 turns" in capsys.readouterr().out


def test_descriptions_of_other_turns_are_refused_by_name(make, spoken, tmp_path, capsys):
    path = tmp_path / "descriptions.csv"
    path.write_text(path.read_text().replace("001_001", "009_001"))

    assert make(turns=spoken) == 2
    assert "found 009_001" in capsys.readouterr().err


def test_a_run_twice_is_refused(make, tmp_path, capsys):
    path = tmp_path / "descriptions.csv"
    path.write_text(path.read_text() + "001_001,1,again\n")

    assert make() == 2
    assert (
        "row 10, run: expected a value no row above has within its item_id"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"descriptions": "nowhere"}, "descriptions: there is no file 'nowhere'."),
        ({"embedder": "bert"}, "embedder: expected one of offline, bge-m3, found 'bert'."),
        ({"turns": ROOT / "docs"}, "has no unlabelled.parquet; run cbt_turns."),
        ({"revision": "main"}, "revision: expected a whole commit"),
        ({"licence": ""}, "licence: expected words, found nothing."),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(make, capsys, options, said):
    assert make(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
