"""The prompts as sent, to the character, and how their blanks are filled."""

from hashlib import sha256

import pytest

from core.prompts import FOLDER, PromptError, Template, fill, template, template_ids

# Appendix D as the paper's text has it: no line breaks, curly apostrophes.
SCALE = "1 = Calm, at ease, with no emotional distress 2 = Slightly uneasy, with mild emotional activation 3 = Moderately distressed, with clear emotional activation 4 = Significantly distressed, struggling to maintain composure 5 = Overwhelmed with intense emotional distress Respond with ONLY a single number (1-5)."
PAPER = {
    "distress/system": "You are an expert in clinical psychology specialising in Cognitive Behavioral Therapy (CBT).",
    "distress/ao": "Listen to this audio clip of a patient speaking during a CBT therapy session. Context from the conversation: {context} Based on the patient’s audio, what they said and how they said it, rate their emotional intensity on a scale of 1 to 5: "
    + SCALE,
    "distress/at": 'Listen to this audio clip and read the transcript of a patient speaking during a CBT therapy session. Context from the conversation: {context} Patient’s current statement (transcript): "{patient_text}" Based on the patient’s audio and transcript, both what they said and how they said it, rate their emotional intensity on a scale of 1 to 5: '
    + SCALE,
    "distress/to": 'Read the following transcript of a patient speaking during a CBT therapy session. Context from the conversation: {context} Patient’s current statement: "{patient_text}" Based on what the patient said, rate their emotional intensity on a scale of 1 to 5: '
    + SCALE,
    # Appendix B.1.
    "ssr/describe": 'You are analyzing a therapy session. You will receive: 1. TEXT context (previous conversation turns) - to understand the topic being discussed 2. AUDIO clip (patient’s current turn) - to assess their emotional state Your task: Based on the AUDIO, describe how the patient FEELS emotionally. Use the audio (tone, pace, voice quality) as evidence, but describe their emotional state, not just how they sound. The context is provided only to help you understand the conversation topic. Examples of good descriptions: - "The patient feels anxious and stressed, struggling to maintain composure." - "The patient feels calm and at ease, with no signs of emotional distress." --- Previous conversation: {context} Now listen to the patient’s response and describe how they feel emotionally. Output ONLY a 1-2 sentence description of their emotional state. No preamble or explanation.',
}

SNAPSHOTS = {
    "distress/ao": "c17e547fbd3531ad",
    "distress/at": "b2285582d325cfcf",
    "distress/paraphrase_1/ao": "fd00982a55947d63",
    "distress/paraphrase_1/at": "27c38e908f285c32",
    "distress/paraphrase_1/to": "cb08df85d8a8ad3f",
    "distress/paraphrase_2/ao": "25484c472061cc31",
    "distress/paraphrase_2/at": "58f8092db83520a4",
    "distress/paraphrase_2/to": "d7564f9e1292ef73",
    "distress/paraphrase_3/ao": "2a1794694ac2af31",
    "distress/paraphrase_3/at": "183341e60b07154b",
    "distress/paraphrase_3/to": "22cfefb76f697b9e",
    "distress/reversed/ao": "2feffdf85a5bcf8c",
    "distress/reversed/at": "5956241116f66366",
    "distress/reversed/to": "05fa0e92649082c6",
    "distress/system": "7c1c66c1acf7bdd7",
    "distress/to": "ce9b337783d9e8ef",
    "manipulation/cot": "3cbbea1b3180ad82",
    "manipulation/definitions": "d2304c50b1b90d7a",
    "manipulation/exemplar_audio": "937d44006b592ae8",
    "manipulation/exemplar_both": "5ae79bdb8d8a198a",
    "manipulation/exemplar_transcript": "fec4346317aed62b",
    "manipulation/exemplars_begin": "bcb36d57c32ce297",
    "manipulation/exemplars_end": "b67ba6dadd770f88",
    "manipulation/few_shot": "5f791c94d0973fd7",
    "manipulation/meanings": "0bd19c9f62d2da6e",
    "manipulation/opening_ao": "f9878cd9a9c3c745",
    "manipulation/opening_at": "b2e7d50ba5c94e0b",
    "manipulation/opening_to": "dc0492c367df608c",
    "manipulation/quote": "0b0087ceee7938aa",
    "manipulation/quote_short": "0630168c5f92abc4",
    "manipulation/tactic": "c1c664082f81c6a6",
    "manipulation/words": "9a3b89ebe6e9969e",
    "manipulation/zero_shot": "d2304c50b1b90d7a",
    "ssr/describe": "cb8747e736971faf",
    "roles/classify": "f70be6ab293f84fc",
    "ssr/score": "464f49be86b7616c",
}


@pytest.mark.parametrize("id", PAPER)
def test_the_words_are_the_papers_once_line_breaks_are_spaces(id):
    assert " ".join(template(id).text.split()) == PAPER[id].replace("’", "'")


def test_the_audio_prompt_line_by_line():
    assert template("distress/ao").text.split("\n") == [
        "Listen to this audio clip of a patient speaking during a CBT therapy session.",
        "",
        "Context from the conversation:",
        "{context}",
        "",
        "Based on the patient's audio, what they said and how they said it, rate their emotional intensity on a scale of 1 to 5:",
        "1 = Calm, at ease, with no emotional distress",
        "2 = Slightly uneasy, with mild emotional activation",
        "3 = Moderately distressed, with clear emotional activation",
        "4 = Significantly distressed, struggling to maintain composure",
        "5 = Overwhelmed with intense emotional distress",
        "",
        "Respond with ONLY a single number (1-5).",
    ]


def test_the_manipulation_question_line_by_line():
    assert template("manipulation/zero_shot").text.split("\n") == [
        "Does the conversation contain mental manipulation?",
        "A. {option_a}",
        "B. {option_b}",
        "",
        "Answer with ONLY a single letter (A or B).",
    ]


def test_no_prompt_changes_unnoticed():
    assert {id: template(id).sha256[:16] for id in template_ids()} == SNAPSHOTS


def test_the_hash_is_that_of_the_text_that_is_sent():
    shown = template("distress/to")

    assert shown.sha256 == sha256(shown.text.encode()).hexdigest()
    assert not shown.text.endswith("\n")
    assert (FOLDER / "distress/to.txt").read_bytes() == shown.text.encode() + b"\n"


@pytest.mark.parametrize(
    ("id", "slots"),
    [
        ("distress/ao", ("context",)),
        ("distress/at", ("context", "transcript")),
        ("distress/to", ("context", "transcript")),
        ("distress/system", ()),
    ],
)
def test_only_prompts_that_show_the_transcript_have_a_slot_for_it(id, slots):
    assert template(id).slots == slots


def test_filled_parts_join_to_the_prompt_and_name_their_slots():
    parts = fill(template("distress/to"), context="Therapist: Hi.", transcript="I'm fine.")

    assert [part.get("slot") for part in parts] == [None, "context", None, "transcript", None]
    assert 'statement:\n"I\'m fine."\n\nBased on' in "".join(part["text"] for part in parts)


def test_braces_and_percent_signs_in_what_was_said_stay_as_they_are():
    said = "{context} {0} {patient_text} %s ${x} \\1 }{"

    parts = fill(template("distress/at"), context=said, transcript=said)

    assert [part["text"] for part in parts if "slot" in part] == [said, said]


def test_an_empty_text_keeps_its_part():
    parts = fill(Template("x", "a{context}{transcript}", ""), context="", transcript="b")

    assert parts == (
        {"text": "a"},
        {"text": "", "slot": "context"},
        {"text": "b", "slot": "transcript"},
    )


@pytest.mark.parametrize("slots", [{}, {"context": "", "transcript": ""}, {"patient_text": ""}])
def test_slots_that_do_not_fit_are_an_error(slots):
    with pytest.raises(PromptError, match=r"distress/ao: expected the slots \['context'\]"):
        fill(template("distress/ao"), **slots)


@pytest.mark.parametrize("id", ["distress/xx", "../protocol", "distress/ao.txt", ""])
def test_an_unknown_prompt_is_named_with_the_known_ones(id):
    with pytest.raises(PromptError, match="distress/ao, distress/at"):
        template(id)
