"""deploy/mlflow/start.sh before a real PostgreSQL: what compose.yaml starts, without its image.

PostgreSQL is Debian's package `postgresql`; where it is not installed these tests are
skipped and say so. A database of their own is made in a folder that is then removed.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from experiments.settings import ROOT

ADMIN, DATABASE, KEY = "correct horse battery", "p@ss/w:rd of the store", "a key for the cookies"
START = ROOT / "deploy" / "mlflow" / "start.sh"
pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found += [Path(there).resolve() for there in [shutil.which("initdb")] if there]
    if not found:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    return found[0].parent


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextmanager
def ended(process):
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def database():
    """Port of a PostgreSQL with the two databases; it refuses to run as root."""
    where = programs()
    folder = Path(tempfile.mkdtemp(prefix="undertone-postgres-"))
    user = None if os.getuid() else "postgres"
    if user:
        shutil.chown(folder, *pwd.getpwnam(user)[2:4])
    plain = {"user": user, "group": user, "cwd": "/", "env": {"PATH": str(where), "LC_ALL": "C"}}
    plain |= {"extra_groups": []} if user else {}
    port = free_port()
    try:
        password = folder / "password"
        password.write_text(DATABASE)
        words = ["-D", folder / "data", "-U", "mlflow", "-A", "scram-sha-256", "-E", "UTF8"]
        password.chmod(0o644)
        subprocess.run(
            [where / "initdb", *words, f"--pwfile={password}"],
            **plain,
            check=True,
            capture_output=True,
        )
        options = ["-k", folder, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        server = subprocess.Popen(
            [where / "postgres", "-D", folder / "data", "-p", str(port), *options],
            **plain,
            stderr=subprocess.DEVNULL,
        )
        with ended(server):
            login = {"PGPASSWORD": DATABASE, "PGUSER": "mlflow", "PGHOST": "127.0.0.1"}
            client = {**plain, "env": plain["env"] | login | {"PGPORT": str(port)}}
            wait_for(lambda: not subprocess.run([where / "pg_isready", "-q"], **client).returncode)
            made = (ROOT / "deploy" / "postgres" / "init.sql").read_text()
            for statement in ("CREATE DATABASE mlflow;", made):
                command = [where / "psql", "-q", "-d", "postgres", "-c", statement]
                subprocess.run(command, **client, check=True, capture_output=True)
            yield port
    finally:
        shutil.rmtree(folder)


def wait_for(truth, seconds=120):
    deadline = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "PG", "POSTGRES"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": path, "PYTHONPATH": str(ROOT)} | more


def answers(url):
    try:
        return requests.get(url, timeout=20).status_code == 200
    except requests.RequestException:
        return False


@pytest.fixture(scope="module")
def server(database, tmp_path_factory):
    """Its port, and the folder with its log and artifacts."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    said = environment(
        POSTGRES_PASSWORD=DATABASE,
        POSTGRES_HOST="127.0.0.1",
        POSTGRES_PORT=str(database),
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN,
        MLFLOW_FLASK_SERVER_SECRET_KEY=KEY,
        MLFLOW_ALLOWED_HOSTS=f"127.0.0.1:{port},localhost:{port}",
        MLFLOW_ARTIFACTS_DESTINATION=str(folder / "artifacts"),
        MLFLOW_LISTEN="127.0.0.1",
        MLFLOW_PORT=str(port),
        MLFLOW_WORKERS="1",
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([START], cwd=folder, env=said, stdout=log, stderr=log)
        with ended(process):
            wait_for(
                lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/health")
            )
            assert process.poll() is None, (folder / "log").read_text()
            yield port, folder


def evaluate(folder, uri, **more):
    command = [sys.executable, "-m", "experiments.evaluate", "--model", "null", "--limit", "2"]
    return subprocess.run(
        [*command, "--resamples", "20", "--conditions", "TO", "--output", str(folder / "out")],
        cwd=folder,
        env=environment(MLFLOW_TRACKING_URI=uri, **more),
        capture_output=True,
        text=True,
    )


def test_a_run_goes_to_the_database_and_its_files_through_the_server(server, tmp_path):
    port, folder = server

    ended = evaluate(tmp_path, f"http://admin:{ADMIN.replace(' ', '%20')}@127.0.0.1:{port}")

    assert ended.returncode == 0, ended.stderr
    assert f"look:  http://127.0.0.1:{port}/#/experiments/" in ended.stdout
    found = requests.post(
        f"http://127.0.0.1:{port}/api/2.0/mlflow/runs/search",
        json={"experiment_ids": ["1"]},
        auth=("admin", ADMIN),
        timeout=30,
    ).json()
    assert [run["info"]["status"] for run in found["runs"]] == ["FINISHED"]
    assert {path.name for path in folder.rglob("artifacts/**/*")} >= {"predictions.parquet"}
    left = ended.stdout + ended.stderr + (folder / "log").read_text()
    left += "".join(p.read_text() for p in tmp_path.rglob("*.json*")) + str(found)
    for secret in (ADMIN, ADMIN.replace(" ", "%20"), DATABASE, KEY):
        assert secret not in left


@pytest.mark.parametrize("login", ["admin:wrong-password-123@", "nobody:x@", ""])
def test_a_wrong_password_is_refused_in_a_sentence_that_does_not_show_it(server, tmp_path, login):
    ended = evaluate(tmp_path, f"http://{login}127.0.0.1:{server[0]}")

    assert ended.returncode == 1
    assert "401" in ended.stderr
    assert "MLFLOW_TRACKING_PASSWORD" in ended.stderr
    assert "wrong-password-123" not in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:5000"])
def test_another_host_name_is_refused_with_the_right_password_too(server, host):
    url = f"http://127.0.0.1:{server[0]}/api/2.0/mlflow/experiments/get?experiment_id=0"
    ask = {"auth": ("admin", ADMIN), "timeout": 30}

    assert requests.get(url, **ask).status_code == 200
    assert requests.get(url, headers={"Host": host}, **ask).status_code == 403


def test_another_site_cannot_write_with_the_browsers_login(server):
    url = f"http://127.0.0.1:{server[0]}/api/2.0/mlflow/experiments/create"
    headers = {"Origin": "https://evil.example", "Content-Type": "application/json"}

    ended = requests.post(
        url, json={"name": "x"}, headers=headers, auth=("admin", ADMIN), timeout=30
    )

    assert ended.status_code == 403
