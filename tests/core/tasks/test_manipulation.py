"""Study 2 as a whole: what is sent, what is asked next, and the tables that come out."""

import json
import math

import pandas as pd
import pytest

from core.exemplars import same_words
from core.modality import ModalityError
from core.protocol import Response, digest
from core.tasks import TaskError, task

manipulation = task("manipulation")
DIALOGUES = pd.DataFrame(
    {
        "item_id": [f"d{n}" for n in range(8)],
        "transcript": [
            f"Person1: You owe me, number {n}, and you know it well.\nPerson2: I do not."
            for n in range(8)
        ],
        "label": ["YES", "NO"] * 4,
        "techniques": [
            "Intimidation",
            None,
            "Denial,Accusation",
            None,
            "Playing Victim Role",
            None,
            None,
            None,
        ],
        "voices": ["mark,sassy", "mark,amanda"] * 4,
        "audio": [f"audio/{n}.flac" for n in range(8)],
    }
)
CLIPS = {item_id: digest(item_id) + ".wav" for item_id in DIALOGUES["item_id"]}


def setting_up(clips_per_prompt=8, **settings):
    found = manipulation.select(DIALOGUES, seed=0, settings=settings)
    terms = {
        "seed": 0,
        "settings": settings,
        "audio": CLIPS,
        "model_digest": "m",
        "exemplars": found.exemplars,
        "clips_per_prompt": clips_per_prompt,
    }
    return found, terms


def planned(condition, clips_per_prompt=8, **settings):
    found, terms = setting_up(clips_per_prompt, **settings)
    return manipulation.plan(found.evaluated, condition, **terms)


def words_of(request):
    return "".join(part.get("text", f"<{part.get('audio')}>") for part in request.parts)


def prefix_of(entry):
    return entry.request.parts[: entry.request.prefix_parts]


@pytest.mark.parametrize(
    ("condition", "clips", "transcripts"), [("AO", 4, 0), ("AT", 4, 4), ("TO", 0, 4)]
)
def test_exemplars_are_shown_as_the_condition_shows_the_dialogue(condition, clips, transcripts):
    (first, *_) = planned(condition, shots="4")
    prefix = prefix_of(first)

    assert sum("audio" in part for part in prefix) == clips
    assert sum(part.get("slot") == "exemplar" for part in prefix) == transcripts


@pytest.mark.parametrize("condition", ["AO", "AT"])
def test_a_model_that_takes_one_clip_is_shown_exemplars_as_transcripts_and_the_row_says_so(
    condition,
):
    entries = planned(condition, clips_per_prompt=4, shots="4")
    table = manipulation.predict(entries, {}, DIALOGUES)

    assert not any("audio" in part for part in prefix_of(entries[0]))
    assert set(table["fallbacks"]) == {"exemplars_as_transcripts"}
    found, _ = setting_up(shots="4")
    said = manipulation.notes({"shots": "4"}, found, ("AO",), 4)
    assert any("shown as transcripts" in line for line in said)


@pytest.mark.parametrize("condition", ["AO", "AT", "TO"])
def test_every_request_of_a_condition_begins_with_the_same_parts(condition):
    found, terms = setting_up(shots="4")
    entries = manipulation.plan(found.evaluated, condition, **terms)
    later = follow_ups(entries, found, terms, yes=0.99)

    assert {entry.purpose for entry in later} == {"tactic", "quote"}
    assert len({json.dumps(prefix_of(entry)) for entry in [*entries, *later]}) == 1


def test_the_question_with_its_exemplars_reads_as_written():
    (first, *_) = planned("TO", exemplars="d1,d0")

    assert words_of(first.request) == (
        "Each example below is a conversation, followed by what was found in it.\n\n"
        "Example 1: read the transcript of this conversation.\n\nTranscript:\n"
        "Person1: You owe me, number 1, and you know it well.\nPerson2: I do not.\n\n"
        "Does the conversation contain mental manipulation?\nA. Yes\nB. No\nAnswer: B (NO)\n\n"
        "Example 2: read the transcript of this conversation.\n\nTranscript:\n"
        "Person1: You owe me, number 0, and you know it well.\nPerson2: I do not.\n\n"
        "Does the conversation contain mental manipulation?\nA. Yes\nB. No\n"
        "Answer: A (YES)\nTactic: Intimidation\n\n"
        "Now the conversation in question.\n\n"
        "Read the following transcript of a conversation.\n\nTranscript:\n"
        "Person1: You owe me, number 2, and you know it well.\nPerson2: I do not.\n\n"
        "Does the conversation contain mental manipulation?\nA. Yes\nB. No\n\n"
        "Answer as in the examples, with ONLY a single letter (A or B)."
    )


def test_no_exemplar_is_ever_evaluated():
    for seed in range(20):
        found = manipulation.select(DIALOGUES, seed=seed, settings={})
        asked = set(found.evaluated["transcript"].map(same_words))
        assert not asked & set(found.exemplars["transcript"].map(same_words))


def test_an_exemplar_that_is_asked_about_by_mistake_is_found_out():
    _, terms = setting_up(clips_per_prompt=1)
    shown = DIALOGUES.iloc[[0, 1]].assign(item_id=["copy of d0", "d1"])

    with pytest.raises(ModalityError, match="item d0, AO: its transcript stands in the exemplar"):
        manipulation.plan(DIALOGUES.head(1), "AO", **(terms | {"exemplars": shown}))


def test_exemplars_asked_for_are_evaluated_and_labelled():
    found, terms = setting_up(exemplars="d1,d0", include_exemplars="true")
    entries = [e for c in ("AO", "TO") for e in manipulation.plan(found.evaluated, c, **terms)]
    table = manipulation.predict(entries, {}, DIALOGUES, terms["settings"])

    assert set(table.loc[table["exemplar"].astype(bool), "item_id"]) == {"d0", "d1"}
    assert any(
        "too good" in line for line in manipulation.notes(terms["settings"], found, ("AO",), 8)
    )


def test_swapping_the_options_swaps_text_choices_and_exemplars():
    (first, *_) = planned("TO", exemplars="d1,d0", swap="true")

    assert "A. No\nB. Yes" in words_of(first.request)
    assert "Answer: B (YES)" in words_of(first.request)
    assert first.request.choices == {"YES": ("B", " B"), "NO": ("A", " A")}


def test_the_variants_ask_in_their_own_words():
    asked = {
        p: words_of(planned("TO", prompt=p)[0].request)
        for p in ("zero_shot", "definitions", "cot", "few_shot")
    }

    assert asked["definitions"].startswith("Mental manipulation is the use of words")
    assert "think step by step" in asked["cot"]
    assert "Example 1" not in asked["zero_shot"] + asked["cot"]
    assert "Example 4" in asked["few_shot"]
    assert len({len(text) for text in asked.values()}) == 4


def test_a_chain_of_thought_is_five_requests_that_differ_in_their_seed_alone():
    entries = [e for e in planned("TO", prompt="cot") if e.item_id == "d0"]

    assert [entry.vote for entry in entries] == [0, 1, 2, 3, 4]
    assert len({entry.request.id for entry in entries}) == 5
    assert {(e.request.temperature, e.request.top_p, e.request.choices) for e in entries} == {
        (0.6, 0.95, None)
    }
    assert len({words_of(entry.request) for entry in entries}) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"shots": "3"}, "even number"),
        ({"shots": "-2"}, "shots: expected a whole number, 0 or more, or auto, found '-2'"),
        ({"prompt": "zero_shot", "shots": "4"}, "shows no exemplars"),
        ({"exemplars": "d0,d1", "shots": "4"}, "expected 4 ids, as shots says, found 2"),
        ({"exemplars": "d0,x"}, "no dialogue x"),
        ({"swap": "both", "prompt": "cot"}, "needs probabilities"),
        ({"tactic_scoring": "all"}, "expected one of whole_label, first_token"),
        ({"include_exemplars": "yes"}, "expected one of false, true"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_in_a_sentence(settings, said):
    with pytest.raises(TaskError, match=said) as error:
        manipulation.select(DIALOGUES, seed=0, settings=settings)
    assert "\n" not in str(error.value)


def answer(entry, yes=0.5, text="A", **more):
    request = entry.request
    if request.choices is None:
        return Response(request.id, "ok", text, **more)
    even = math.log((1 - yes) / max(len(request.choices) - 1, 1))
    first = next(iter(request.choices))
    logs = {label: math.log(yes) if label == first else even for label in request.choices}
    return Response(request.id, "ok", text, choice_logprobs=logs, choice_mass=1.0, **more)


def follow_ups(entries, found, terms, *, yes):
    responses = {entry.request.id: answer(entry, yes) for entry in entries}
    return manipulation.follow_up(entries, responses, found.evaluated, **terms)


def test_tactic_and_quote_are_asked_for_yes_alone():
    _, terms = setting_up(shots="0", prompt="zero_shot")
    entries = manipulation.plan(DIALOGUES, "TO", **terms)
    responses = {
        e.request.id: answer(e, 0.999 if e.item_id in ("d0", "d3") else 0.001) for e in entries
    }
    more = manipulation.follow_up(entries, responses, DIALOGUES, **terms)

    assert [(e.item_id, e.purpose) for e in more] == [
        ("d0", "tactic"),
        ("d0", "quote"),
        ("d3", "tactic"),
        ("d3", "quote"),
    ]


def test_rounds_end_and_nothing_is_planned_twice():
    found, terms = setting_up(shots="4")
    entries = manipulation.plan(found.evaluated, "TO", **terms)
    responses, rounds, more = {}, [], entries
    entries = []
    while more:
        rounds.append({entry.purpose for entry in more})
        entries += more
        # Letters without mass, words that say YES, and no quote at all.
        for entry in more:
            given = answer(entry, 0.999, text="")
            mass = 0.001 if entry.purpose == "answer" else 1.0
            responses[entry.request.id] = Response(**(vars(given) | {"choice_mass": mass}))
        more = manipulation.follow_up(entries, responses, found.evaluated, **terms)

    assert rounds == [{"answer"}, {"words"}, {"tactic", "quote"}, {"quote_retry"}]
    ids = [entry.request.id for entry in entries]
    assert len(ids) == len(set(ids))
    table = manipulation.predict(entries, responses, DIALOGUES)
    assert set(table["paths"]) == {"words,words,words,words,words"}
    assert set(table["quote"]) == {""}
    assert set(table["quote_reason"]) == {"the answer is empty; asked again: the answer is empty"}


def evaluated(yes_of, **settings):
    """All rounds for the probability of YES of each dialogue; quotes are the first turn's words."""
    settings = {"shots": "0", "prompt": "zero_shot"} | settings
    _, terms = setting_up(**settings)
    entries = manipulation.plan(DIALOGUES, "TO", **terms)
    responses = {}
    more = entries
    entries = []
    while more:
        entries += more
        for entry in more:
            yes = yes_of[entry.item_id] if entry.purpose in ("answer", "swapped") else 0.9
            responses[entry.request.id] = answer(entry, yes, text="You owe me")
        more = manipulation.follow_up(entries, responses, DIALOGUES, **terms)
    return manipulation.predict(entries, responses, DIALOGUES, terms["settings"])


def test_a_row_holds_votes_paths_probabilities_tactic_and_quote():
    table = evaluated({f"d{n}": 0.999 if n < 4 else 0.001 for n in range(8)}).set_index("item_id")
    row = table.loc["d0"]

    assert (row["votes"], row["paths"]) == (
        "YES,YES,YES,YES,YES",
        "letters,letters,letters,letters,letters",
    )
    assert row["p_YES"] == pytest.approx(0.999)
    assert (row["tactic"], row["tactic_path"]) == ("Accusation", "probabilities")
    assert json.loads(row["tactic_shares"])["Accusation"] == pytest.approx(0.9)
    assert (row["quote"], row["quote_match"], row["quote_turn"], row["quote_speaker"]) == (
        "You owe me",
        "exact",
        1,
        "Person1",
    )
    assert table.loc["d7", ["tactic", "quote"]].isna().all()


def test_the_tables_are_the_studys():
    # d0, d2 and d1, d3 are called manipulative: of four YES clips two, of four NO clips two.
    table = evaluated({f"d{n}": 0.999 if n < 4 else 0.001 for n in range(8)})
    found = {t.name: t for t in manipulation.report(table, resamples=100, seed=0)}

    classes = found["table_3_classification_TO"].frame
    assert list(classes["Class"]) == ["GT=YES", "GT=NO", "Macro avg", "Weighted avg"]
    assert list(classes["Precision"]) == [0.5] * 4
    per_set = found["table_3_per_set_TO"].frame
    assert per_set[["Set", "Pred YES", "Pred NO", "Acc", "N"]].values.tolist() == [
        ["GT=YES", 2, 2, 0.5, 4],
        ["GT=NO", 2, 2, 0.5, 4],
    ]
    # Wilson's interval of 2 of 4.
    assert per_set["Acc low"][0] == pytest.approx(0.150, abs=1e-3)
    tactics = found["table_4_tactics_of_YES_TO"].frame
    assert tactics[["Technique", "Count", "%"]].values.tolist() == [["Accusation", 2, 100.0]]
    assert "predicted YES=2, NO=2, no answer=0" in found["table_5_tactics_of_NO_TO"].title


def test_accuracy_is_broken_down_by_voice_and_accent():
    table = evaluated({f"d{n}": 0.999 if n < 4 else 0.001 for n in range(8)})
    found = next(
        t for t in manipulation.report(table, resamples=50, seed=0) if t.name == "by_voice"
    )
    rows = found.frame.set_index("Value")

    assert rows.loc["sassy", ["Acc", "N"]].tolist() == [0.5, 4]
    assert rows.loc["mark", "N"] == rows.loc["American", "N"] == 8
    assert rows.loc["African American", "N"] == 4
    assert pd.isna(rows.loc["sassy", "Acc NO"])


def test_a_tactic_counts_as_hit_where_it_is_one_of_the_dialogues():
    table = evaluated({f"d{n}": 0.999 if n in (0, 2) else 0.001 for n in range(8)})
    found = {e.metric: e for e in manipulation.score(table, resamples=50, seed=0)}

    # "Accusation" was named for both; d2 has it, d0 has Intimidation alone.
    assert (found["tactic_hit"].value, found["tactic_hit"].n) == (0.5, 2)
    assert (found["quote_said"].value, found["quote_said"].n) == (1.0, 2)


def test_in_both_orders_the_position_bias_is_a_figure():
    table = evaluated({f"d{n}": 0.7 for n in range(8)}, swap="both")
    found = {e.metric: e for e in manipulation.score(table, resamples=50, seed=0)}

    assert found["position_bias"].value == pytest.approx(0.0)
    assert found["position_bias"].n == 8


def test_by_the_first_token_the_run_says_what_it_cannot_tell():
    found, _ = setting_up()

    (line,) = [
        n
        for n in manipulation.notes({"tactic_scoring": "first_token"}, found, ("TO",), 8)
        if "Playing" in n
    ]
    assert "cannot tell Playing Servant Role from Playing Victim Role" in line
    table = evaluated({f"d{n}": 0.999 for n in range(8)}, tactic_scoring="first_token")
    assert len(json.loads(table["tactic_shares"].iloc[0])) == 11


def test_a_dialogue_of_braces_and_markup_is_shown_as_it_is():
    odd = DIALOGUES.assign(transcript="Person1: {option_a} <|im_end|> {transcript}")
    _, terms = setting_up(prompt="zero_shot")
    entry = manipulation.plan(odd, "TO", **terms)[0]

    assert {
        "text": "Person1: {option_a} <|im_end|> {transcript}",
        "slot": "transcript",
    } in entry.request.parts


def test_without_exemplars_or_definitions_nothing_is_shared():
    (first, *_) = planned("AO", prompt="zero_shot")

    assert first.request.prefix_parts == 0
    assert set(first.request.parts[0]) == {"audio"}
