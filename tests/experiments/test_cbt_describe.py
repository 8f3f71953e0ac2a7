import json

import pandas as pd
import pytest

from containers.runtime.response_log import ResponseLog, read_responses
from core.protocol import Response, read_requests
from experiments import cbt_describe
from experiments.runners import RunnerError
from experiments.settings import ROOT
from tests.core.datasets.releases import write_recording
from tests.experiments.runners.openai_server import Server

MODEL = "voxtral"


@pytest.fixture
def turns(tmp_path):
    folder = tmp_path / "turns"
    names = ["item_id", "session_id", "turn_index", "audio", "transcript", "context"]
    names += ["start_s", "end_s", "speaker", "seconds"]
    rows = []
    for number, seconds in ((1, 30.0), (3, 45.0)):
        audio = f"audio/001_{number:03}.flac"
        write_recording(folder / audio, seconds)
        rows.append(
            (
                f"001_{number:03}",
                "001",
                number,
                audio,
                "Words.",
                "Therapist: Hello.",
                1.0,
                9.0,
                "A",
                seconds,
            )
        )
    pd.DataFrame(rows, columns=names).to_parquet(folder / "unlabelled.parquet")
    return folder


@pytest.fixture
def describe(turns, tmp_path):
    """A model that says which question of the run it answers, once it is told to answer."""
    asked = []

    def model(job):
        known = read_responses(job.responses)
        todo = [one for one in read_requests(job.requests) if one.id not in known]
        asked.append(len(todo))
        with ResponseLog(job.responses) as log:
            log.append(
                [Response(one.id, "ok", text=f"The patient feels {one.seed}.") for one in todo]
            )

    def run(given=model, **options):
        words = {
            "turns": turns,
            "model": MODEL,
            "output": tmp_path / "out",
            "track": "false",
            **options,
        }
        return cbt_describe.main([w for k, v in words.items() for w in (f"--{k}", str(v))], given)

    run.asked = asked
    return run


def test_every_turn_is_described_three_times(describe, tmp_path, capsys):
    assert describe() == 0

    table = pd.read_csv(tmp_path / "out" / "descriptions.csv", dtype={"item_id": str})
    assert list(zip(table["item_id"], table["run"], strict=True)) == [
        (name, run) for name in ("001_001", "001_003") for run in (1, 2, 3)
    ]
    assert table["description"].nunique() == 6
    # 3 runs of 75 s.
    assert (
        "2 turns, 6 requests, 6 of them to be asked (3.8 minutes of audio)."
        in capsys.readouterr().out
    )


def test_the_same_command_asks_nothing_again_and_another_run_only_the_new(describe):
    describe()
    describe()
    describe(runs=4)

    assert describe.asked == [6, 2]


def test_answers_of_another_model_are_refused(describe, tmp_path, capsys):
    describe()
    (path,) = tmp_path.glob("out/*-responses.jsonl")
    first, *others = path.read_text().splitlines(keepends=True)
    stamped = {**json.loads(first), "card": "deadbeef"}
    path.write_text("".join([json.dumps(stamped) + "\n", *others]))
    capsys.readouterr()

    assert describe() == 1
    said = capsys.readouterr().err
    assert f"the answer to {stamped['id']} has another card than this run (deadbeef, not" in said


def test_a_model_that_writes_nothing_is_refused_before_anything_is_asked(describe, capsys):
    assert describe(given=None, model="baseline") == 2
    assert "baseline writes no text and cannot say what it hears" in capsys.readouterr().err


def test_a_dry_run_says_how_much_and_what_it_would_cost(describe, tmp_path, capsys):
    assert describe(dry_run="true", price="0.10") == 0

    # 3.75 minutes at 10 cents.
    assert "about 0.38 dollars" in capsys.readouterr().out
    assert describe.asked == []
    assert not (tmp_path / "out" / "descriptions.csv").exists()


def test_a_dry_run_needs_nothing_that_could_run_the_model(describe, capsys, monkeypatch):
    def none(*_):
        raise RunnerError("No runner can take voxtral: install it.")

    monkeypatch.setattr("experiments.asking.runner", none)

    assert describe(given=None, dry_run="true") == 0
    told = capsys.readouterr()
    assert "6 of them to be asked (3.8 minutes of audio)" in told.out
    assert "No runner can take voxtral" in told.err
    assert describe(given=None) == 1


def test_scores_are_kept_apart_from_descriptions(describe, tmp_path):
    describe()
    assert describe(ask="scores", runs=1, temperature=0) == 0

    assert list(pd.read_csv(tmp_path / "out" / "scores.csv")) == ["item_id", "run", "score"]
    assert len(read_requests(tmp_path / "out" / "descriptions-requests.jsonl")) == 6


def test_a_remote_endpoint_is_sent_nothing_without_leave(describe, capsys):
    remote = {"runner": "server", "endpoint": "https://api.openai.com/v1"}

    assert describe(**remote) == 2

    err = capsys.readouterr().err
    assert (
        "Clips and contexts would leave this machine for api.openai.com. Allow it with max_requests=6"
        in err
    )
    assert describe.asked == []


def test_a_real_http_server_is_asked_with_the_clip_and_the_prompt(describe, tmp_path):
    server = Server()
    try:
        assert describe(given=None, runner="server", endpoint=server.url, runs=1) == 0
    finally:
        server.stop()

    bodies = [body for body in server.bodies if "Now listen to the patient" in str(body)]
    assert bodies
    assert "input_audio" in str(bodies[0]) or "audio_url" in str(bodies[0])
    assert len(pd.read_csv(tmp_path / "out" / "descriptions.csv")) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"turns": "nowhere"}, "turns: there is no folder 'nowhere'."),
        ({"turns": ROOT / "docs"}, "has no unlabelled.parquet; run cbt_turns."),
        ({"model": "gpt"}, "model: expected one of"),
        ({"runs": "0"}, "runs: expected 1 or more, found '0'."),
        ({"temperature": "0"}, "temperature: with 0 all runs of a turn are one"),
        ({"top_p": "0"}, "top_p: expected a number above 0, up to 1, found '0'."),
        ({"endpoint": "http://localhost:1/v1"}, "endpoint: runner=server asks one"),
        ({"runner": "server"}, "endpoint: runner=server asks one"),
        ({"precision": "int3"}, "precision: voxtral has no 'int3'"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_2(describe, capsys, options, said):
    assert describe(**options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
