import re
import time

import pytest

from core.datasets.mentalmanip import (
    PUBLISHED_TECHNIQUES,
    MentalManipError,
    counted,
    is_published,
    read_mentalmanip,
    turns_of,
)

HEADER = "ID,Dialogue,Manipulative,Technique,Vulnerability\r\n"


def written(tmp_path, *rows, header=HEADER, encoding="utf-8"):
    path = tmp_path / "mentalmanip.csv"
    path.write_bytes((header + "".join(row + "\r\n" for row in rows)).encode(encoding))
    return path


def test_each_line_is_a_turn_with_its_speaker():
    cell = "Person1: I don't know.\nPerson2: Don't go.\nPerson1: I have to... he's a G-34"

    assert turns_of(cell) == (
        ("Person1", "I don't know."),
        ("Person2", "Don't go."),
        ("Person1", "I have to... he's a G-34"),
    )


def test_an_empty_turn_does_not_swallow_the_next_line():
    assert turns_of("Person1: \nPerson2: Is this stool taken?\nPerson1:\nPerson2: Well?") == (
        ("Person1", ""),
        ("Person2", "Is this stool taken?"),
        ("Person1", ""),
        ("Person2", "Well?"),
    )


def test_a_line_that_is_only_a_colon_is_an_empty_turn_of_nobody():
    assert turns_of(": \nPerson1: Bullshit. He's a liar.") == (
        ("", ""),
        ("Person1", "Bullshit. He's a liar."),
    )


def test_a_line_without_a_speaker_goes_on_with_the_turn_before_it():
    assert turns_of("Person1: I never\nsaid: that.\n\nPerson2: You did.") == (
        ("Person1", "I never said: that."),
        ("Person2", "You did."),
    )


def test_one_speaker_twice_in_a_row_is_two_turns():
    assert turns_of("Person1: Hey.\nPerson1: Hey!") == (("Person1", "Hey."), ("Person1", "Hey!"))


def test_a_colon_a_name_or_double_spaces_inside_a_turn_are_text():
    assert turns_of("Person1: Listen:  Person2: that's what he wrote.") == (
        ("Person1", "Listen:  Person2: that's what he wrote."),
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_line_end_ends_a_turn(line_end):
    assert len(turns_of(line_end.join(["Person1: A.", "Person2: B.", ""]))) == 2


def test_a_separator_that_is_no_line_end_stays_in_its_turn():
    assert turns_of("Person1: one\u2028two\x0bthree") == (("Person1", "one\u2028two\x0bthree"),)


@pytest.mark.parametrize(
    "cell", ["Hello there.\nPerson1: Hi.", "Person1: Hi.\n: and more", ": \nwords"]
)
def test_words_of_nobody_are_not_understood(cell):
    with pytest.raises(ValueError, match=r"Hello there\.|: and more|words"):
        turns_of(cell)


def test_quotes_commas_and_newlines_in_cells_are_read_as_written(tmp_path):
    path = written(
        tmp_path,
        '1,"Person1: He said: ""Stop, now.""\nPerson2: Ma & Pa?",1,"Denial,Evasion",Dependency',
    )

    (dialogue,) = read_mentalmanip(path).dialogues

    assert dialogue.turns == (("Person1", 'He said: "Stop, now."'), ("Person2", "Ma & Pa?"))
    assert (dialogue.techniques, dialogue.vulnerabilities) == (
        ("Denial", "Evasion"),
        ("Dependency",),
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("7,Person1: Hi.,2,,", "id 7, Manipulative: expected 0 or 1, found '2'"),
        (
            "7,Person1: Hi.,1,Gaslighting,",
            "id 7, Technique: expected one of .*, found 'Gaslighting'",
        ),
        (
            "7,Person1: Hi.,0,Denial,",
            "Technique: expected none in a dialogue that is not manipulative",
        ),
        ("7,Person1: Hi.,1,,Pride", "Vulnerability: expected one of .*, found 'Pride'"),
        ("7,Person1: Hi.,1", "id 7, the row: expected 5 cells, found 3"),
        (",Person1: Hi.,1,,", "id none, ID: expected an id, found none"),
        ("7,Hi.,1,,", r"id 7, Dialogue: expected lines of the form .*, found 'Hi\.'"),
        ("7,Person1: ,1,,", "id 7, Dialogue: expected a turn with words, found none"),
        ("5,Person1: Hi.,1,,", "id 5, ID: expected an id of its own, found the id of row 1 again"),
    ],
)
def test_a_row_that_is_not_understood_is_listed_with_id_and_reason(tmp_path, row, said):
    parsed = read_mentalmanip(written(tmp_path, "5,Person1: Fine.,0,,", row))

    assert [dialogue.dialogue_id for dialogue in parsed.dialogues] == ["5"]
    (fault,) = parsed.not_understood
    assert fault.said("m.csv").startswith("m.csv, row 2 (line 3), ")
    assert re.search(said, fault.said("m.csv"))


def test_every_row_is_a_dialogue_or_listed(tmp_path):
    rows = ["1,Person1: A.,1,,", "2,nobody,1,,", "3,Person1: B.,0,,", "1,Person1: C.,0,,"]

    parsed = read_mentalmanip(written(tmp_path, *rows))

    assert len(parsed.dialogues) + len(parsed.not_understood) == len(rows)


def test_a_file_of_another_layout_or_encoding_is_refused(tmp_path):
    with pytest.raises(MentalManipError, match="expected the columns ID, Dialogue"):
        read_mentalmanip(written(tmp_path, header="id,text\r\n"))
    with pytest.raises(MentalManipError, match="line 2: expected UTF-8, found byte 0x92"):
        read_mentalmanip(written(tmp_path, "1,Person1: Don’t.,0,,", encoding="cp1252"))


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    path = written(tmp_path, "1,Person1: A.,1,,", encoding="utf-8-sig")

    assert len(read_mentalmanip(path).dialogues) == 1


@pytest.mark.shared
def test_the_consensus_set_has_the_published_counts(shared):
    # Computing time, which a busy machine does not lengthen.
    began = time.process_time()
    parsed = read_mentalmanip(shared / "data" / "mentalmanip" / "mentalmanip_con.csv")
    counts = counted(parsed.dialogues)

    assert time.process_time() - began < 2
    assert (counts.dialogues, counts.manipulative, counts.not_manipulative) == (2915, 2016, 899)
    assert counts.technique_labels == 2346
    assert dict(counts.techniques) == dict(PUBLISHED_TECHNIQUES)
    assert (counts.longest, counts.empty_turns, counts.same_speaker) == (89, 5, 35)
    assert is_published(counts)
    assert parsed.not_understood == ()


@pytest.mark.shared
def test_no_letter_of_the_consensus_set_is_lost(shared):
    import csv

    path = shared / "data" / "mentalmanip" / "mentalmanip_con.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        cells = {row["ID"]: row["Dialogue"] for row in csv.DictReader(stream)}

    for dialogue in read_mentalmanip(path).dialogues:
        assert dialogue.transcript == cells[dialogue.dialogue_id]
