"""A model that wants out of its container: with its real mounts, limits and user, on a real engine."""

import json
import os

import pytest

from experiments import images
from experiments.evaluation import _job, prepare
from experiments.runners import docker as runner
from experiments.settings import settings_from
from tests.hostile.hostile_run import SECRETS

# Runs in the image instead of the model; every attempt that succeeds is told as "done".
BREAK_OUT = """
import ctypes, glob, json, os, socket, subprocess, threading
tried = {}
def attempt(name, act):
    try:
        told = act()
        tried[name] = "done" if told is None else told
    except (OSError, RuntimeError, MemoryError) as error:
        tried[name] = type(error).__name__
def libc(name, *arguments):
    if ctypes.CDLL(None, use_errno=True)[name](*arguments):
        raise OSError(ctypes.get_errno(), name)
def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
def write(path, flags="a"):
    open(path, flags).write("x")
outside = "/data/audio/outside.wav"
attempt("write a clip", lambda: write("/data/audio/new.wav"))
attempt("replace a clip", lambda: os.replace("/data/audio/inside.wav", "/data/audio/b.wav"))
attempt("remove a clip", lambda: os.unlink("/data/audio/inside.wav"))
attempt("link a clip", lambda: os.symlink("/etc/passwd", "/data/audio/c.wav"))
attempt("write weights", lambda: write("/weights/model.safetensors"))
attempt("write requests", lambda: write("/data/requests.jsonl"))
attempt("write beside them", lambda: write("/data/other.jsonl"))
attempt("write code", lambda: write("/app/core/protocol.py"))
attempt("write packages", lambda: write("/usr/local/lib/python3.11/evil.pth"))
attempt("write the kernel", lambda: write("/proc/sys/kernel/core_pattern"))
attempt("read a link to the host", lambda: open(outside).read() and None)
attempt("read the folder above", lambda: open("/data/audio/../../host-secret").read() and None)
attempt("read the host's root", lambda: open("/proc/1/root/host-secret").read() and None)
attempt("read shadow", lambda: open("/etc/shadow").read() and None)
attempt("docker's socket", lambda: connect(socket.AF_UNIX, "/var/run/docker.sock"))
attempt("the engine's socket", lambda: connect(socket.AF_UNIX, ENGINE))
attempt("another machine", lambda: connect(socket.AF_INET, ("192.0.2.1", 80)))
attempt("this machine", lambda: connect(socket.AF_INET, ("172.17.0.1", 22)))
attempt("the cloud's keys", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("a look-up", lambda: socket.getaddrinfo("example.org", 80) and None)
attempt("a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and None)
attempt("become root", lambda: os.setuid(0))
attempt("mount", lambda: libc("mount", b"none", b"/tmp", b"tmpfs", 0, None))
attempt("another root", lambda: os.chroot("/tmp"))
attempt("a device", lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0)))
attempt("signal a stranger", lambda: os.kill(2**22 - 1, 9))
threads = []
def many():
    for _ in range(5000):
        thread = threading.Thread(target=threading.Event().wait, args=(20,), daemon=True)
        thread.start()
        threads.append(thread)
attempt("five thousand threads", many)
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
told = {
    "capabilities": sorted({status[name].strip() for name in ("CapEff", "CapPrm", "CapBnd")}),
    "no new privileges": status["NoNewPrivs"].strip(),
    "seccomp": status["Seccomp"].strip(),
    "user": os.getuid(),
    "groups": os.getgroups(),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "threads": len(threads),
    "environment": dict(os.environ),
    "sockets": glob.glob("/*/*.sock") + glob.glob("/var/run/*.sock") + glob.glob("/data/*.sock"),
}
open("/data/responses.jsonl", "a").write("")
print(json.dumps({"tried": tried, "told": told}))
os._exit(0)
"""


@pytest.fixture(scope="module")
def engine():
    try:
        client = images.engine()
    except images.ImageError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_IMAGES", "undertone-tests")
        from containers.runtime.card import read_card
        from experiments.settings import ROOT

        card = read_card(ROOT / "containers" / "baseline" / "model.toml")
        images.build(client, card, {}, lambda line: None)
        yield client


@pytest.mark.docker
def test_a_model_finds_no_way_out_of_its_container(engine, tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    words = {"model": "baseline", "runner": "docker", "output": str(tmp_path / "out")}
    plan = prepare(settings_from({**words, "resamples": "20"}))
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "host-secret").write_text("secret")
    plan.folder.requests.write_text("")
    plan.folder.responses.write_text("")
    (plan.folder.audio / "inside.wav").write_bytes(b"clip")
    (plan.folder.audio / "outside.wav").symlink_to(tmp_path / "host-secret")
    wanted = runner._container(_job(plan, None), engine)
    wanted["mounts"].append(runner.mount(weights, runner.WEIGHTS, read_only=True))
    socket_of_engine = (
        os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/run/docker.sock"
    )
    code = f"ENGINE = {socket_of_engine!r}\n{BREAK_OUT}"
    wanted |= {"entrypoint": ["python", "-c", code], "command": []}

    with runner._writable(plan.folder.responses, engine):
        container = engine.containers.create(**wanted)
        try:
            container.start()
            assert container.wait()["StatusCode"] == 0, container.logs().decode()
            said = json.loads(container.logs(stderr=False))
            limits = container.attrs["HostConfig"]
        finally:
            container.remove(force=True)

    told = said["told"]
    assert [name for name, end in said["tried"].items() if end == "done"] == []
    assert told["capabilities"] == ["0" * 16]
    assert (told["no new privileges"], told["seccomp"]) == ("1", "2")
    assert told["user"] != 0
    assert 0 not in told["groups"]
    assert told["interfaces"] == ["lo"]
    assert told["sockets"] == []
    assert 0 < told["threads"] < runner.PIDS
    assert not set(SECRETS.values()) & set(told["environment"].values())
    assert limits["Memory"] > 0
    assert limits["PidsLimit"] == runner.PIDS
    assert not limits["Privileged"]
    assert (plan.folder.audio / "inside.wav").read_bytes() == b"clip"
    assert (weights / "model.safetensors").read_bytes() == b"weights"


@pytest.mark.parametrize(
    "name", ["../host-secret", "/etc/passwd", "audio/../../x", "..", "", "a\0b", "sub/a.wav"]
)
def test_a_request_cannot_name_a_file_outside_the_audio_folder(tmp_path, name):
    from core.protocol import ProtocolError, read_requests

    request = {"schema": 1, "id": "r", "system": None, "parts": [{"audio": name}], "choices": None}
    (tmp_path / "requests.jsonl").write_text(json.dumps(request) + "\n")

    with pytest.raises(ProtocolError, match=r"requests\.jsonl, line 1: parts must be a list"):
        read_requests(tmp_path / "requests.jsonl")
