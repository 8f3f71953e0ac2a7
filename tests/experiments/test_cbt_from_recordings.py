"""`build_cbt` without a release: recordings to a labelled dataset, stage by stage."""

import json

import mlflow
import pandas as pd
import pytest

from containers.runtime.response_log import ResponseLog, read_responses
from core.dataset import read_dataset
from core.datasets.fetching import FetchError
from core.protocol import Response, read_requests
from core.ssr import examples
from experiments import build_cbt
from experiments.cbt_from_recordings import listed
from experiments.options import OptionError
from tests.core.datasets.releases import write_recording
from tests.experiments.test_cbt_turns import SESSION, lines
from validation.schemas import turns, validated


def whisperxs(session):
    """What WhisperX writes of a session that is spoken as it is written."""
    return {
        "segments": [
            {
                "start": start,
                "end": end,
                "speaker": speaker,
                "words": [
                    {"word": word, "start": start, "end": end, "score": 0.9, "speaker": speaker}
                    for word in text.split()
                ],
            }
            for speaker, start, end, text in lines(session)
        ]
    }


@pytest.fixture
def build(tmp_path):
    write_recording(tmp_path / "recordings" / "001.wav", 70.0)
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "001.json").write_text(json.dumps(whisperxs(SESSION)))

    def model(job):
        known = read_responses(job.responses)
        todo = [one for one in read_requests(job.requests) if one.id not in known]
        run.asked.append(len(todo))
        with ResponseLog(job.responses) as log:
            log.append([Response(one.id, "ok", text=examples()[0].text) for one in todo])

    def fetch(wanted):
        if wanted.session_id == "gone":
            raise FetchError("private", "Private video")
        return write_recording(tmp_path / "downloads" / f"{wanted.session_id}.wav", 70.0)

    def run(**options):
        words = {
            "recordings": tmp_path / "recordings",
            "transcripts": tmp_path / "transcripts",
            "downloads": tmp_path / "downloads",
            "stages": tmp_path / "stages",
            "output": tmp_path / "set",
            "runs": 2,
            "pause": 0,
            "synthetic": "true",
            "track": "false",
            **options,
        }
        arguments = [w for k, v in words.items() for w in (f"--{k}", str(v))]
        return build_cbt.main(arguments, fetch, None, model)

    run.asked = []
    return run


def test_recordings_become_a_labelled_dataset(build, tmp_path, capsys):
    assert build() == 0

    dataset = read_dataset(tmp_path / "set", "distress")
    items = validated(dataset.items, turns(), "manifest")
    patients = [turn.text for turn in SESSION.turns if turn.role == "patient"]
    assert list(items["transcript"]) == patients
    assert set(items["label"]) == {1}
    assert dataset.synthetic
    assert dataset.about["described_by"]["model"] == "voxtral"
    assert dataset.about["runs"] == 2
    assert f"cbt-own: {len(patients)} of {len(patients)} turns" in capsys.readouterr().out


def test_no_stage_is_done_twice(build, capsys):
    build()
    build()

    assert build.asked == [2 * sum(turn.role == "patient" for turn in SESSION.turns)]
    assert "001: transcribed before" in capsys.readouterr().out


def test_labels_none_stops_at_turns(build, tmp_path, capsys):
    assert build(labels="none") == 0

    assert "turns without labels" in capsys.readouterr().out
    assert (tmp_path / "stages" / "turns" / "unlabelled.parquet").exists()
    assert build.asked == []


def test_a_dry_run_says_what_describing_would_take(build, tmp_path, capsys):
    assert build(dry_run="true", price="0.06") == 0

    assert "Nothing was asked (dry_run=true)" in capsys.readouterr().out
    assert not (tmp_path / "set").exists()


def test_a_stage_that_cannot_go_on_ends_the_build_with_its_code(build, tmp_path, capsys):
    roles = tmp_path / "roles.csv"
    roles.write_text("session_id,speaker,role\n001,SPEAKER_00,other\n001,SPEAKER_01,other\n")

    assert build(roles=roles) == 1
    assert "cbt_turns: no turn is left" in capsys.readouterr().err


def test_a_list_of_files_and_addresses_is_taken_as_far_as_it_goes(build, tmp_path, capsys):
    (tmp_path / "transcripts" / "far.json").write_text(json.dumps(whisperxs(SESSION)))
    path = tmp_path / "list.txt"
    path.write_text(
        "# ours\nrecordings/001.wav\nfar, https://youtu.be/abcdefghijk\n"
        "gone, https://youtu.be/abcdefghij2\nnowhere.wav\n"
    )

    assert build(recordings=path) == 0

    out = capsys.readouterr().out
    assert "gone: the video is private" in out
    assert "nowhere: there is no file nowhere.wav" in out
    items = read_dataset(tmp_path / "set", "distress").items
    assert set(items["session_id"]) == {"001", "far"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no line"),
        ("a.wav\nb/a.wav\n", "line 2: a second 'a'; name it"),
        ("../x,y.wav\n", "line 1: expected a file, an address, or a name"),
    ],
)
def test_a_list_that_is_none_names_its_line(tmp_path, text, said):
    path = tmp_path / "list.txt"
    path.write_text(text)
    with pytest.raises(OptionError, match=said):
        listed(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"recordings": ""}, "release or recordings: give release="),
        ({"recordings": "nowhere"}, "recordings: there is no folder or list 'nowhere'."),
        ({"listen": "true"}, "listen: only a build from a release takes it; give release="),
        ({"labels": "human"}, "labels: expected one of ssr, none, found 'human'."),
        ({"roles": "endpoint"}, "endpoint: roles=endpoint asks one"),
        ({"runner": "server"}, "endpoint: runner=server asks one"),
        ({"model": "gpt"}, "model: expected one of"),
        ({"embedder": "bert"}, "embedder: expected one of offline, bge-m3"),
        ({"asr": "cloud"}, "asr: expected one of offline, whisperx"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(build, capsys, options, said):
    assert build(**options) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert "words" not in told.out


def test_paid_or_remote_stages_ask_for_leave(build, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert build(model="gpt-audio-1.5") == 2
    assert "would leave this machine for api.openai.com" in capsys.readouterr().err


def test_one_run_holds_what_every_stage_found(build, store, tmp_path):
    assert build(track="true") == 0

    client = mlflow.MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name("builds").experiment_id])
    metrics, patients = run.data.metrics, sum(turn.role == "patient" for turn in SESSION.turns)
    assert metrics["words/recordings"] == 1
    assert metrics["turns/rule_1_spoken_by_the_patient.before"] == len(SESSION.turns)
    assert metrics["turns/rule_1_spoken_by_the_patient.after"] == patients
    assert metrics["turns/clips"] == metrics["labels/labelled"] == patients
    assert metrics["descriptions/status_ok"] == 2 * patients
    assert metrics["labels/within_one_all_runs"] == 1
    assert run.data.params["undertone.descriptions.model"] == "voxtral"
    assert run.inputs.dataset_inputs[0].dataset.name == "cbt-own"
    assert run.data.tags["synthetic"] == "true"
    kept = {
        file.path
        for folder in ("words/words", "turns", "descriptions", "labels")
        for file in client.list_artifacts(run.info.run_id, folder)
    }
    assert {
        "words/words/001.parquet",
        "turns/rules.csv",
        "turns/turns",
        "turns/unlabelled.parquet",
        "descriptions/descriptions.csv",
        "descriptions/descriptions-responses.jsonl",
        "labels/similarities.csv",
        "labels/labels.csv",
        "labels/stability.json",
        "labels/bias.json",
        "labels/card.md",
    } <= kept
    assert not [name for name in kept if name.endswith((".wav", ".flac", ".lock"))]


def test_a_store_elsewhere_gets_no_words_unless_asked(build, store, monkeypatch, capsys):
    from experiments import track_build

    monkeypatch.setattr(track_build, "keeps_words", lambda run: False)

    assert build(track="true", labels="none") == 0
    assert "words of the recordings were not logged" in capsys.readouterr().out
    assert build(track="words", labels="none") == 0

    client = mlflow.MlflowClient(store)
    runs = client.search_runs(
        [client.get_experiment_by_name("builds").experiment_id], order_by=["start_time"]
    )
    kept = [{file.path for file in client.list_artifacts(run.info.run_id, "turns")} for run in runs]
    assert ["turns/unlabelled.parquet" in paths for paths in kept] == [False, True]
    assert all("turns/rules.csv" in paths for paths in kept)


def test_the_words_of_a_recording_come_from_its_transcript(build, tmp_path):
    build(labels="none")

    words = pd.read_parquet(tmp_path / "stages" / "words" / "001.parquet")
    assert len(words) == sum(len(turn.text.split()) for turn in SESSION.turns)


@pytest.mark.parametrize(("sidecar", "synthetic"), [("001.turns.json", True), ("001.txt", False)])
def test_recordings_that_were_rendered_make_a_synthetic_set(build, tmp_path, sidecar, synthetic):
    (tmp_path / "recordings" / sidecar).write_text("{}")

    assert build(synthetic="auto") == 0

    told = json.loads((tmp_path / "set" / "dataset.json").read_text())
    assert told["synthetic"] is synthetic


def test_a_model_that_cannot_be_run_is_told_before_anything_is_transcribed(tmp_path, capsys):
    write_recording(tmp_path / "recordings" / "001.wav", 3.0)
    words = {"recordings": tmp_path / "recordings", "stages": tmp_path / "stages"}
    words |= {"model": "voxtral", "runner": "docker", "output": tmp_path / "set"}
    arguments = [word for key, value in words.items() for word in (f"--{key}", str(value))]

    assert build_cbt.main(arguments, transcriber=lambda _: pytest.fail("transcribed")) == 1

    assert "build_cbt: No runner can take voxtral: docker:" in capsys.readouterr().err
    assert not (tmp_path / "stages" / "words").exists()
