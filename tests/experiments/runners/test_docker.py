"""The docker runner on a real engine: equal answers, no way out, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from containers.runtime.card import read_card
from containers.runtime.response_log import read_responses
from experiments import images
from experiments.evaluation import carry_out, prepare
from experiments.runners import Job, RunnerError
from experiments.runners import docker as runner
from experiments.runners import runner as runner_for
from experiments.settings import ROOT, settings_from

# Enough that a container can be killed between two of its batches.
TURNS = 600


def card_of(model):
    return read_card(ROOT / "containers" / model / "model.toml")


@pytest.fixture(scope="module")
def engine():
    """An engine with the present code's image of the baseline."""
    try:
        client = images.engine()
    except images.ImageError as error:
        pytest.skip(str(error))
    images.build(client, card_of("baseline"), {}, lambda line: None)
    return client


@pytest.fixture
def turns(tmp_path):
    folder = tmp_path / "turns"
    folder.mkdir()
    rows = [
        {
            "item_id": f"turn {number}",
            "session_id": f"session {number // 50}",
            "turn_index": number,
            "audio": None,
            "transcript": f"I slept {number} minutes and was {'sad' * (number % 7)} all day.",
            "context": "",
            "label": 1 + number % 5,
        }
        for number in range(TURNS)
    ]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def planned(output, **words):
    fixed = {"model": "baseline", "runner": "docker", "output": str(output), "resamples": "20"}
    return prepare(settings_from({**fixed, **words}))


def answers(evaluation):
    """Every answer, without what depends on the clock and the place."""
    left_out = ["latency_s", "request_id"]
    return evaluation.predictions.drop(columns=left_out).round(6).to_json()


def ours(engine):
    return engine.containers.list(all=True, filters={"label": runner.OWNER})


def wait_for(truth, seconds=60):
    deadline = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.docker
def test_the_image_answers_as_the_process_does(engine, tmp_path):
    inside = carry_out(planned(tmp_path / "docker"))
    outside = carry_out(planned(tmp_path / "process", runner="process"))

    assert len(inside.predictions) > 10
    assert answers(inside) == answers(outside)
    said = read_responses(inside.plan.folder.responses).values()
    assert {answer.image for answer in said} == {inside.plan.image}
    assert inside.plan.image.startswith("sha256:")
    assert ours(engine) == []
    summary = json.loads((inside.plan.folder.path / "work.json").read_text())["summary"]
    assert summary["ended"] == "done"
    assert "items/s" in (inside.plan.folder.path / "model.log").read_text()


@pytest.mark.slow
@pytest.mark.docker
def test_killed_evaluations_leave_no_container_and_lose_no_answer(engine, tmp_path, turns):
    words = {"data": str(turns), "conditions": "TO"}
    undisturbed = carry_out(planned(tmp_path / "undisturbed", **words))
    code = (
        "from experiments.evaluation import carry_out, prepare\n"
        "from experiments.settings import settings_from\n"
        f"carry_out(prepare(settings_from({words | {'model': 'baseline', 'runner': 'docker', 'output': str(tmp_path / 'killed')}})))"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    (tmp_path / "killed").mkdir()

    def responses():
        return sum(path.stat().st_size for path in (tmp_path / "killed").rglob("responses.jsonl"))

    wait_for(lambda: responses() > 0)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert len(ours(engine)) == 1
    after = carry_out(planned(tmp_path / "killed", **words))

    assert 0 < after.reused < TURNS
    assert ours(engine) == []
    assert answers(after) == answers(undisturbed)


@pytest.mark.slow
@pytest.mark.docker
def test_a_container_killed_in_the_middle_is_a_sentence_and_goes_on(engine, tmp_path, turns):
    plan = planned(tmp_path / "out", data=str(turns), conditions="TO")

    def kill():
        wait_for(lambda: plan.folder.responses.exists() and plan.folder.responses.stat().st_size)
        for container in ours(engine):
            container.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(
        RunnerError, match=r"baseline was ended by SIGKILL.*goes on where it stopped"
    ):
        carry_out(plan)
    killer.join()
    assert ours(engine) == []
    kept = len(read_responses(plan.folder.responses))
    after = carry_out(plan)

    assert 0 < kept < TURNS
    assert after.reused == kept
    assert set(after.predictions["status"]) == {"ok"}


BREAK_OUT = """
import json, os, socket
tried = {}
def attempt(name, act):
    try:
        act()
        tried[name] = "done"
    except OSError as error:
        tried[name] = type(error).__name__
def connect():
    with socket.socket() as client:
        client.settimeout(3)
        client.connect(("1.1.1.1", 80))
attempt("write code", lambda: open("/app/core/protocol.py", "a").write("#"))
attempt("write root", lambda: open("/evil", "w"))
attempt("read shadow", lambda: open("/etc/shadow").read())
attempt("write audio", lambda: open("/data/audio/evil.wav", "w"))
attempt("write requests", lambda: open("/data/requests.jsonl", "a").write("x"))
attempt("connect", connect)
attempt("look up", lambda: socket.getaddrinfo("example.com", 80))
attempt("become root", lambda: os.setuid(0))
attempt("change owner", lambda: os.chown("/tmp", 0, 0))
attempt("make a device", lambda: os.mknod("/tmp/null", 0o20666, os.makedev(1, 3)))
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
tried["capabilities"] = status["CapEff"].strip()
tried["no new privileges"] = status["NoNewPrivs"].strip()
tried["user"] = os.getuid()
tried["interfaces"] = [name for _, name in socket.if_nameindex()]
tried["secret"] = os.environ.get("UNDERTONE_API_KEY", "")
open("/tmp/scratch", "w").write("x")
open("/data/responses.jsonl", "a").write("")
print(json.dumps(tried))
"""


@pytest.mark.docker
def test_a_model_has_no_way_out(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTONE_API_KEY", "secret")
    plan = planned(tmp_path / "out")
    plan.folder.requests.write_text("")
    plan.folder.responses.write_text("")
    from experiments.evaluation import _job

    wanted = runner._container(_job(plan, None), engine)
    wanted |= {"entrypoint": ["python", "-c", BREAK_OUT], "command": []}
    with runner._writable(plan.folder.responses, engine):
        container = engine.containers.create(**wanted)
        try:
            container.start()
            assert container.wait()["StatusCode"] == 0, container.logs().decode()
            tried = json.loads(container.logs(stderr=False))
        finally:
            container.remove(force=True)

    assert tried.pop("capabilities") == "0" * 16
    assert tried.pop("no new privileges") == "1"
    assert tried.pop("user") != 0
    assert tried.pop("interfaces") == ["lo"]
    assert tried.pop("secret") == ""
    assert "done" not in tried.values(), tried
    assert plan.folder.responses.stat().st_uid == os.getuid()


@pytest.mark.docker
def test_a_container_of_a_living_or_a_strange_owner_is_left_alone(engine):
    labels = [runner.owner(), "elsewhere:1:1", f"{runner.owner()}0"]
    made = [
        engine.containers.create(images.tag("baseline"), labels={runner.OWNER: label})
        for label in labels
    ]
    try:
        assert runner.remove_orphans(engine) == [made[2].name]
    finally:
        for container in made[:2]:
            container.remove(force=True)


@pytest.mark.docker
def test_an_image_of_other_code_is_refused_with_the_command(engine, monkeypatch):
    assert runner.why_not(card_of("baseline")) is None
    monkeypatch.setattr(images, "source_digest", lambda model: "other")

    assert "rebuild it with: mlflow run . -e build_container -P model=baseline" in runner.why_not(
        card_of("baseline")
    )


@pytest.mark.docker
def test_an_image_not_built_is_refused_with_the_command(engine, monkeypatch):
    monkeypatch.setattr(images, "tag", lambda model: f"undertone/{model}:never")

    with pytest.raises(RunnerError) as error:
        runner_for("auto", replace(card_of("voxtral"), packages=("no_such_package",)))
    assert str(error.value).endswith("Begin with: mlflow run . -e build_container -P model=voxtral")


@pytest.mark.docker
def test_a_model_with_weights_prefers_its_image_and_one_without_the_process(engine, monkeypatch):
    weighty = replace(card_of("baseline"), repos=card_of("voxtral").repos)

    assert runner_for("auto", weighty)[0] == "docker"
    assert runner_for("auto", card_of("baseline"))[0] == "process"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("auto", {"Count": -1, "DeviceIDs": []}),
        ("count:2", {"Count": 2, "DeviceIDs": []}),
        ("0,3", {"Count": 0, "DeviceIDs": ["0", "3"]}),
    ],
)
def test_gpus_are_handed_out_by_count_or_index(tmp_path, said, wanted):
    nothing = tmp_path / "nothing"
    job = Job(card_of("voxtral"), *[nothing] * 5, "bf16", "auto", gpus=said)

    (request,) = runner._devices(job)
    assert wanted.items() <= request.items()
    assert request["Capabilities"] == [["gpu"]]
    assert runner._devices(replace(job, device_map="cpu")) == []
    assert runner._devices(replace(job, card=card_of("baseline"))) == []


def test_no_engine_is_a_sentence_that_says_where_it_was_looked_for(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    assert "No Docker engine answers at unix:///nowhere" in runner.why_not(card_of("baseline"))


def test_a_model_without_an_image_of_its_own_says_so():
    assert "no image of its own" in runner.why_not(card_of("null"))


def test_an_engine_without_gpus_is_named_as_that():
    error = RuntimeError('could not select device driver "" with capabilities: [[gpu]]')

    assert "NVIDIA container toolkit" in runner._engine_sentence(card_of("voxtral"), error)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may read what its container may not")
def test_weights_the_container_may_not_read_are_named(tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir(mode=0o755)
    (weights / "model.safetensors").touch(mode=0o600)
    nothing = tmp_path / "nothing"
    job = Job(card_of("voxtral"), nothing, weights, *[nothing] * 3, "bf16", "cpu")

    with pytest.raises(RunnerError, match=r"model\.safetensors.*chmod -R a\+rX"):
        runner.run(job)
