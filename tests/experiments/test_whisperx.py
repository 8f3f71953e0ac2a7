"""`cbt_words -P asr=whisperx` as a process and as a container, with stand-ins for its packages."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from containers.whisperx import __main__ as loop
from core.words import settle
from experiments import cbt_words, images, whisperx
from experiments.runners import docker as docker_runner
from experiments.settings import ROOT
from tests.containers.whisperx.conftest import write_weights
from tests.core.datasets.releases import write_recording
from validation.schemas import validated
from validation.spoken import words as words_schema

FAKED = ("torch", "whisperx", "pyannote", "pyannote.audio")
FAKES = ROOT / "tests" / "containers" / "whisperx" / "fakes"


@pytest.fixture
def make(tmp_path, monkeypatch):
    write_recording(tmp_path / "recordings" / "Session of Ann.wav", 5.0, rate_hz=44_100)
    monkeypatch.setenv("UNDERTONE_WEIGHTS", str(write_weights(tmp_path / "weights")))
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    monkeypatch.setenv("FAKE_CALLS", str(tmp_path / "calls.jsonl"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")

    def here(command, **options):
        """The loop without another Python, which takes a second to start."""
        for name, value in options["env"].items():
            monkeypatch.setenv(name, value)
        if "HF_TOKEN" not in options["env"]:
            monkeypatch.delenv("HF_TOKEN", raising=False)
        code = loop.main(command[3:])
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(whisperx, "subprocess", SimpleNamespace(run=here))
    for name in FAKED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(FAKES)

    def run(**options):
        words = {
            "recordings": tmp_path / "recordings",
            "output": tmp_path / "words",
            "asr": "whisperx",
            "runner": "process",
            "track": "false",
            **options,
        }
        return cbt_words.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    yield run
    for name in FAKED:
        sys.modules.pop(name, None)


def calls(folder, name):
    lines = (folder / "calls.jsonl").read_text().splitlines()
    return [call for call in map(json.loads, lines) if call["name"] == name]


def test_the_words_table_is_as_the_offline_one_is(make, tmp_path, capsys):
    assert make(speakers="2") == 0

    path = tmp_path / "words" / "Session of Ann.parquet"
    words = validated(pd.read_parquet(path), words_schema(), str(path))
    assert list(words["word"]) == ["How", "was", "the", "week", "in", "2014?", "Long."]
    settled = settle(words)
    assert settled.without_times == 1
    assert list(settled.words["speaker"]) == ["SPEAKER_00"] * 6 + ["SPEAKER_01"]
    speech = pd.read_csv(tmp_path / "words" / "speech" / "Session of Ann.csv")
    assert list(speech["start_s"]) == [0.1, 1.8]
    assert "Session of Ann: 7 words, 2 speakers, 5 s" in capsys.readouterr().out
    assert calls(tmp_path, "diarize") == [{"name": "diarize", "least": 2, "most": 2}]


def test_the_model_is_given_neither_a_title_nor_the_token(make, tmp_path):
    # As a killed run leaves it.
    (tmp_path / "words" / "sounds-left").mkdir(parents=True)
    make()

    assert calls(tmp_path, "load_model")[0]["token"] is None
    (kept,) = (tmp_path / "words" / "whisperx").iterdir()
    (result,) = kept.iterdir()
    assert len(result.stem) == 32
    assert not list((tmp_path / "words").glob("sounds-*"))


def test_a_recording_is_heard_once_and_again_under_other_settings(make, tmp_path, capsys):
    make()
    make()
    assert len(calls(tmp_path, "transcribe")) == 1
    assert "transcribed before" in capsys.readouterr().out

    make(speakers="2-3")
    assert len(calls(tmp_path, "transcribe")) == 2


def test_a_recording_that_fails_is_named_and_tried_again_later(make, tmp_path, capsys):
    write_recording(tmp_path / "recordings" / "short.wav", 0.4)
    assert make() == 1
    assert "short: failed: RuntimeError: CUDA error: too short" in capsys.readouterr().out

    write_recording(tmp_path / "recordings" / "short.wav", 5.0)
    assert make() == 0


def test_without_memory_it_says_what_to_change(make, tmp_path, capsys):
    write_recording(tmp_path / "recordings" / "huge.wav", 0.2)

    assert make() == 1
    assert "try a smaller batch=" in capsys.readouterr().err


def test_weights_that_are_missing_name_the_command(make, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("UNDERTONE_WEIGHTS", str(tmp_path / "nowhere"))

    assert make() == 1
    assert "mlflow run . -e weights -P model=whisperx" in capsys.readouterr().err


def test_what_whisperx_wrote_elsewhere_is_read_instead(make, tmp_path, capsys):
    folder = tmp_path / "transcripts"
    folder.mkdir()
    words = [{"word": "Hello", "start": 0.5, "end": 0.9, "score": 0.7, "speaker": "SPEAKER_00"}]
    segments = [
        {"start": 0.4, "end": 1.0, "text": " Hello", "words": words, "speaker": "SPEAKER_00"},
        {"start": 2.0, "end": 3.0, "text": " 20 20", "words": [], "speaker": "SPEAKER_01"},
    ]
    path = folder / "Session of Ann.json"
    path.write_text(json.dumps({"segments": segments}))

    assert make(transcripts=folder) == 0
    table = pd.read_parquet(tmp_path / "words" / "Session of Ann.parquet")
    assert list(table["word"]) == ["Hello", "20", "20"]
    assert not (tmp_path / "calls.jsonl").exists()

    segments[0]["end"] = 0.1
    path.write_text(json.dumps({"segments": segments}))
    assert make(transcripts=folder) == 1
    assert "segment_end_s: expected a time not before" in capsys.readouterr().out

    segments[0]["end"], words[0]["end"] = 1.0, 0.4
    path.write_text(json.dumps({"segments": segments}))
    assert make(transcripts=folder) == 1
    assert " end_s: expected a time not before start_s" in capsys.readouterr().out

    path.write_text('{"segments": 3}')
    assert make(transcripts=folder) == 1
    assert "Session of Ann.json: expected an object with segments" in capsys.readouterr().out


class Engine:
    """A Docker engine that runs the image's command here, mounts replaced by their sources."""

    def __init__(self, image="sha256:one"):
        self.images = SimpleNamespace(get=lambda tag: self.image)
        self.image = SimpleNamespace(id=image, attrs={"Size": 1}, labels={})
        self.containers = self
        self.created = []

    def info(self):
        return {"MemTotal": 8 << 30}

    def list(self, **_):
        return []

    def create(self, **options):
        self.created.append(options)
        self.left = False
        return self

    def start(self):
        options = self.created[-1]
        words = options["command"]
        for mount in options["mounts"]:
            words = [mount["Source"] if word == mount["Target"] else word for word in words]
        command = [sys.executable, "-m", "containers.whisperx", *words]
        self.done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, env=os.environ)

    def logs(self, **_):
        return [self.done.stderr]

    def wait(self):
        return {"StatusCode": self.done.returncode}

    def stop(self, **_): ...

    def remove(self, **_):
        self.left = True


@pytest.fixture
def engine(monkeypatch):
    fake = Engine()
    monkeypatch.setattr(images, "engine", lambda: fake)
    built = SimpleNamespace(digest="sha256:one", tag="undertone/whisperx:latest", labels={})
    monkeypatch.setattr(images, "find", lambda client, name: built)
    monkeypatch.setattr(images, "why_stale", lambda built, name: None)
    return fake


def test_in_its_image_it_has_no_network_and_sees_three_folders(make, tmp_path, engine):

    assert make(runner="auto", gpus="none") == 0

    (options,) = engine.created
    assert options["network_mode"] == "none"
    assert (options["read_only"], options["cap_drop"]) == (True, ["ALL"])
    assert options["environment"]["PYANNOTE_METRICS_ENABLED"] == "0"
    assert "HF_TOKEN" not in options["environment"]
    assert {mount["Target"]: mount["ReadOnly"] for mount in options["mounts"]} == {
        "/data/audio": True,
        "/data/output": False,
        "/weights": True,
    }
    assert options["labels"][docker_runner.MODEL] == "whisperx"
    assert options["device_requests"] == []
    assert engine.left
    assert (tmp_path / "words" / "Session of Ann.parquet").exists()


def test_with_gpus_it_asks_for_them(make, engine):
    make(runner="docker", gpus="0,1")

    (request,) = engine.created[0]["device_requests"]
    assert request["DeviceIDs"] == ["0", "1"]


def test_without_image_or_packages_it_says_how_to_get_them(make, monkeypatch, capsys):
    def engine():
        raise images.ImageError("No Docker engine answers.")

    monkeypatch.setattr(images, "engine", engine)
    monkeypatch.setattr(whisperx, "find_spec", lambda name: None)

    assert make(runner="auto") == 2
    err = capsys.readouterr().err
    assert "No Docker engine answers. Or give transcripts" in err
    assert err.count("\n") == 1
