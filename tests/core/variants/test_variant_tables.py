"""What a variant cost, by hand, and what is said where nothing can be."""

import numpy as np
import pandas as pd
import pytest

from core.detection import scores
from core.tasks import distress
from core.variants import Variant
from core.variants.tables import (
    comparison,
    drops,
    hearing_notes,
    hearing_table,
    prompts_notes,
    share_of_gain,
    variants_table,
)
from tests.core.variants.ratings import rated

SILENCE = Variant("AT", "hearing", "silence")
GOLD = [1, 2, 3, 4, 5] * 8
# Right in every other turn, and the middle of the scale in between.
AT = [g if n % 2 else 3 for n, g in enumerate(GOLD)]


def compared(measure=distress.MEASURE, resamples=200, **cells):
    named = {name.replace("_", ".", 1): cell for name, cell in cells.items()}
    return comparison(named, measure, resamples=resamples, seed=0)


def off_by_one(gold):
    return gold + 1 if gold < 5 else 4


def row(table, name):
    return table.set_index("given").loc[name]


def test_the_drop_is_how_much_worse_the_same_turns_are_answered():
    # gold 1 2 3 4; AT right everywhere; silence off by 0, 1, 2 and not answered.
    found = compared(
        AT=rated([1, 2, 3, 4], [1, 2, 3, 4]), AT_silence=rated([1, 3, 5, None], [1, 2, 3, 4])
    )
    silence = row(variants_table(found, [SILENCE]), "AT.silence")

    assert (silence["answered"], silence["mae"], silence["drop"]) == ("3/4", 1.0, 1.0)
    assert silence["changed"] == pytest.approx(2 / 3)
    assert silence["shift"] == pytest.approx((0 + 1 + 2) / 3)
    assert silence["drop low"] <= 1.0 <= silence["drop high"]


def test_a_condition_itself_has_no_drop_to_speak_of():
    found = compared(AT=rated(GOLD, GOLD), AT_silence=rated(AT, GOLD))
    own = row(variants_table(found, [SILENCE]), "AT")

    assert own["mae"] == 0.0
    assert own["drop"] is None
    assert own["p"] is None


def test_a_higher_accuracy_is_no_drop():
    gold = ["YES", "NO"] * 10
    right = rated([None] * 20, [1] * 20).assign(prediction=gold, gold=gold)
    found = compared(
        measure=scores.MEASURE, AT=right, AT_silence=right.assign(prediction=["YES"] * 20)
    )
    silence = row(variants_table(found, [SILENCE]), "AT.silence")

    assert silence["drop"] == 0.5
    same = compared(measure=scores.MEASURE, AT=right, AT_silence=right)
    assert str(row(variants_table(same, [SILENCE]), "AT.silence")["drop"]) == "0.0"
    assert drops(found, [SILENCE])[0].value == -0.5


def test_the_row_of_words_alone_is_the_pair_the_run_shows_turned_round():
    cells = {"AT": rated(AT, GOLD), "TO": rated([off_by_one(g) for g in GOLD], GOLD)}
    shown = row(hearing_table(compared(**cells, AT_silence=cells["TO"]), [SILENCE]), "TO")

    table = pd.concat([cell.assign(condition=name) for name, cell in cells.items()])
    figures = distress.score(table, resamples=200, seed=0)
    (pair,) = (e for e in figures if (e.metric, e.condition) == ("mae", "AT-TO"))
    assert shown["drop"] == -pair.value
    ends = [shown["drop low"], shown["drop high"]]
    assert ends == pytest.approx([-pair.high, -pair.low])


def test_a_variant_as_bad_as_words_alone_loses_all_of_the_gain():
    words = rated([off_by_one(g) for g in GOLD], GOLD)
    found = compared(AT=rated(GOLD, GOLD), TO=words, AT_silence=words)
    share = share_of_gain(found, "AT.silence")

    assert (share.value, share.low, share.high, share.n) == (1.0, 1.0, 1.0, 40)


def test_a_variant_halfway_loses_half():
    words = [off_by_one(g) for g in GOLD]
    half = [w if n % 2 else g for n, (w, g) in enumerate(zip(words, GOLD, strict=True))]
    found = compared(AT=rated(GOLD, GOLD), TO=rated(words, GOLD), AT_silence=rated(half, GOLD))
    share = share_of_gain(found, "AT.silence")

    assert share.value == pytest.approx(0.5)
    assert share.low < 0.5 < share.high


def test_without_a_gain_there_is_no_share_of_it():
    found = compared(AT=rated(AT, GOLD), TO=rated(AT, GOLD), AT_silence=rated(GOLD, GOLD))
    share = share_of_gain(found, "AT.silence")

    assert np.isnan(share.value)
    assert share.reason.startswith("AT's gain over TO is 0.00 [0.00, 0.00]: not above 0")
    assert "no gain to divide up" in hearing_notes(found, [SILENCE])[0]


def test_a_variant_nobody_answered_is_undefined_with_a_reason():
    nothing = rated([None] * len(GOLD), GOLD)
    found = compared(AT=rated(GOLD, GOLD), TO=rated(AT, GOLD), AT_silence=nothing)
    silence = row(hearing_table(found, [SILENCE]), "AT.silence")

    assert silence["answered"] == "0/40"
    assert all(np.isnan(silence[name]) for name in ("mae", "drop", "changed", "share of gain"))
    assert silence["p"] == "undefined"
    assert (
        "the drop is undefined (no item was answered by both)" in hearing_notes(found, [SILENCE])[0]
    )


def test_answers_drawn_at_random_show_no_drop():
    drawing = np.random.default_rng(3)
    gold = drawing.integers(1, 6, 400).tolist()
    cells = {name: rated(drawing.integers(1, 6, 400).tolist(), gold) for name in "abc"}
    found = compared(AT=cells["a"], TO=cells["b"], AT_silence=cells["c"])
    silence = row(hearing_table(found, [SILENCE]), "AT.silence")

    assert silence["drop low"] < 0 < silence["drop high"]
    assert float(silence["p"]) > 0.05
    assert silence["changed"] == pytest.approx(0.8, abs=0.06)


def test_the_range_over_wordings_names_its_ends():
    wordings = [Variant("AT", "prompts", name) for name in ("paraphrase_1", "reversed")]
    found = compared(
        AT=rated(AT, GOLD),
        AT_paraphrase_1=rated(GOLD, GOLD),
        AT_reversed=rated([6 - g for g in GOLD], GOLD),
    )

    assert prompts_notes(found, wordings) == [
        "prompts, AT: mae from 0.00 (AT.paraphrase_1) to 2.40 (AT.reversed) over 3 wordings, "
        "on the 40/40 items answered in each."
    ]


def test_the_range_over_wordings_is_of_the_items_answered_in_each():
    names = ("paraphrase_1", "paraphrase_2", "reversed")
    wordings = [Variant("AO", "prompts", name) for name in names]
    # AO off by 0, 1, 4 and not answered; paraphrase_1 by 1, 1, 0, 4; paraphrase_2 by 0, 0, -, 0.
    ao, other = [1, 3, 1, None], [2, 3, 5, 5]
    cells = {
        "AO": rated(ao, [1, 2, 5, 1]),
        "AO_paraphrase_1": rated(other, [1, 2, 5, 1]),
        "AO_paraphrase_2": rated([1, 2, None, 1], [1, 2, 5, 1]),
        "AO_reversed": rated([None] * 4, [1, 2, 5, 1]),
    }
    # All three answered the first two: off by 0 and 1, 1 and 1, 0 and 0.
    assert prompts_notes(compared(**cells), wordings) == [
        "prompts, AO: no item was answered in AO.reversed.",
        "prompts, AO: mae from 0.00 (AO.paraphrase_2) to 1.00 (AO.paraphrase_1) over 3 wordings, "
        "on the 2/4 items answered in each.",
    ]
    apart = {
        "AO": rated([1, None], [1, 2]),
        "AO_paraphrase_1": rated([None, 2], [1, 2]),
    }
    assert prompts_notes(compared(**apart), wordings[:1]) == [
        "prompts, AO: no range of mae, no item was answered in all 2 wordings."
    ]


def test_what_a_row_says_of_its_condition_rests_on_what_both_answered():
    # Both answered the first and the last; the refused ones have a distribution all the same.
    gold, given, silent = [1, 2, 3, 4], [1, None, 3, 4], [2, 2, None, 4]
    found = compared(
        AT=rated(given, gold, expected=[1.0, 5.0, 3.0, 4.0]),
        AT_silence=rated(silent, gold, expected=[1.5, 1.0, 1.0, 4.0]),
    )
    silence = row(variants_table(found, [SILENCE]), "AT.silence")

    assert (silence["answered"], silence["both"]) == ("3/4", "2/4")
    assert (silence["drop"], silence["changed"], silence["shift"]) == (0.5, 0.5, 0.25)
    assert row(variants_table(found, [SILENCE]), "AT")["both"] is None


def test_a_shift_that_would_rest_on_fewer_items_is_undefined():
    found = compared(
        AT=rated([1, 2], [1, 2]), AT_silence=rated([2, 2], [1, 2], expected=[np.nan, 2.0])
    )
    silence = row(variants_table(found, [SILENCE]), "AT.silence")

    assert (silence["both"], silence["changed"]) == ("2/2", 0.5)
    assert np.isnan(silence["shift"])


def test_each_flag_is_a_family_of_its_own_for_holm():
    two = [SILENCE, Variant("AT", "hearing", "mismatched")]
    found = compared(
        AT=rated(GOLD, GOLD), AT_silence=rated(AT, GOLD), AT_mismatched=rated(AT, GOLD)
    )
    alone = row(variants_table(found, two[:1]), "AT.silence")
    together = row(variants_table(found, two), "AT.silence")

    assert alone["p"] == alone["p_holm"] == together["p"]
    assert float(together["p_holm"]) == pytest.approx(2 * float(together["p"]), rel=0.05)
