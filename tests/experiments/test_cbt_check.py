import json

import pandas as pd
import pytest

from core.turns import merge
from experiments import cbt_check
from tests.core.datasets.spoken import said

TRUE = [
    ("therapist", 0.2, 2.0, "How was the week?"),
    ("patient", 2.6, 5.0, "I could not sleep."),
    ("therapist", 5.6, 7.0, "What kept you awake?"),
    ("patient", 7.6, 9.0, "My boss did."),
]


@pytest.fixture
def check(tmp_path):
    """What was made of a recording: as true, or with its lines changed."""

    def run(made=TRUE, roles=None):
        names = ("speaker", "start_s", "end_s", "text")
        truth, words, turns = (tmp_path / name for name in ("truth", "words", "turns"))
        for folder in (truth, words / "speech", turns / "turns"):
            folder.mkdir(parents=True)
        lines = [dict(zip(names, line, strict=True)) for line in TRUE]
        (truth / "001.turns.json").write_text(json.dumps({"turns": lines}))
        heard = said(*made)
        heard.to_parquet(words / "001.parquet")
        stretches = pd.DataFrame(made, columns=names)
        stretches.drop(columns="text").to_csv(words / "speech" / "001.csv", index=False)
        table = merge(heard)
        roles = roles or {"therapist": "therapist", "patient": "patient"}
        table.assign(role=table["speaker"].map(roles)).to_csv(
            turns / "turns" / "001.csv", index=False
        )
        words = {"truth": truth, "words": words, "turns": turns}
        return cbt_check.main([w for k, v in words.items() for w in (f"--{k}", str(v))])

    return run


def test_what_was_made_as_true_holds_every_limit(check, capsys):
    assert check() == 0

    assert capsys.readouterr().out.splitlines()[0] == (
        "001: diarization error 0.000 (with NIST's collar 0.000), words wrong 0 of 15, by speaker 0, patient turns within 0.3 s 100% of 2, "
        "roles right"
    )


def test_exchanged_roles_miss(check, capsys):
    assert check(roles={"therapist": "patient", "patient": "therapist"}) == 1
    assert "roles wrong" in capsys.readouterr().out


def test_a_turn_that_ends_late_misses(check, capsys):
    assert check(made=[TRUE[0], ("patient", 2.6, 5.5, TRUE[1][3]), *TRUE[2:]]) == 1
    assert "50% of 2" in capsys.readouterr().out


def test_another_text_misses(check, capsys):
    assert check(made=[*TRUE[:3], ("patient", 7.6, 9.0, "My dog did.")]) == 1
    assert "words wrong 1 of 15" in capsys.readouterr().out


def test_a_session_that_was_not_transcribed_is_named(check, tmp_path, capsys):
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "000.turns.json").write_text('{"turns": []}')
    (tmp_path / "words").mkdir()
    (tmp_path / "turns").mkdir()
    words = {name: tmp_path / name for name in ("truth", "words", "turns")}

    assert cbt_check.main([w for k, v in words.items() for w in (f"--{k}", str(v))]) == 2
    assert "000.parquet is missing; run cbt_words, then cbt_turns." in capsys.readouterr().err


def test_a_corpus_transcript_is_compared_by_words_and_speakers(tmp_path, capsys):
    (tmp_path / "001.stm").write_text(
        ";; a comment\n001 1 Ann 0.2 2.0 <o> How was the week?\n001 1 Ben 2.6 5.0 I could not sleep.\n"
    )
    (tmp_path / "001.rttm").write_text(
        "SPEAKER 001 1 0.2 1.8 <NA> <NA> x <NA> <NA>\nSPEAKER 001 1 2.6 2.2 <NA> <NA> y <NA> <NA>\n"
    )
    heard = said(("S0", 0.2, 2.0, "How was the week? I"), ("S1", 2.6, 4.8, "could not sleep."))
    heard.to_parquet(tmp_path / "001.parquet")
    (tmp_path / "speech").mkdir()
    (tmp_path / "speech" / "001.csv").write_text("start_s,end_s,speaker\n0.2,2.0,S0\n2.6,4.8,S1\n")

    words = {"truth": tmp_path, "words": tmp_path, "turns": "none"}
    assert cbt_check.main([w for k, v in words.items() for w in (f"--{k}", str(v))]) == 0

    # "I" is Ben's: every word is right, two are wrong by speaker.
    assert capsys.readouterr().out == (
        "001: diarization error 0.000 (with NIST's collar 0.000), words wrong 0 of 8, by speaker 2\n"
    )


def test_a_broken_transcript_names_its_line(tmp_path, capsys):
    (tmp_path / "001.stm").write_text("001 1 Ann soon 2.0 Hello.\n")

    words = {"truth": tmp_path, "words": tmp_path, "turns": "none"}
    assert cbt_check.main([w for k, v in words.items() for w in (f"--{k}", str(v))]) == 2
    assert "001.stm, line 1: expected seconds, found 'soon'." in capsys.readouterr().err
