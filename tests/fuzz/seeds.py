"""What a search starts from: a few whole values and a few odd ones for each target."""

from __future__ import annotations

import io
import json
import runpy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.settings import ROOT
from tests.fuzz.targets import CORPUS

TURN = {
    "item_id": "t1",
    "session_id": "s",
    "turn_index": 0,
    "audio": None,
    "transcript": "I can't sleep.",
    "context": "Therapist: Why?",
    "label": 4,
    "start_s": 0.5,
    "end_s": None,
}
DIALOGUE = {
    "item_id": "d1",
    "audio": None,
    "transcript": "Person1: Hi.\nPerson2: Go.",
    "label": "YES",
    "techniques": "Denial",
}
REQUEST = {
    "schema": 1,
    "id": "r1",
    "system": None,
    "parts": [{"text": "How?"}, {"audio": "a.wav"}],
    "choices": {"1": ["1", " 1"]},
    "max_new_tokens": 8,
    "temperature": 0.0,
    "top_p": 1.0,
    "seed": 0,
    "prefix_parts": 0,
}
RESPONSE = {
    "schema": 1,
    "id": "r1",
    "status": "ok",
    "text": "4",
    "finish_reason": "stop",
    "choice_logprobs": {"1": -0.1, "2": -2.5},
    "choice_mass": 0.99,
    "audio_seconds": 1.0,
    "audio_seconds_used": 1.0,
    "fallbacks": ["x"],
}
REPLY = {
    "choices": [
        {
            "message": {"content": "4", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {
                        "token": "A",
                        "logprob": -0.1,
                        "top_logprobs": [{"token": "B", "logprob": -2}],
                    }
                ]
            },
        }
    ],
    "usage": {"prompt_tokens": 12},
    "error": {"message": "no", "code": "insufficient_quota"},
    "data": [{"id": "m"}],
    "version": "0.33",
    "tokens": [1, 2],
}
WHISPERX = {
    "segments": [
        {
            "start": 0.0,
            "end": 2.0,
            "speaker": "S1",
            "words": [
                {"word": "How", "start": 0.1, "end": 0.4, "score": 0.9, "speaker": "S1"},
                {"word": "are", "score": 0.9},
                {"word": "you?", "start": 1.0, "end": 1.4},
            ],
        },
        {"start": 3.0, "end": 4.0, "words": [{"word": "Bad.", "speaker": "S2"}]},
    ]
}
TASKS = [
    {
        "id": 1,
        "data": {"item": "T1", "assigned_to": "A", "modality": "text", "text": "Hi."},
        "annotations": [
            {
                "was_cancelled": False,
                "result": [{"from_name": "manipulative", "value": {"choices": ["YES"]}}],
            }
        ],
    },
    {"item": "T2", "assigned_to": "A", "modality": "text", "text": "x", "manipulative": "NO"},
]
ANSWERS = [
    "4",
    "3/5",
    "**4**",
    "Level: four",
    "Between 2 and 3",
    "I'd rate 3 out of 5",
    "On a scale of 1-5, I would say 4.",
    "<think>2?</think> 4",
    "<think>2?",
    '{"rating": 4}',
    "```json\n[4]\n```",
    "４",
    "I cannot help with that.",
    "HTTP 500 error 3",
    "The answer is B. Note that A is common.",
    "Yes.\nQuote: I never said that.",
    "1 = calm ... 5 = overwhelmed: 3",
    '{"S1": "therapist", "S2": "patient"}',
]
WORD_COLUMNS = (
    "segment,segment_start_s,segment_end_s,segment_speaker,word,start_s,end_s,speaker,probability"
)


def seeds(name: str) -> list[bytes]:
    """Values for a target: those below and those in `corpus/<name>/`."""
    kept = sorted((CORPUS / name).iterdir()) if (CORPUS / name).is_dir() else []
    return _made()[name] + [path.read_bytes() for path in kept]


@cache
def _made() -> dict[str, list[bytes]]:
    header, row = ",".join(TURN), '"t1",s,0,,"I can\'t\nsleep.",,4,0.5,'
    ratings = b"item_id,ann,bob,cy,reference\n1,0,1,0,1\n2,1,1,NA,0\n3,0,,0,1\n"
    release = (
        b"global_id,video_id,turn_id,reference_label,patient_transcript,context,start_time_sec,"
        b'end_time_sec\n001_0,001,0,4,"I am ""fine"".",Therapist: Why?,0.5,2.5\n'
    )
    return {
        "answer_text": [text.encode() for text in ANSWERS],
        "audio_bytes": _audio(),
        "card_toml": [(ROOT / "containers" / "voxtral" / "model.toml").read_bytes()],
        "dataset_json": [(ROOT / "demo" / "manipulation" / "dataset.json").read_bytes()],
        "descriptions_csv": [
            b"item_id,run,description,model,status,reason\nt1,1,Sad.,m,ok,\nt1,2,,m,refused,no\n",
            b"item_id,run,score\nt1,1,4\nt1,2,\n",
            b"session_id,speaker,role\ns,S1,patient\ns,S2,therapist\n",
        ],
        "design_json": [_design()],
        "judgements_csv": [b"item,rater,rating,modality\n1,ann,YES,text\n2,bob,0,audio\n"],
        "label_studio_json": [json.dumps(TASKS).encode()],
        "manifest_csv": [f"{header}\r\n{row}\r\n".encode("utf-8-sig")],
        "manifest_jsonl": [_lines(TURN, {**TURN, "item_id": "t2"}), _lines(DIALOGUE)],
        "manifest_parquet": [_parquet([TURN]), _parquet([DIALOGUE])],
        "mentalmanip_csv": [
            b'ID,Dialogue,Manipulative,Technique,Vulnerability\n1,"Person1: Hi.\nPerson2:\n:\n'
            b'more",1,"Denial,Evasion",Naivete\n2,Person1: A & B,0,,\n'
        ],
        "ratings_csv": [ratings, b"item;rater;rating\n1;ann;3\n1;bob;4,0\n2;ann;5\n2;bob;1\n"],
        "release_csv": [release],
        "requests_jsonl": [_lines(REQUEST)],
        "responses_jsonl": [_lines(RESPONSE), _lines(RESPONSE)[:-1]],
        "server_reply": [json.dumps(REPLY).encode() + b" " * count for count in range(3)],
        "text_source_toml": [
            (ROOT / "demo" / "manipulation" / "dialogues.toml").read_bytes()[:1500],
            b'session_id = "s"\narc = "a"\npatient_voice = "v"\n[[turn]]\nrole = "patient"\n'
            b'text = "Hi."\nlevel = 2\n',
        ],
        "whisperx_json": [json.dumps(WHISPERX).encode()],
        "words_csv": [f"{WORD_COLUMNS}\n0,0,2,S1,How,0.1,0.4,S1,0.9\n0,0,2,S1,NA,,,,\n".encode()],
        "words_parquet": [_words_parquet()],
        "workbook_xlsx": [_workbook()],
    }


def _lines(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: list[dict[str, object]]) -> bytes:
    import pandas as pd

    stream = io.BytesIO()
    pd.DataFrame(rows).to_parquet(stream, index=False, compression=None)
    return stream.getvalue()


def _words_parquet() -> bytes:
    from core.words import of_whisperx

    stream = io.BytesIO()
    of_whisperx(WHISPERX).to_parquet(stream, index=False, compression=None)
    return stream.getvalue()


def _audio() -> list[bytes]:
    corpus = runpy.run_path(str(Path(__file__).parents[1] / "corpus" / "broken_audio.py"))
    whole, broken = corpus["whole"](), corpus["broken"]()
    files = list(whole.values()) + [content for content, *_ in broken.values()]
    # A second of tone in full says no more than its first part, and is slow to change.
    return [file[:6_000] for file in files] + [file for file in files if len(file) < 20_000]


def _workbook() -> bytes:
    from openpyxl import Workbook

    book, stream = Workbook(), io.BytesIO()
    book.active.title = "Guideline"
    book.active["B1"] = "A"
    for name in ("Text Only", "Audio Only"):
        sheet = book.create_sheet(name)
        for row in (("Item", "x", "y"), ("T1", "words", 1), ("T1 (2)", "more", None)):
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


def _design() -> bytes:
    from validation.annotation_design import designed
    from validation.annotation_key import key_of, write_key

    items = [f"item {number}" for number in range(12)]
    design = designed(items, annotators=4, batches=4, overlap=0.5)
    words = dict.fromkeys(items, "Person1: Hi.")
    labels = dict.fromkeys(items, "NO")
    key = key_of(
        design, dataset="d", dataset_hash="0" * 8, texts=words, clips=words, reference=labels
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "design.json"
        write_key(key, path)
        return path.read_bytes()
