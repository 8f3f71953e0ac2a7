"""The paper's tactic tables from their counts, and Table 1 from MentalManip itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from core.metrics.tactics import (
    TACTICS,
    gold_tactics,
    hit_rate,
    macro_f1,
    tactic_counts,
    tactic_distribution,
)

# SpeechMentalManip, Tables 1, 4 and 5
TABLE_1 = [
    ("Persuasion or Seduction", 607, "25.87"),
    ("Shaming or Belittlement", 384, "16.37"),
    ("Accusation", 361, "15.39"),
    ("Intimidation", 321, "13.68"),
    ("Rationalization", 213, "9.08"),
    ("Brandishing Anger", 133, "5.67"),
    ("Denial", 87, "3.71"),
    ("Evasion", 83, "3.54"),
    ("Playing Victim Role", 69, "2.94"),
    ("Feigning Innocence", 58, "2.47"),
    ("Playing Servant Role", 30, "1.28"),
]
TABLE_4 = [
    ("Intimidation", 43, "49.43"),
    ("Persuasion or Seduction", 26, "29.89"),
    ("Shaming or Belittlement", 12, "13.79"),
    ("Accusation", 4, "4.60"),
    ("Playing Servant Role", 2, "2.30"),
]
TABLE_5 = [
    ("Persuasion or Seduction", 9, "56.25"),
    ("Intimidation", 6, "37.50"),
    ("Accusation", 1, "6.25"),
]


def printed(table):
    return [
        (name, count, f"{percent:.2f}") for name, count, percent in table.itertuples(index=False)
    ]


@pytest.mark.parametrize(("published", "clips"), [(TABLE_4, 87), (TABLE_5, 16)])
def test_tables_4_and_5_come_out_to_the_printed_digit(published, clips):
    named = [name for name, count, _ in published for _ in range(count)]
    assert len(named) == clips
    assert printed(tactic_distribution(named)) == published


@pytest.mark.shared
def test_table_1_comes_out_of_mentalmanip_exactly(shared):
    dialogues = pd.read_csv(shared / "data/mentalmanip/mentalmanip_con.csv", dtype=str)
    named = [name for techniques in dialogues["Technique"] for name in gold_tactics(techniques)]
    assert printed(tactic_distribution(named)) == TABLE_1


def test_the_percentages_keep_a_clip_named_none_in_their_denominator():
    table = tactic_distribution(["Denial", "none"])
    assert list(table["%"]) == [50, 50]


def test_no_naming_gives_an_empty_table():
    assert tactic_distribution([]).empty


def test_a_hit_is_any_of_the_gold_tactics():
    gold = [("Denial", "Evasion"), ("Accusation",), (), ("Denial",)]
    # hit, miss, left out, miss as nothing was named
    share, clips = hit_rate(["Evasion", "Denial", "Denial", None], gold)
    assert (share, clips) == (1 / 3, 3)


def test_a_hit_rate_over_no_clips_is_undefined():
    share, clips = hit_rate(["Denial"], [()])
    assert np.isnan(share)
    assert clips == 0


def test_macro_f1_equals_scikit_learn_over_the_tactics_that_occur():
    drawn = np.random.default_rng(5)
    gold = [
        tuple(drawn.choice(TACTICS[:8], size=drawn.integers(1, 4), replace=False))
        for _ in range(60)
    ]
    predicted = [str(name) for name in drawn.choice([*TACTICS[:6], "none"], size=60)]
    encode = MultiLabelBinarizer(classes=TACTICS).fit([TACTICS])
    answers = encode.transform([() if name == "none" else (name,) for name in predicted])
    expected = f1_score(encode.transform(gold), answers, average=None, zero_division=np.nan)
    value, tactics = macro_f1(predicted, gold)
    assert tactics == (~np.isnan(expected)).sum() == 8
    assert value == pytest.approx(np.nanmean(expected), abs=1e-12)


def test_tactic_counts_hold_hits_false_alarms_and_misses():
    table = tactic_counts(["Denial", "Denial"], [("Denial", "Evasion"), ("Accusation",)])
    rows = dict(zip(TACTICS, table.tolist(), strict=True))
    assert rows["Denial"] == [1, 1, 0]
    assert rows["Evasion"] == rows["Accusation"] == [0, 0, 1]


def test_techniques_are_split_at_commas_and_unknown_names_refused():
    assert gold_tactics("Denial, Evasion") == ("Denial", "Evasion")
    assert gold_tactics(float("nan")) == ()
    with pytest.raises(ValueError, match="found 'Lying'"):
        gold_tactics("Lying")
