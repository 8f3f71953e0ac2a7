"""Flags become variants, and a variant is checked to change one thing alone."""

from dataclasses import replace

import pandas as pd
import pytest

from core.modality import ModalityError
from core.tasks import TaskError, task
from core.variants import Variant, assert_variant, variants

ALL = ("AO", "AT", "TO")
TURNS = pd.DataFrame(
    {
        "item_id": ["s1_0", "s1_1"],
        "session_id": ["s1", "s1"],
        "transcript": ["I'm fine.", "My hands were shaking and I could not breathe at all."],
        "context": ["", "Therapist: What happened then?"],
        "label": [1, 5],
    }
)
OWN = {"s1_0": "a.wav", "s1_1": "b.wav"}
OTHER = {"s1_0": "b.wav", "s1_1": "a.wav"}
SILENCE = Variant("AT", "hearing", "silence")


def names(conditions=ALL, **settings):
    return [variant.name for variant in task("distress").variants(settings, conditions)]


def planned(condition="AT", audio=OWN, **settings):
    entries = task("distress").plan(
        TURNS, condition, seed=0, settings=settings, audio=audio, model_digest="m"
    )
    return {entry.item_id: entry.request for entry in entries}


def test_no_flag_asks_for_nothing():
    assert names() == []


def test_each_flag_asks_for_its_variants_once():
    assert names(hearing="silence, mismatched,silence") == ["AT.silence", "AT.mismatched"]
    assert names(robustness="noise:10,noise:10.0,level:+12", robustness_on="AO") == [
        "AO.noise_10",
        "AO.level_12",
    ]
    assert names(prompts="reversed", prompts_on="TO,AO") == ["AO.reversed", "TO.reversed"]


def test_variants_are_of_the_conditions_that_are_asked():
    assert names(("AT",), robustness="telephone") == ["AT.telephone"]


def test_no_name_holds_the_sign_between_two_conditions():
    flags = {"robustness": "noise:-5,level:-12,speed:0.9", "prompts": "paraphrase_1,reversed"}

    assert all("-" not in name and " " not in name for name in names(**flags))


@pytest.mark.parametrize(
    ("conditions", "flags", "said"),
    [
        (("AO", "TO"), {"hearing": "silence"}, "hearing: it changes the clip of AT"),
        (("TO",), {"robustness": "telephone"}, "robustness: robustness_on is AO,AT"),
        (("AO",), {"prompts": "reversed", "prompts_on": "TO"}, "prompts: prompts_on is TO"),
        (ALL, {"prompts": "reversed", "wording": "reversed"}, "reversed is the wording of the run"),
        (("AO", "TO"), {"divergence": "5"}, "divergence: .* leaves out AT"),
        (ALL, {"hearing": "deaf"}, "hearing: expected some of mismatched, silence, neutral"),
        (ALL, {"robustness": "level:0"}, "robustness: expected noise:SNR in dB"),
        (ALL, {"prompts": "paper"}, "prompts: expected some of paraphrase_1"),
        (ALL, {"robustness_on": "TO"}, "robustness_on: expected some of AO,AT"),
        (ALL, {"trajectories": "yes"}, "trajectories: expected one of false, true"),
    ],
)
def test_a_flag_that_cannot_work_is_one_sentence(conditions, flags, said):
    with pytest.raises(TaskError, match=said):
        task("distress").variants(flags, conditions)


def test_dialogues_have_no_neutral_speech_since_they_are_tts_themselves():
    with pytest.raises(TaskError, match="hearing: expected some of mismatched, silence"):
        task("manipulation").variants({"hearing": "neutral"}, ALL)


def test_another_clip_and_nothing_else_is_a_variant():
    assert_variant(SILENCE, planned(audio=OTHER), planned(), OWN, {})


def test_the_items_own_clip_is_no_variant():
    heard = planned(audio={"s1_0": "z.wav", "s1_1": "b.wav"})

    with pytest.raises(ModalityError, match=r"item s1_1, AT\.silence: .* own, found b\.wav"):
        assert_variant(SILENCE, heard, planned(), OWN, {})


def test_an_item_without_a_clip_is_never_sent_and_not_checked():
    assert_variant(SILENCE, planned(), planned(), OWN, {"s1_0": "why", "s1_1": "why"})


def test_a_variant_keeps_items_context_words_and_seed():
    base = planned()
    fewer = {"s1_0": planned(audio=OTHER)["s1_0"]}
    with pytest.raises(ModalityError, match="expected the same items in the same order"):
        assert_variant(SILENCE, fewer, base, OWN, {})

    def changed(**fields):
        heard = planned(audio=OTHER)
        return heard | {"s1_1": replace(heard["s1_1"], **fields)}

    parts = planned(audio=OTHER)["s1_1"].parts
    told = tuple(p | {"text": "x"} if p.get("slot") == "context" else p for p in parts)
    for fields, said in (
        ({"seed": 1}, "expected the seed of AT"),
        ({"system": None}, "expected system prompt, context and transcript of AT"),
        ({"parts": told}, "expected system prompt, context and transcript of AT"),
        ({"parts": (*parts, {"text": "!"})}, "expected the words of AT"),
    ):
        with pytest.raises(ModalityError, match=said):
            assert_variant(SILENCE, changed(**fields), base, OWN, {})


def test_other_words_keep_the_items_own_clip():
    reversed_scale = Variant("AT", "prompts", "reversed")
    asked = planned(wording="reversed")

    assert_variant(reversed_scale, asked, planned(), OWN, {})
    with pytest.raises(ModalityError, match="expected the item's own clip"):
        assert_variant(reversed_scale, planned(audio=OTHER), planned(), OWN, {})
    assert_variant(
        Variant("TO", "prompts", "reversed"),
        planned("TO", wording="reversed"),
        planned("TO"),
        OWN,
        {},
    )


def test_the_import_of_a_flagless_plan_is_as_ever():
    assert variants({}, ALL) == ()
