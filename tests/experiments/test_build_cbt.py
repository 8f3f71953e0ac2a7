import json

import numpy as np
import pandas as pd
import pytest
import soundfile

from core.dataset import read_dataset
from core.datasets.fetching import FetchError
from experiments import build_cbt, evaluate
from experiments.settings import ROOT
from tests.core.datasets.releases import turn, write_recording, write_release
from validation.schemas import turns, validated

LONG = "I lay awake until four and then I gave up."


@pytest.fixture
def release(tmp_path):
    rows = [
        turn("001", 1, 1.0, 4.0, 3),
        turn("001", 2, 5.0, 8.0, 5, LONG, f"Therapist: And then?\nPatient: {LONG}"),
        turn("002", 1, 1.0, 4.0, 2),
        turn("003", 1, 2.0, 6.0, 1),
        turn("003", 2, 50.0, 60.0, 1),
    ]
    return write_release(tmp_path / "release", rows, videos=["001", "002", "003"])


@pytest.fixture
def build(tmp_path, release):
    write_recording(tmp_path / "recordings" / "001.wav")

    def give(wanted):
        if wanted.session_id == "002":
            raise FetchError("private", "Private video")
        return write_recording(tmp_path / "downloads" / f"{wanted.session_id}.wav")

    def run(**options):
        words = {
            "release": release,
            "recordings": tmp_path / "recordings",
            "downloads": tmp_path / "downloads",
            "output": tmp_path / "set",
            "pause": 0,
            "track": "false",
            **options,
        }
        return build_cbt.main([w for k, v in words.items() for w in (f"--{k}", str(v))], give)

    return run


def test_a_release_becomes_a_dataset_of_what_could_be_had(build, tmp_path, capsys):
    assert build() == 0

    dataset = read_dataset(tmp_path / "set", "distress")
    validated(dataset.items, turns(), "manifest")
    assert list(dataset.items["item_id"]) == ["001_001", "001_002", "003_001"]
    assert dataset.items["context"][1] == "Therapist: And then?"
    assert not dataset.synthetic
    assert "CC BY-NC 4.0" in dataset.licence
    assert dataset.about["released"] == 5
    assert dataset.about["lost"] == {"private": 1, "past_the_end": 1}
    said = capsys.readouterr().out
    assert "cbt-audio: 3 of 5 turns, 2 of 3 recordings" in said
    assert "1 turn of 1 recording, private: the video is private" in said


def test_a_release_as_published_says_so_and_counts_what_is_lost_of_it(
    build, tmp_path, capsys, store
):
    videos = [f"{number:03}" for number in range(1, 97)]
    # 1,802 turns over 96 recordings, of which one can be had.
    rows = [
        turn(videos[place % 96], place // 96 + 1, place // 96 * 0.5, place // 96 * 0.5 + 0.5, 3)
        for place in range(1802)
    ]
    published = write_release(tmp_path / "published", rows, videos=videos)

    assert build(release=published, fetch="false") == 0

    said = capsys.readouterr().out
    assert "cbt-audio: 19 of 1,802 turns, 1 of 96 recordings" in said
    assert "published: 7.3 h, mean 14.6 s, median 9.8 s over all 1,802 turns" in said
    assert "1,783 turns of 95 recordings, not_on_disk" in said
    asked = {"data": tmp_path / "set", "output": tmp_path / "runs", "model": "null"}
    asked |= {"conditions": "TO", "resamples": 20}
    assert evaluate.main([w for k, v in asked.items() for w in (f"--{k}", str(v))]) == 0
    assert "19 of 19 items (of 1,802 released)" in capsys.readouterr().out


def test_odd_turns_are_findings_and_no_crash(build, tmp_path, monkeypatch):
    said = "The weather was fine and we went out."
    rows = [
        turn("001", 1, 1.0, 4.0, 3, "I could not sleep at all last night."),
        turn("001", 2, 3.0, 6.0, 3, said),
        turn("001", 3, 2.0, 2.5, 3, "Too early and too short."),
        turn("001", 4, 7.0, 7.01, 3, "Nothing can be heard here."),
        turn("001", 5, 8.5, 10.1, 3, "At the very end of it."),
        turn("001", 6, 9.5, 60.0, 3, "Far past the end."),
    ]
    odd = write_release(tmp_path / "odd", rows)
    # Every clip says what the second turn says.
    monkeypatch.setattr("experiments.cbt_from_release.recogniser", lambda: lambda samples: said)

    assert build(release=odd, listen="true") == 0

    report = pd.read_csv(tmp_path / "set" / "data_report.csv", dtype=str)
    found = {(row["item_id"], row["kind"], row["kept"]) for row in report.to_dict("records")}
    assert {
        ("001_002", "overlapping", "yes"),
        ("001_003", "out_of_order", "yes"),
        ("001_003", "short", "yes"),
        ("001_004", "zero_length", "no"),
        ("001_005", "past_the_end", "yes"),
        ("001_006", "past_the_end", "no"),
        ("001_001", "heard_otherwise", "yes"),
    } <= found
    assert "which is what 001_002 says" in " ".join(report["found"])


def test_every_finding_is_in_the_report(build, tmp_path):
    build()

    report = pd.read_csv(tmp_path / "set" / "data_report.csv", dtype=str)
    assert list(
        zip(report["kind"], report["session_id"], report["turns"], report["kept"], strict=True)
    ) == [
        ("context_holds_transcript", "001", "1", "yes"),
        ("private", "002", "1", "no"),
        ("past_the_end", "003", "1", "no"),
    ]


def test_the_same_build_gives_the_same_hash_and_a_later_find_another(build, tmp_path):
    build()
    first = read_dataset(tmp_path / "set", "distress").hash
    build()
    assert read_dataset(tmp_path / "set", "distress").hash == first

    write_recording(tmp_path / "recordings" / "002.ogg")
    build()
    later = read_dataset(tmp_path / "set", "distress")
    assert later.hash != first
    assert len(later.items) == 4


def test_a_clip_lies_where_its_times_say(build, tmp_path):
    build(padding=0.5)

    times = pd.read_csv(tmp_path / "set" / "times.csv", dtype={"session_id": str})
    assert times.iloc[0].to_dict() == {
        "item_id": "001_001",
        "session_id": "001",
        "start_s": 1.0,
        "end_s": 4.0,
        "clip_start_s": 0.5,
        "clip_end_s": 4.5,
    }
    assert soundfile.info(tmp_path / "set" / "audio" / "001_001.flac").duration == 4.0


def test_where_nothing_could_be_had_the_report_is_written_and_the_reason_said(
    build, tmp_path, capsys
):
    (tmp_path / "recordings" / "001.wav").unlink()

    assert build(fetch="false") == 1

    assert "no turn could be had (no file of this id" in capsys.readouterr().err
    assert len(pd.read_csv(tmp_path / "set" / "data_report.csv")) == 4
    assert not (tmp_path / "set" / "dataset.json").exists()


def test_wrong_rows_end_the_build_and_can_be_left_out(build, release, tmp_path, capsys):
    path = release / "data" / "labeled_patient_turns.csv"
    path.write_text(path.read_text().replace("001_001,001,1,3,", "001_001,001,1,3.7,"))

    assert build() == 2
    assert (
        'row 1 (line 2), reference_label: expected an integer, found "3.7"'
        in capsys.readouterr().err
    )

    assert build(skip_invalid="true") == 0
    about = json.loads((tmp_path / "set" / "dataset.json").read_text())
    assert about["counts"]["items"] == 2
    assert about["released"] == 5
    assert about["lost"]["invalid_row"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"release": "", "recordings": ""}, "release or recordings: give release="),
        ({"asr": "whisperx"}, "asr: only a build from scratch takes it"),
        ({"release": "./nowhere"}, "release: there is no folder './nowhere'."),
        ({"recordings": "nowhere"}, "recordings: there is no folder 'nowhere'."),
        ({"cookies": "nowhere"}, "cookies: there is no file 'nowhere'."),
        ({"padding": "3"}, "padding: expected at most 2 seconds, found '3'."),
        ({"fetch": "maybe"}, "fetch: expected true or false, found 'maybe'."),
        ({"pause": "-1"}, "pause: expected a number of 0 or more, found '-1'."),
        ({"voice": "x"}, "unrecognized arguments"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(build, capsys, options, said):
    assert build(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_the_card_is_logged_to_mlflow(build, store):
    build(track="true")

    import mlflow

    client = mlflow.MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name("builds").experiment_id])
    assert (run.info.status, run.data.metrics["turns"], run.data.metrics["released"]) == (
        "FINISHED",
        3,
        5,
    )
    assert "3 of 5 turns" in run.data.tags["mlflow.note.content"]
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {
        "card.md",
        "data_report.csv",
    }


def test_turns_of_a_session_come_back_as_they_were_spoken(tmp_path):
    """A recording put together from the demo's clips, at half a second from each other."""
    spoken = pd.read_csv(ROOT / "demo/distress/manifest.csv").head(3)
    parts, rows, at = [np.zeros(8000)], [], 0.5
    for number, row in enumerate(spoken.to_dict("records"), start=1):
        samples, _ = soundfile.read(ROOT / "demo/distress" / row["audio"])
        end = at + len(samples) / 16_000
        rows.append(turn("001", number, at, end, row["label"], row["transcript"]))
        parts += [samples, np.zeros(8000)]
        at = end + 0.5
    write_release(tmp_path / "release", rows)
    (tmp_path / "recordings").mkdir()
    soundfile.write(tmp_path / "recordings" / "001.flac", np.concatenate(parts), 16_000)

    words = {"release": tmp_path / "release", "recordings": tmp_path / "recordings"}
    words |= {"output": tmp_path / "set", "synthetic": "true", "track": "false"}
    assert build_cbt.main([w for k, v in words.items() for w in (f"--{k}", str(v))]) == 0

    dataset = read_dataset(tmp_path / "set", "distress")
    assert dataset.synthetic
    for ours, row in zip(dataset.items["audio"], spoken.to_dict("records"), strict=True):
        clip, _ = soundfile.read(tmp_path / "set" / ours)
        samples, _ = soundfile.read(ROOT / "demo/distress" / row["audio"])
        assert np.abs(clip - samples).max() < 1e-4


def test_a_name_that_is_no_folder_is_asked_of_the_hub(build, release, monkeypatch, tmp_path):
    asked = []

    def snapshot_download(repo_id, **options):
        asked.append(
            (repo_id, options["repo_type"], options["revision"], options["allow_patterns"])
        )
        return str(release)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)

    assert build(release="CodyWho/cbt-audio", revision="abc") == 0
    assert asked == [("CodyWho/cbt-audio", "dataset", "abc", ["data/*.csv"])]


def test_a_hub_that_does_not_answer_is_one_sentence(build, monkeypatch, capsys):
    def snapshot_download(repo_id, **options):
        raise OSError("We couldn't connect\nto the hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)

    assert build(release="CodyWho/cbt-audio") == 2
    assert capsys.readouterr().err == (
        "build_cbt: release: no folder 'CodyWho/cbt-audio', and the hub did not give it "
        "(We couldn't connect).\n"
    )
