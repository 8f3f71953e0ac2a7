"""Every reader and parser of what others wrote, as one function of bytes.

A target gives the bytes to the reader as a user would (a file of the right name) and
takes its own errors for an answer: anything else that is raised is a fault. `run.py`
searches with atheris; tests/hostile/test_kept_values.py gives every kept value to its
target without it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("corpus")
Target = Callable[[bytes, Path], Any]


def _put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@contextmanager
def _refused(file: str, *errors: type[Exception]) -> Iterator[None]:
    """A reader's own errors are an answer, if they say which file they are about."""
    try:
        yield
    except errors as error:
        if file not in str(error):
            raise


def manifest_csv(data: bytes, folder: Path) -> Any:
    return _manifest(_put(folder, "manifest.csv", data))


def manifest_jsonl(data: bytes, folder: Path) -> Any:
    return _manifest(_put(folder, "manifest.jsonl", data))


def manifest_parquet(data: bytes, folder: Path) -> Any:
    return _manifest(_put(folder, "manifest.parquet", data))


def _manifest(path: Path) -> Any:
    from core.dataset import DatasetError, read_dataset
    from validation import schemas
    from validation.datasets import checked_dataset

    for task, schema in (("distress", schemas.turns), ("manipulation", schemas.dialogues)):
        with _refused(path.name, DatasetError):
            read_dataset(path.parent, task)
            checked_dataset(path.parent, task, schema(audio=False))


def dataset_json(data: bytes, folder: Path) -> Any:
    from core.dataset import DatasetError, read_dataset
    from experiments.settings import experiment_name, settings_from

    header = "item_id,audio,transcript,label\n"
    (folder / "manifest.csv").write_text(header + "d1,,Person1: Hi.,NO\n")
    _put(folder, "dataset.json", data)
    words = {"task": "manipulation", "data": str(folder), "output": str(folder / "out")}
    experiment_name(settings_from(words))
    with _refused("dataset.json", DatasetError):
        read_dataset(folder, "manipulation")


def mentalmanip_csv(data: bytes, folder: Path) -> Any:
    from core.datasets.mentalmanip import MentalManipError, read_mentalmanip
    from experiments.build_manipulation import summary

    with _refused("dialogues.csv", MentalManipError):
        summary(read_mentalmanip(_put(folder, "dialogues.csv", data)))


def release_csv(data: bytes, folder: Path) -> Any:
    from core.dataset import DatasetError
    from core.datasets.cbt import RECORDINGS_CSV, TURNS_CSV, items_of, read_release
    from core.datasets.cutting import odd_times, without_leaks
    from validation.releases import release_recordings, release_turns, sound_rows
    from validation.schemas import TableError

    turns, _, recordings = data.partition(b"\xff\xff")
    address = b"video_id,youtube_url,original_title\n001,https://youtu.be/dQw4w9WgXcQ,\n"
    _put(folder, TURNS_CSV, turns)
    _put(folder, RECORDINGS_CSV, recordings or address)
    with _refused(".csv", DatasetError, TableError):
        release = read_release(folder)
        for table, schema in (
            (release.recordings, release_recordings()),
            (release.turns, release_turns()),
        ):
            frame, _ = sound_rows(
                table.frame, table.faults, schema, table.path.name, skip_invalid=True
            )
        odd_times(without_leaks(items_of(frame))[0])


def ratings_csv(data: bytes, folder: Path) -> Any:
    from experiments.agreement_files import tables
    from experiments.agreement_report import metrics, note, study_of
    from validation.ratings import RatingsError, read_ratings
    from validation.scale import scale_named

    path = _put(folder, "ratings.csv", data)
    for kind in ("nominal", "ordinal", "interval"):
        with _refused("ratings.csv", RatingsError):
            ratings = read_ratings(path, scale_named(kind))
            if ratings.values.size <= 40:
                study = study_of(ratings, ratings, resamples=2, seed=0)
                metrics(study), note(study), tables(study)


def judgements_csv(data: bytes, folder: Path) -> Any:
    from validation.adjudication import read_judgements
    from validation.table import UnreadableTableError

    with _refused("judgements.csv", UnreadableTableError):
        read_judgements(_put(folder, "judgements.csv", data), {}, ["text", "audio"])


def design_json(data: bytes, folder: Path) -> Any:
    from validation.annotation_key import KeyFileError, read_key

    with _refused("design.json", KeyFileError):
        read_key(_put(folder, "design.json", data))


def label_studio_json(data: bytes, folder: Path) -> Any:
    from experiments.annotation_tasks import read_export

    for answer in read_export(_put(folder, "export.json", data), ["A", "B"]).answers:
        assert answer.annotator in ("A", "B")


def workbook_xlsx(data: bytes, folder: Path) -> Any:
    from experiments.annotation_workbook import read_workbook

    read_workbook(_put(folder, "A.xlsx", data), ["A", "B"])


def whisperx_json(data: bytes, folder: Path) -> Any:
    return _words(_put(folder, "session.json", data))


def words_csv(data: bytes, folder: Path) -> Any:
    return _words(_put(folder, "session.csv", data))


def words_parquet(data: bytes, folder: Path) -> Any:
    return _words(_put(folder, "session.parquet", data))


def _words(path: Path) -> Any:
    from core.datasets.spoken_session import spoken_session
    from core.roles import roles
    from experiments.options import OptionError
    from experiments.spoken_files import read_words
    from validation.schemas import TableError

    with _refused(path.name, OptionError, TableError):
        for name, words in read_words(path.parent):
            if len(words) <= 50:
                spoken_session(name, words, roles)


def descriptions_csv(data: bytes, folder: Path) -> Any:
    from experiments.options import OptionError
    from experiments.spoken_files import by_hand, read_table
    from validation import spoken
    from validation.schemas import TableError, validated

    path = _put(folder, "descriptions.csv", data)
    for schema in (spoken.descriptions, spoken.scores, spoken.unlabelled):
        with _refused(path.name, OptionError, TableError):
            validated(read_table(path), schema(), str(path))
    with _refused(path.name, OptionError, TableError):
        by_hand(path)


def text_source_toml(data: bytes, folder: Path) -> Any:
    from core.datasets.roleplay import TextSourceError, read_dialogues, read_sessions

    path = _put(folder, "session_1.toml", data)
    for read, what in ((read_dialogues, path), (read_sessions, folder)):
        with _refused(path.name, TextSourceError):
            read(what)


def card_toml(data: bytes, folder: Path) -> Any:
    from containers.runtime.card import CardError, read_card

    with _refused("model.toml", CardError):
        read_card(_put(folder, "model.toml", data))


def requests_jsonl(data: bytes, folder: Path) -> Any:
    from containers.runtime.prompts import clip_names
    from core.protocol import ProtocolError, read_requests, request_id, write_requests

    path = _put(folder, "requests.jsonl", data)
    with _refused("requests.jsonl, line", ProtocolError):
        requests = read_requests(path)
        for request in requests:
            request_id("item", request, "model")
            assert not any("/" in name for name in clip_names(request))
        write_requests(path, requests)
        assert read_requests(path) == requests


def responses_jsonl(data: bytes, folder: Path) -> Any:
    from containers.runtime.response_log import ResponseLog, read_responses
    from core.predictions import distribution, unusable
    from core.protocol import ProtocolError

    path = _put(folder, "responses.jsonl", data)
    with _refused("responses.jsonl, line", ProtocolError):
        answers = read_responses(path)
        for answer in answers.values():
            unusable(answer)
            distribution(answer, ["1", "2"])
        ResponseLog(path).close()
        assert read_responses(path) == answers


def answer_text(data: bytes, folder: Path) -> Any:
    """A model's words, by every parser of them: a value, or a status and a reason."""
    from core.asked_roles import told
    from core.detection.quote import given_quote, where_said
    from core.detection.tactic import name_tactic
    from core.parsing import letter, rating, yes_no
    from core.protocol import Response

    text = data.decode("utf-8", errors="surrogateescape")
    for cut in (False, True):
        for parse, allowed in (
            (rating, (1, 2, 3, 4, 5)),
            (letter, ("A", "B")),
            (yes_no, ("YES", "NO")),
        ):
            found = parse(text, cut=cut)
            assert (found.status == "ok") == (found.value in allowed), found
            assert found.status == "ok" or found.reason, found
    response = Response("i", "ok", text=text)
    name_tactic(response, ["Denial", "Evasion", "none"], seed=0)
    given_quote(response, None, retried=False)
    half = len(text) // 2
    where_said(text[:200], text[half : half + 2000])
    told(text, ["S1", "S2"], "model")


def audio_bytes(data: bytes, folder: Path) -> Any:
    from containers.runtime import clips
    from core.audio import AudioError, read_clip

    path = _put(folder, "clip.wav", data)
    with _refused("clip.wav", AudioError):
        recording = read_clip(path)
        assert abs(recording.samples).max(initial=0) <= 1
    with _refused("clip.wav", clips.ClipError):
        clips.read_clip(path)


def server_reply(data: bytes, folder: Path) -> Any:
    """The body of a server's answer, whatever it holds: one Response or a named error."""
    from containers.runtime.adapter import Prompt, Words
    from containers.runtime.replies import Stamp
    from containers.runtime.response_log import ResponseLog, read_responses
    from experiments.runners import RunnerError, Site
    from experiments.runners._asking import Asker
    from experiments.runners._chat import Dialect
    from experiments.runners._endpoint import Endpoint, Reply, _object
    from experiments.runners._pace import Pace, retry_after_s

    endpoint = Endpoint(Site("http://127.0.0.1:9/v1", "m", offline=True))
    text = data.decode(errors="replace")
    status = 200 + (len(data) % 3) * 150
    reply = Reply(status, {}, _object(text), text)
    wait_s = retry_after_s({"Retry-After": text})
    assert wait_s is None or 0 <= wait_s < 3600
    endpoint.call = lambda *ignored: reply  # type: ignore[method-assign]
    asker = Asker(endpoint, Dialect("m", "0.33"), _voxtral(), Stamp("c", "i", "bf16"), Pace(1))
    prompt = Prompt("id", None, (Words("How?"),), {"A": ("A",)}, 8, 0.0, 1.0, 0)
    response = asker._response(prompt, (), reply, 0.1)
    with ResponseLog(folder / "responses.jsonl") as log:
        log.append([response])
    assert read_responses(folder / "responses.jsonl") == {"id": response}
    for call in (
        endpoint.models,
        endpoint.vllm_version,
        lambda: endpoint.token_ids("m", "A"),
        lambda: endpoint.check_access(reply),
        lambda: asker._learned({"logprobs": True}, reply),
    ):
        with _refused("127.0.0.1", RunnerError):
            call()


@cache
def _voxtral() -> Any:
    from containers.runtime.card import read_card
    from experiments.settings import ROOT

    return read_card(ROOT / "containers" / "voxtral" / "model.toml")


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        answer_text,
        audio_bytes,
        card_toml,
        dataset_json,
        descriptions_csv,
        design_json,
        judgements_csv,
        label_studio_json,
        manifest_csv,
        manifest_jsonl,
        manifest_parquet,
        mentalmanip_csv,
        ratings_csv,
        release_csv,
        requests_jsonl,
        responses_jsonl,
        server_reply,
        text_source_toml,
        whisperx_json,
        words_csv,
        words_parquet,
        workbook_xlsx,
    )
}


def give(name: str, data: bytes) -> None:
    """One value to one target, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_fast()) as folder:
        TARGETS[name](data, Path(folder))


def _fast() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() else None
