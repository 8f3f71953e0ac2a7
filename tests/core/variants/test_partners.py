"""Whose clip stands in: never one's own, the same each time, the nearest likeness first."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.variants.partners import Partner, gender_of, partners


def turns(sessions, **columns):
    ids = [f"t{number}" for number in range(len(sessions))]
    return pd.DataFrame({"item_id": ids, "session_id": sessions, **columns})


def chosen(items, clips=None, seed=0, wanted=None):
    clips = clips or {item_id: f"{item_id}.wav" for item_id in items["item_id"]}
    own = {k: v for k, v in clips.items() if wanted is None or k in wanted}
    return partners(items, own, lambda ids: {k: clips[k] for k in ids if k in clips}, seed=seed)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=30), st.integers(0, 5))
def test_nobody_is_their_own_partner_and_a_session_stays_among_itself(sessions, seed):
    items = turns(list(sessions))
    found = chosen(items, seed=seed)
    session = dict(zip(items["item_id"], items["session_id"], strict=True))

    assert list(found) == list(items["item_id"])
    for item_id, partner in found.items():
        assert partner.item_id != item_id
        alone = list(session.values()).count(session[item_id]) == 1
        assert partner.likeness == ("anything" if alone else "recording")
        assert alone or session[partner.item_id] == session[item_id]
    assert chosen(items, seed=seed) == found


def test_another_seed_draws_other_partners():
    items = turns(["s"] * 30)

    assert chosen(items, seed=0) != chosen(items, seed=1)


def test_a_limit_changes_no_partner():
    items = turns(["s"] * 8 + ["r"] * 8)

    assert chosen(items, wanted={"t0", "t9"}) == {
        k: v for k, v in chosen(items).items() if k in ("t0", "t9")
    }


def test_without_a_turn_of_the_same_recording_the_gender_is_kept():
    items = turns(["a", "b", "c", "d"], gender=["female", "male", "Female", "male"])

    assert chosen(items) == {
        "t0": Partner("t2", "gender"),
        "t1": Partner("t3", "gender"),
        "t2": Partner("t0", "gender"),
        "t3": Partner("t1", "gender"),
    }


def test_the_gender_of_a_voice_we_know_is_known():
    assert gender_of({"voice": "george"}) == "male"
    assert gender_of({"voice": "heart", "gender": None}) == "female"
    assert gender_of({"voice": "somebody"}) is None
    assert gender_of({"gender": " F "}) == gender_of({"gender": "Woman"}) == "female"
    assert gender_of({"gender": "nonbinary"}) == "nonbinary"
    assert gender_of({"gender": np.nan}) is None


def test_a_clip_that_sounds_the_same_is_no_partner():
    items = turns(["s", "s", "s"])
    clips = {"t0": "same.wav", "t1": "same.wav", "t2": "other.wav"}

    found = chosen(items, clips)

    assert found["t0"].item_id == found["t1"].item_id == "t2"
    assert chosen(turns(["s", "s"]), {"t0": "same.wav", "t1": "same.wav"}) == {}


def test_what_cannot_be_played_is_passed_over():
    items = turns(["s", "s", "r"])

    assert chosen(items, {"t0": "a.wav", "t2": "c.wav"}) == {
        "t0": Partner("t2", "anything"),
        "t2": Partner("t0", "anything"),
    }


def test_an_only_item_has_no_partner():
    assert chosen(turns(["s"])) == {}


def test_a_large_session_is_not_put_in_order_for_each_of_its_turns():
    items = turns(["s"] * 3000)
    asked = []

    def playable(ids):
        asked.append(len(ids))
        return {k: f"{k}.wav" for k in ids}

    own = {f"t{n}": f"t{n}.wav" for n in range(3000)}
    assert len(partners(items, own, playable, seed=0)) == 3000
    assert len(asked) < 5


@pytest.mark.parametrize("voices", [["emma,george"] * 2 + ["heart,fable"] * 2])
def test_dialogues_in_the_same_voices_are_alike(voices):
    items = pd.DataFrame({"item_id": ["d0", "d1", "d2", "d3"], "voices": voices})

    assert chosen(items)["d2"] == Partner("d3", "voices")
