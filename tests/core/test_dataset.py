"""A dataset folder is read as it is, or refused with every faulty row named."""

import json
import os
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.dataset import DatasetError, read_dataset, write_dataset

HEADER = "item_id,session_id,turn_index,audio,transcript,context,label"
FORMATS = ("csv", "jsonl", "parquet")


@pytest.fixture
def folder(tmp_path):
    """A folder with two audio files; their content does not matter to a dataset."""
    audio = tmp_path / "set" / "audio"
    audio.mkdir(parents=True)
    (audio / "a.wav").write_bytes(b"first")
    (audio / "b.wav").write_bytes(b"second")
    return tmp_path / "set"


def turns(**columns):
    plain = {
        "item_id": ["t1", "t2"],
        "session_id": ["s", "s"],
        "turn_index": [0, 1],
        "audio": ["audio/a.wav", "audio/b.wav"],
        "transcript": ["I can't sleep.", 'He said "no",\nand left.'],
        "context": ["", "Therapist: Why?"],
        "label": [4, 2],
    }
    return pd.DataFrame({**plain, **columns})


def written(folder, items=None, **said):
    about = {"name": "demo", "task": "distress", "licence": "CC0-1.0", "source": "written here"}
    settled = {**about, "synthetic": True, "manifest": "turns", **said}
    return write_dataset(folder, turns() if items is None else items, **settled)


def read(folder):
    return read_dataset(folder, "distress", manifest="turns")


def refusal(folder):
    with pytest.raises(DatasetError) as refused:
        read(folder)
    return str(refused.value)


def csv(folder, *rows, header=HEADER, encoding="utf-8", end="\n"):
    content = end.join((header, *rows)) + end
    (folder / "manifest.csv").write_bytes(content.encode(encoding))
    return folder


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_written_is_read(folder, suffix):
    written(folder, suffix=suffix, about={"voices": 4})

    dataset = read(folder)

    assert (dataset.name, dataset.licence, dataset.synthetic) == ("demo", "CC0-1.0", True)
    assert dataset.about == {"voices": 4}
    assert dataset.notes == ()
    columns = turns().columns
    assert dataset.items[columns].to_dict("list") == turns().to_dict("list")
    assert list(dataset.items["audio_sha256"]) == [
        sha256(content).hexdigest() for content in (b"first", b"second")
    ]


def test_the_format_of_the_manifest_does_not_change_the_hash(folder):
    assert len({written(folder, suffix=suffix).hash for suffix in FORMATS}) == 1
    assert sum(path.name.startswith("manifest") for path in folder.iterdir()) == 1


def test_labels_words_order_and_audio_change_the_hash_and_a_renamed_file_does_not(folder):
    first = written(folder).hash
    others = [
        turns(label=[4, 3]),
        turns(transcript=["I can sleep.", "x"]),
        turns().iloc[::-1].reset_index(drop=True),
        turns(audio=["audio/b.wav", "audio/b.wav"]),
    ]

    hashes = {written(folder, items).hash for items in others}

    assert len(hashes) == 4
    assert first not in hashes
    (folder / "audio" / "a.wav").rename(folder / "audio" / "renamed.wav")
    assert written(folder, turns(audio=["audio/renamed.wav", "audio/b.wav"])).hash == first


def test_dataset_json_counts_what_it_describes(folder):
    written(folder, turns(audio=["audio/a.wav", None]))

    counts = json.loads((folder / "dataset.json").read_text())["counts"]

    assert counts == {"items": 2, "audio": 1, "labels": {"2": 1, "4": 1}}


def test_any_folder_with_a_manifest_is_a_dataset(folder):
    csv(folder, "t1,s,0,audio/a.wav,Hello.,,3")

    dataset = read(folder)

    assert (dataset.name, dataset.licence, dataset.synthetic) == ("set", "unknown", False)
    assert dataset.notes == ("no dataset.json: licence unknown, taken as not synthetic",)


def test_the_task_says_which_manifest_it_reads(folder):
    csv(folder, "d1,audio/a.wav,Person1: Hi.,NO", header="item_id,audio,transcript,label")

    assert list(read_dataset(folder, "manipulation").items["label"]) == ["NO"]
    with pytest.raises(DatasetError, match="session_id: expected a column of a manifest of turns"):
        read_dataset(folder, "distress")


@pytest.mark.parametrize(("encoding", "end"), [("utf-8-sig", "\r\n"), ("utf-8", "\r\n")])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(folder, encoding, end):
    csv(folder, 't1,s,0,audio/a.wav,"two\nlines – é",,3', encoding=encoding, end=end)

    assert read(folder).items["transcript"][0] == "two\nlines – é"


def test_a_transcript_may_be_a_million_characters_long(folder):
    csv(folder, f"t1,s,0,audio/a.wav,{'word ' * 200_000},,3")

    assert len(read(folder).items["transcript"][0]) == 1_000_000


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("t2,s,1,,Hi.,,3.7", 'label: expected an integer, found "3.7"'),
        ("t2,s,1,,Hi.,,three", 'label: expected an integer, found "three"'),
        ("t2,s,1,,Hi.,,", 'label: expected an integer, found ""'),
        ("t2,s,1,,Hi.,,1_0", 'label: expected an integer, found "1_0"'),
        ("t2,s,1,,Hi.,,99999999999999999999", "label: expected an integer, found"),
        ("t2,s,x,,Hi.,,3", 'turn_index: expected an integer, found "x"'),
        (",s,1,,Hi.,,3", 'item_id: expected text, found ""'),
        ("t2,s,1,/etc/passwd,Hi.,,3", 'audio: expected a path relative to the folder, found "/etc'),
        ("t2,s,1,C:/a.wav,Hi.,,3", 'audio: expected a path relative to the folder, found "C:/'),
        ("t2,s,1,../a.wav,Hi.,,3", "audio: expected a path inside the folder, with / and without"),
        ("t2,s,1,audio\\a.wav,Hi.,,3", "audio: expected a path inside the folder, with / and"),
        ("t2,s,1,audio/c.wav,Hi.,,3", 'audio: expected a file that is there, found "audio/c.wav"'),
        ("t2,s,1,audio,Hi.,,3", 'audio: expected a regular file, found "audio"'),
    ],
)
def test_a_faulty_cell_is_named_with_file_row_line_and_column(folder, row, found):
    csv(folder, 't1,s,0,audio/a.wav,"Hello\nthere.",,3', row)

    message = refusal(folder)

    assert message.startswith(f"{folder}/manifest.csv, row 2 (line 4), {found}")
    assert message.endswith("\nCorrect these and run again.")


def test_every_faulty_row_is_listed_and_a_long_list_is_cut(folder):
    csv(folder, *(f"t{i},s,{i},,Hi.,,3.7" for i in range(30)))

    with pytest.raises(DatasetError) as refused:
        read(folder)

    assert len(refused.value.faults) == 30
    lines = str(refused.value).splitlines()
    assert len(lines) == 22
    assert lines[19].startswith(f"{folder}/manifest.csv, row 20 (line 21), label: ")
    assert lines[20].endswith("and 10 more.")


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_not(folder, tmp_path):
    (tmp_path / "secret.wav").write_bytes(b"secret")
    (folder / "audio" / "out.wav").symlink_to(tmp_path / "secret.wav")
    (folder / "audio" / "in.wav").symlink_to("a.wav")
    csv(folder, "t1,s,0,audio/in.wav,Hi.,,3", "t2,s,1,audio/out.wav,Hi.,,3")

    message = refusal(folder)

    assert "row 2 (line 3), audio: expected a file inside the folder, not a link out" in message
    assert "row 1" not in message


def test_a_pipe_is_no_audio_file(folder):
    os.mkfifo(folder / "audio" / "pipe.wav")

    assert "expected a regular file" in refusal(csv(folder, "t1,s,0,audio/pipe.wav,Hi.,,3"))


def test_the_stated_hash_of_an_audio_file_is_checked(folder):
    right, wrong = sha256(b"first").hexdigest(), "0" * 64
    rows = [f"t1,s,0,audio/a.wav,{right.upper()},Hi.,,3", f"t2,s,1,audio/b.wav,{wrong},Hi.,,3"]
    csv(folder, *rows, header=HEADER.replace("audio,", "audio,audio_sha256,"))

    message = refusal(folder)

    actual = sha256(b"second").hexdigest()
    assert (
        f"row 2 (line 3), audio_sha256: expected {wrong} for audio/b.wav, found {actual}" in message
    )
    assert "row 1" not in message


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "line 1: expected a header, found an empty file"),
        (
            "item_id,transcript\nt1,don’t\n".encode("cp1252"),
            "line 2: expected UTF-8, found byte 0x92",
        ),
        ("item_id\n".encode("utf-16"), "line 1: expected UTF-8, found UTF-16"),
        (b"a;b\n1;2\n", "line 1: expected cells separated by commas, found separator ';'"),
        (b"a,b\n1,2\n\n3\n4,5,6\n", "row 2 (line 4): expected 2 cells, found 1"),
        (b"a,b\n1,2\n\n3\n4,5,6\n", "row 3 (line 5): expected 2 cells, found 3"),
        (b'a,b\n1,"two\n3,4\n', "line 2: expected quotes that open and close"),
        (b'a,b\n1,"two"x\n', "line 2: expected quotes that open and close"),
        (b"a,a\n1,2\n", "expected a name of its own for each column, found 'a' twice"),
        (b"a,\n1,2\n", "found a column without a name"),
        (b"a,b\n1,\0\n", "line 2: expected text, found a zero byte"),
        (b"item_id,label\nt1,3\n", "session_id: expected a column of a manifest of turns"),
        (HEADER.encode() + b"\n", "expected rows, found none"),
    ],
)
def test_a_csv_that_is_no_table_is_refused_with_its_line(folder, content, found):
    (folder / "manifest.csv").write_bytes(content)

    message = refusal(folder)

    assert "manifest.csv" in message
    assert found in message


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{", "line 2: expected a JSON object"),
        ("[1]", "line 2: expected a JSON object, found [1]"),
        ('{"label": NaN}', "NaN is not JSON"),
        ('{"label": 1, "label": 2}', "a key appears twice"),
        ('{"item_id": 5}', "row 2, item_id: expected text, found 5"),
        (r'{"item_id": "a\u0000b"}', "row 2, item_id: expected text of whole characters, without"),
        (r'{"transcript": "\ud800"}', "row 2, transcript: expected text of whole characters"),
        ('{"label": true}', "row 2, label: expected an integer, found True"),
        ('{"label": 3.7}', "row 2, label: expected an integer, found 3.7"),
    ],
)
def test_a_faulty_line_of_jsonl_is_named(folder, line, found):
    first = json.dumps(turns(audio=[None, None]).iloc[0].to_dict())
    (folder / "manifest.jsonl").write_text(f"{first}\n{line}\n")

    assert found in refusal(folder)


def test_a_file_named_parquet_that_is_none_is_refused(folder):
    (folder / "manifest.parquet").write_bytes(b"item_id,label\n")

    assert "manifest.parquet: expected a parquet file, found " in refusal(folder)


def test_a_score_is_not_rounded_on_its_way_through_parquet(folder):
    turns(label=[3.7, 2.0]).to_parquet(folder / "manifest.parquet")

    message = refusal(folder)

    assert "row 1, label: expected an integer, found 3.7" in message
    assert "row 2" not in message


def test_exactly_one_manifest(folder):
    assert "expected exactly one of manifest.parquet, manifest.csv" in refusal(folder)
    written(folder)
    csv(folder, "t1,s,0,audio/a.wav,Hi.,,3")
    assert "found manifest.parquet and manifest.csv" in refusal(folder)


def test_a_manifest_changed_after_it_was_described_is_refused(folder):
    before = written(folder, suffix="csv").hash
    path = folder / "manifest.csv"
    path.write_text(path.read_text().replace("I can't sleep.", "I slept."))

    message = refusal(folder)

    assert message.startswith(f"{folder}/dataset.json, hash: expected ")
    assert before in message


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"schema": 2}, "schema: expected 1, found 2"),
        ({"name": ""}, 'name: expected text, found ""'),
        ({"name": "a" * 201}, "name: expected a line of at most 200 printable characters"),
        ({"name": "a\nb"}, 'name: expected a line of at most 200 printable characters, found "a'),
        ({"name": "a\0"}, "name: expected a line of at most 200 printable characters"),
        ({"synthetic": "yes"}, 'synthetic: expected true or false, found "yes"'),
        ({"licence": None}, "licence: expected text, found nothing"),
        ({"task": "manipulation"}, 'task: expected distress, as asked for, found "manipulation"'),
    ],
)
def test_a_faulty_description_is_refused(folder, changed, found):
    written(folder)
    path = folder / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    assert refusal(folder).startswith(f"{path}, {found}")


def test_a_faulty_table_is_not_written(folder):
    before = written(folder).hash

    with pytest.raises(DatasetError, match=r'row 2, label: expected an integer, found "x"'):
        written(folder, turns(label=[1, "x"]))

    assert read(folder).hash == before


def test_a_folder_that_is_not_there(tmp_path):
    assert "expected a dataset folder, found no folder" in refusal(tmp_path / "none")


def test_a_dialogue_keeps_its_lines(folder):
    items = pd.DataFrame(
        {
            "item_id": ["d1"],
            "audio": ["audio/a.wav"],
            "transcript": ["Person1: Hi.\nPerson2: You made me do it."],
            "label": ["YES"],
            "techniques": ["Shaming or Belittlement,Accusation"],
        }
    )

    dataset = written(folder, items, task="manipulation", manifest="dialogues", suffix="csv")

    assert dataset.items["transcript"][0].count("\n") == 1
    assert dataset.items["label"][0] == "YES"


words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(words, words, st.integers(1, 5), st.none() | st.floats(0, 1e6)),
        min_size=1,
        max_size=4,
    )
)
def test_any_words_survive_every_format(folder, rows):
    transcripts, contexts, labels, seconds = (list(column) for column in zip(*rows, strict=True))
    items = pd.DataFrame(
        {
            "item_id": [f"t{i}" for i in range(len(rows))],
            "session_id": "s",
            "turn_index": range(len(rows)),
            "audio": "audio/a.wav",
            "transcript": transcripts,
            "context": contexts,
            "label": labels,
            "seconds": pd.Series(seconds, dtype=np.float64),
        }
    )

    read_back = [written(folder, items, suffix=suffix) for suffix in FORMATS]

    assert len({dataset.hash for dataset in read_back}) == 1
    for dataset in read_back:
        assert list(dataset.items["transcript"]) == transcripts
        assert list(dataset.items["context"]) == contexts
        np.testing.assert_array_equal(dataset.items["seconds"], items["seconds"])
