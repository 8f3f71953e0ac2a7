"""The image's own loop, with stand-ins that have the published signatures of its packages."""

import json
import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import yaml

from containers.runtime.card import read_card
from containers.whisperx import __main__ as loop
from containers.whisperx import pipeline, punkt
from experiments.settings import ROOT, card_file, models, recognisers

FAKES = Path(__file__).with_name("fakes")


@pytest.fixture
def image(tmp_path, weights, monkeypatch, capsys):
    """The loop over these recordings: name -> seconds."""
    for name in ("audio", "output"):
        (tmp_path / name).mkdir()
    for name in ("torch", "whisperx", "pyannote", "pyannote.audio"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(FAKES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls.jsonl"))
    monkeypatch.setenv("PYANNOTE_METRICS_ENABLED", "1")
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    places = ("--audio", "audio", "--output", "output", "--weights", "weights/whisperx")

    def run(seconds, *words):
        for name, length in seconds.items():
            path = tmp_path / "audio" / f"{name}.wav"
            soundfile.write(path, np.zeros(int(length * 16_000)), 16_000, subtype="PCM_16")
        code = loop.main([*places, *words])
        lines = (tmp_path / "calls.jsonl").read_text().splitlines()
        calls = {call.pop("name"): call for call in map(json.loads, lines)}
        results = {p.stem: json.loads(p.read_text()) for p in (tmp_path / "output").iterdir()}
        return SimpleNamespace(code=code, calls=calls, results=results, err=capsys.readouterr().err)

    yield run
    for name in ("torch", "whisperx", "pyannote", "pyannote.audio"):
        sys.modules.pop(name, None)


def test_a_recording_becomes_segments_with_words_and_speakers(image):
    done = image({"one": 5.0}, "--batch", "4", "--max-speakers", "3")

    assert done.code == 0, done.err
    first, second = done.results["one"]["segments"]
    assert [word.get("speaker") for word in first["words"]] == ["SPEAKER_00"] * 5 + [None]
    assert second["words"][0]["speaker"] == "SPEAKER_01"
    assert done.results["one"]["diarization"][1] == {
        "start": 1.8,
        "end": 4.1,
        "speaker": "SPEAKER_01",
    }
    assert done.calls["transcribe"] == {"samples": 80_000, "batch_size": 4, "language": "en"}
    assert done.calls["diarize"] == {"least": None, "most": 3}


def test_models_come_from_the_weights_alone_and_nothing_is_reported(image):
    done = image({"one": 5.0})

    loaded = done.calls["load_model"]
    assert loaded["arch"] == "weights/whisperx/whisper"
    assert (loaded["local"], loaded["offline"], loaded["reports"]) == (True, "1", "0")
    assert loaded["silent"] == "1"
    assert loaded["compute_type"] == "int8"
    assert done.calls["load_align_model"] == {
        "model": "weights/whisperx/aligner",
        "cached": True,
    }
    config = done.calls["from_pretrained"]["config"]
    assert config["pipeline"]["params"] == {
        "clustering": "AgglomerativeClustering",
        "embedding": "weights/whisperx/pyannote-embedding/pytorch_model.bin",
        "segmentation": "weights/whisperx/pyannote-segmentation/pytorch_model.bin",
        "plda": "weights/whisperx/pyannote-community/plda",
    }
    assert config["params"]["clustering"]["threshold"] == 0.7


def test_one_recording_that_fails_says_why_and_the_others_go_on(image):
    done = image({"bad": 0.4, "good": 5.0})

    assert done.code == 0
    assert done.results["bad"] == {"failed": "RuntimeError: CUDA error: too short"}
    assert len(done.results["good"]["segments"]) == 2


def test_without_memory_for_it_the_run_ends_with_3(image):
    done = image({"huge": 0.2})

    assert done.code == 3
    assert "out of memory" in done.err
    assert done.results == {}


def test_what_is_there_is_not_done_again(image, tmp_path):
    image({"one": 5.0})
    (tmp_path / "calls.jsonl").write_text("")

    done = image({"one": 5.0, "two": 5.0})

    assert (tmp_path / "calls.jsonl").read_text().count('"transcribe"') == 1
    assert set(done.results) == {"one", "two"}


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(pipeline.LoadError, match=r"lacks whisper, aligner.*-P model=whisperx"):
        pipeline.load(tmp_path, device="cpu", precision="auto", threads=1)


def test_the_published_configuration_needs_nothing_else_from_the_hub(weights):
    config = yaml.safe_load((weights / "whisperx" / pipeline.PIPELINE).read_text())

    found = pipeline.local(config, weights / "whisperx")

    assert not [v for v in found["pipeline"]["params"].values() if str(v).startswith("pyannote/")]
    # pyannote takes a string with "wespeaker" and without "pyannote" for an ONNX file.
    assert "wespeaker" not in pipeline.EMBEDDING


def test_sentence_tables_are_unpacked_if_they_are_the_known_ones(tmp_path):
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("punkt_tab/english/abbrev_types.txt", "dr\n")
        archive.writestr("punkt_tab/czech/abbrev_types.txt", "mj\n")
        archive.writestr("punkt_tab/english/../../evil", "")
    content = written.getvalue()

    assert punkt.unpack(content, tmp_path, sha256(content).hexdigest()) == 1
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["abbrev_types.txt"]
    with pytest.raises(ValueError, match="expected sha256 e57f6418"):
        punkt.unpack(content, tmp_path)


def test_it_is_no_model_and_has_a_card_an_image_and_weights():
    assert recognisers() == ["whisperx"]
    assert "whisperx" not in models()

    card = read_card(card_file("whisperx"))

    assert [repo.id for repo in card.repos if repo.gated] == [
        "pyannote/speaker-diarization-3.1",
        "pyannote/segmentation-3.0",
        "pyannote/speaker-diarization-community-1",
    ]
    assert len({repo.folder for repo in card.repos}) == len(card.repos)
    assert any("HF_TOKEN" in note for note in card.notes)
    recipe = (ROOT / "containers" / "whisperx" / "Dockerfile").read_text()
    # onnxruntime, which comes with it, reports its use since 1.29 unless told not to.
    assert {"PYANNOTE_METRICS_ENABLED=0", "ORT_DISABLE_TELEMETRY=1"} < set(recipe.split())
    assert "HF_TOKEN" not in recipe
    assert punkt.SHA256 not in recipe
    assert card.repos[2].revision in recipe
