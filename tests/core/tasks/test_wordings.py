"""Distress asked in other words: the same question about the same turn, read the right way round."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.prompts import template
from core.protocol import Response
from core.tasks import distress, task
from tests.core.variants.ratings import rated

TURNS = pd.DataFrame(
    {
        "item_id": ["s1_0", "s1_1"],
        "session_id": ["s1", "s1"],
        "turn_index": [0, 2],
        "audio": ["a.flac", "b.flac"],
        "transcript": ["I'm fine.", "My hands were shaking and I could not breathe at all."],
        "context": ["", "Therapist: What happened then?"],
        "label": [1, 5],
    }
)


GOLDEN = [
    "50a2d98ebc2eeacc6d3b9657d61fef38",
    "e8c458b80068436c2c1e22fd560c3922",
    "eeb2d711f258927fbaa94489d777ec69",
    "cbd07b5fa3d57539eb63bde6d42f13ba",
    "baf549e9941e4fcfb838ac2495475ab2",
    "9e15bdcf62889a88a86e4e1b2d557474",
]


def planned(condition, **words):
    clips = {"s1_0": "a.wav", "s1_1": "b.wav"}
    return task("distress").plan(
        TURNS, condition, seed=0, settings=words, audio=clips, model_digest="m"
    )


def read(text, shares=None, **words):
    """The first turn's row, answered with a text and probabilities of the written numbers 1-5."""
    entries = planned("TO", **words)
    request = entries[0].request
    logprobs = None
    if shares:
        # As the runtime does it: a label's probability is that of its surface forms.
        logprobs = {
            label: math.log(shares[int(forms[0]) - 1]) for label, forms in request.choices.items()
        }
    answers = {request.id: Response(request.id, "ok", text, choice_logprobs=logprobs)}
    return distress.predict(entries, answers, TURNS, words).iloc[0]


@pytest.mark.parametrize("condition", distress.CONDITIONS)
@pytest.mark.parametrize("wording", distress.WORDINGS[1:])
def test_other_words_show_the_same_context_transcript_and_clip(condition, wording):
    for study, other in zip(planned(condition), planned(condition, wording=wording), strict=True):
        assert other.request.id != study.request.id
        assert (other.request.system, other.request.seed) == (
            study.request.system,
            study.request.seed,
        )
        shown = [
            sorted((p.get("slot"), p.get("text")) for p in entry.request.parts if "slot" in p)
            for entry in (study, other)
        ]
        assert shown[0] == shown[1]
        assert other.request.parts[0] == study.request.parts[0] or condition == "TO"


@pytest.mark.parametrize("wording", distress.WORDINGS[1:])
@pytest.mark.parametrize("condition", ["ao", "at", "to"])
def test_every_wording_has_a_scale_of_five_and_asks_for_a_number(wording, condition):
    text = template(f"distress/{wording}/{condition}").text
    numbered = [line for line in text.splitlines() if line[:4] in {f"{n} = " for n in range(1, 6)}]

    assert [line[0] for line in numbered] == list("12345")
    assert "number" in text.splitlines()[-1]
    assert ("{patient_text}" in text) == (condition != "ao")


def test_the_scale_turned_round_is_the_studys_read_from_below():
    study, turned = (
        [line[4:] for line in template(name).text.splitlines() if line[1:4] == " = "]
        for name in ("distress/at", "distress/reversed/at")
    )

    assert turned == study[::-1]


def test_a_stated_number_and_a_distribution_are_mapped_back_alike():
    # "1" of a scale on which 1 is the most distressed, and most of the probability on it.
    row = read("1", shares=[0.6, 0.1, 0.1, 0.1, 0.1], wording="reversed")

    assert row["prediction"] == 5
    assert row["p_5"] == pytest.approx(0.6)
    assert row["expected"] == pytest.approx(0.6 * 5 + 0.1 * (4 + 3 + 2 + 1))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=5, max_size=5), st.integers(1, 5))
def test_a_model_that_turns_round_with_the_scale_gives_the_same_row(weights, level):
    shares = [weight / sum(weights) for weight in weights]
    study = read(str(level), shares)
    turned = read(str(6 - level), shares[::-1], wording="reversed")

    assert turned["prediction"] == study["prediction"] == level
    assert turned["expected"] == pytest.approx(study["expected"])
    for label in distress.LABELS:
        assert turned[f"p_{label}"] == pytest.approx(study[f"p_{label}"])


def test_the_templates_of_every_wording_asked_are_logged():
    ids = [t.id for t in distress.prompts({"prompts": "reversed, paraphrase_1"})]

    assert ids[:4] == ["distress/system", "distress/ao", "distress/at", "distress/to"]
    assert ids[4:] == [
        f"distress/{wording}/{name}"
        for wording in ("reversed", "paraphrase_1")
        for name in ("ao", "at", "to")
    ]


def test_a_plan_without_flags_asks_for_exactly_what_it_always_did():
    # Worked out before there were wordings; answers on disks are kept under these.
    ids = [entry.request.id for c in distress.CONDITIONS for entry in planned(c)]

    assert ids == GOLDEN


def test_sections_come_with_their_flags_and_not_without():
    cells = {
        name: rated([1, 5], [1, 5], ["s1", "s1"]).assign(item_id=["s1_0", "s1_1"])
        for name in distress.CONDITIONS
    }
    predictions = pd.concat([cell.assign(condition=name) for name, cell in cells.items()])

    def titles(**words):
        found = distress.beyond(
            predictions, predictions.head(0), TURNS, settings=words, resamples=20, seed=0
        )
        return [table.name for table in found.tables]

    assert titles() == []
    assert titles(trajectories="true") == ["changes", "trajectories"]
    assert titles(divergence="3") == ["cases", "furthest", "case_turns", "divergence"]
