import json

import pandas as pd
import pytest

from core.datasets.roleplay import read_sessions
from experiments import cbt_turns, roles_service
from experiments.roles_service import Service
from experiments.settings import ROOT
from tests.core.datasets.releases import write_recording
from tests.core.datasets.spoken import said
from validation.schemas import validated
from validation.spoken import unlabelled

SESSION = read_sessions(ROOT / "demo" / "distress")[0]


def lines(session):
    """Five seconds a turn, half a second apart."""
    names = {"therapist": "SPEAKER_00", "patient": "SPEAKER_01"}
    return [
        (names[turn.role], 5.5 * n, 5.5 * n + 5, turn.text) for n, turn in enumerate(session.turns)
    ]


@pytest.fixture
def make(tmp_path):
    (tmp_path / "words").mkdir()
    said(*lines(SESSION)).to_parquet(tmp_path / "words" / "001.parquet")
    write_recording(tmp_path / "recordings" / "001.wav", 70.0)

    def run(**options):
        words = {
            "words": tmp_path / "words",
            "recordings": tmp_path / "recordings",
            "output": tmp_path / "turns",
            "track": "false",
            **options,
        }
        return cbt_turns.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    return run


def test_words_become_the_patients_turns_with_their_clips(make, tmp_path, capsys):
    assert make() == 0

    path = tmp_path / "turns" / "unlabelled.parquet"
    table = validated(pd.read_parquet(path), unlabelled(), str(path))
    patients = [turn.text for turn in SESSION.turns if turn.role == "patient"]
    assert list(table["transcript"]) == patients
    assert list(table["context"]) == [SESSION.context(n) for n in table["turn_index"]]
    assert all((tmp_path / "turns" / name).exists() for name in table["audio"])
    assert list(table["seconds"]) == [5.0] * len(patients)
    said = capsys.readouterr().out
    assert f"- spoken by the patient: {len(SESSION.turns)} -> {len(patients)}" in said


def test_every_turn_and_role_is_written_down(make, tmp_path):
    make()

    turns = pd.read_csv(tmp_path / "turns" / "turns" / "001.csv")
    assert list(turns["role"]) == [turn.role for turn in SESSION.turns]
    roles = pd.read_csv(tmp_path / "turns" / "roles.csv").set_index("speaker")
    assert roles.loc["SPEAKER_00", ["role", "by"]].to_list() == ["therapist", "offline"]
    assert roles.loc["SPEAKER_00", "questions"] > 0


def test_words_may_come_as_csv_and_a_word_may_be_null(make, tmp_path):
    (tmp_path / "words" / "001.parquet").unlink()
    words = said(*lines(SESSION))
    words.loc[0, "word"] = "null"
    words.to_csv(tmp_path / "words" / "001.csv", index=False)

    assert make() == 0
    turns = pd.read_csv(tmp_path / "turns" / "turns" / "001.csv")
    assert turns["text"][0].startswith("null ")


@pytest.fixture
def unclear(tmp_path):
    """A second recording whose roles nobody could tell."""
    said(("A", 0.0, 3.0, "Good morning all."), ("B", 4.0, 8.0, "Good morning again.")).to_parquet(
        tmp_path / "words" / "002.parquet"
    )
    write_recording(tmp_path / "recordings" / "002.wav", 20.0)


def test_a_recording_of_unclear_roles_is_left_out_and_named(make, tmp_path, unclear, capsys):
    assert make() == 0

    assert "left out: 002: roles_refused: " in capsys.readouterr().out
    report = pd.read_csv(tmp_path / "turns" / "data_report.csv", dtype=str)
    assert ("002", "roles_refused", "no") in set(
        zip(report["session_id"], report["kind"], report["kept"], strict=True)
    )


def test_roles_can_be_given_by_hand(make, tmp_path, unclear):
    by_hand = tmp_path / "roles.csv"
    by_hand.write_text("session_id,speaker,role\n002,A,therapist\n002,B,patient\n")

    assert make(roles=by_hand) == 0

    table = pd.read_parquet(tmp_path / "turns" / "unlabelled.parquet")
    assert list(table["item_id"])[-1] == "002_001"
    assert list(table["context"])[-1] == "Therapist: Good morning all."


def test_a_recording_that_is_not_there_is_said_and_nothing_left_is_1(make, tmp_path, capsys):
    (tmp_path / "recordings" / "001.wav").unlink()

    assert make() == 1
    told = capsys.readouterr()
    assert "left out: 001: not_on_disk" in told.out
    assert "no turn is left" in told.err


def test_where_nobody_is_the_patient_no_turn_is_left(make, tmp_path, capsys):
    roles = tmp_path / "roles.csv"
    roles.write_text("session_id,speaker,role\n001,SPEAKER_00,other\n001,SPEAKER_01,other\n")

    assert make(roles=roles) == 1
    told = capsys.readouterr()
    assert "left out: 001: no_patient_turn" in told.out
    assert "no turn is left" in told.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"words": "nowhere"}, "words: there is no folder 'nowhere'."),
        ({"words": ROOT / "docs"}, "has no table of words"),
        ({"roles": "claud"}, "roles: there is no file 'claud'."),
        ({"endpoint": "http://localhost:1/v1"}, "endpoint: roles=endpoint asks one"),
        ({"roles": "endpoint"}, "endpoint: roles=endpoint asks one"),
        ({"padding": "9"}, "padding: expected at most 2 seconds, found '9'."),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(make, capsys, options, said):
    assert make(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_whisperxs_json_is_taken_and_another_refused_by_name(make, tmp_path, capsys):
    (tmp_path / "words" / "001.parquet").unlink()
    path = tmp_path / "words" / "001.json"
    segments = [
        {
            "start": start,
            "end": end,
            "speaker": speaker,
            "words": [{"word": word, "start": start, "end": end} for word in text.split()],
        }
        for speaker, start, end, text in lines(SESSION)
    ]
    path.write_text(json.dumps({"segments": segments}))
    assert make() == 0

    path.write_text("{}")
    assert make() == 2
    assert "001.json: expected an object with segments" in capsys.readouterr().err


def test_two_tables_of_one_session_are_refused(make, tmp_path, capsys):
    (tmp_path / "words" / "001.json").write_text("{}")

    assert make() == 2
    assert "two files are of session '001'" in capsys.readouterr().err


def test_a_table_that_is_none_of_words_names_the_column(make, tmp_path, capsys):
    pd.DataFrame({"word": ["a"]}).to_csv(tmp_path / "words" / "000.csv", index=False)

    assert make() == 2
    assert "000.csv, segment_start_s: expected a column of this name" in capsys.readouterr().err


def test_an_endpoint_of_ones_own_can_tell_the_roles(make, tmp_path, unclear, monkeypatch):
    told = {"SPEAKER_00": "therapist", "SPEAKER_01": "patient", "A": "therapist", "B": "patient"}

    def service(address, model, kept, may_send):
        assert (address, kept) == ("http://localhost:8000/v1", tmp_path / "turns" / "answers")
        return Service("own", "", lambda asked, names: {n: told[n] for n in names}, kept, may_send)

    monkeypatch.setattr(roles_service, "endpoint", service)
    assert make(roles="endpoint", endpoint="http://localhost:8000/v1") == 0

    roles = pd.read_csv(tmp_path / "turns" / "roles.csv", dtype=str)
    assert list(roles["role"]) == ["therapist", "patient"] * 2
    assert set(roles["by"]) == {"own"}


def test_claude_is_sent_nothing_without_leave(make, monkeypatch, capsys):
    def service(model, kept, may_send):
        return Service(model, "api.anthropic.com", None, kept, may_send)

    monkeypatch.setattr(roles_service, "claude", service)

    assert make(roles="claude") == 2
    assert "would leave this machine for api.anthropic.com" in capsys.readouterr().err
