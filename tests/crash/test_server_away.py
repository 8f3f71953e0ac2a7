"""A real MLflow server that is killed in the middle of a run, and comes back."""

import os
import signal
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest

from experiments.settings import ROOT

pytestmark = pytest.mark.slow


class Server:
    """`mlflow server` on loopback with its own store; `kill` leaves the store behind."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self._process = None

    def start(self):
        words = ["server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        words += ["--backend-store-uri", f"sqlite:///{self.folder}/server.db"]
        words += ["--artifacts-destination", str(self.folder / "artifacts")]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *words],
            cwd=self.folder,
            env=kept | {"MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 200
        while True:
            try:
                with urlopen(self.uri + "/health", timeout=5):
                    return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.2)

    def kill(self):
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


def started(module, server, *words, **settings):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    environment = {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": server.uri, **settings}
    return subprocess.Popen(
        [sys.executable, "-m", f"experiments.{module}", *words],
        cwd=server.folder,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*words, **settings):
    process = started(*words, **settings)
    out, err = process.communicate(timeout=250)
    return process.returncode, out, err


def runs(server):
    from mlflow import MlflowClient

    client = MlflowClient(server.uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    return client, client.search_runs(experiments)


def test_a_server_that_goes_in_the_middle_costs_nothing(server, tmp_path):
    output = tmp_path / "out"
    words = ("--model", "null", "--conditions", "TO", "--limit", "6", "--output", str(output))
    words += ("--resamples", "50")
    run = started("evaluate", server, *words, UNDERTONE_NULL_LATENCY_S="0.2")
    deadline = time.monotonic() + 120
    while not list(output.glob("*/*/null/responses.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    _, (opened,) = runs(server)
    server.kill()
    out, err = run.communicate(timeout=250)
    (results,) = output.glob("*/*/null/limit-6")

    # The figures are shown and kept, and what completes the run is said.
    assert run.returncode == 1
    assert "null on distress" in out
    assert f"In the MLflow store {server.uri} the run cannot be written" in err
    assert f"mlflow run . -e log_results -P output={results}" in err
    assert "Traceback" not in err
    assert (results / "unlogged" / "record.json").exists()

    # As long as it is away, both commands say so within seconds.
    for command in (("evaluate", server, *words), ("log_results", server, "--output", str(output))):
        began = time.monotonic()
        code, _, err = ended(*command)
        assert code == 1
        assert f"No MLflow server answers at {server.uri}" in err
        assert time.monotonic() - began < 30

    server.start()
    code, out, err = ended("log_results", server, "--output", str(output))
    client, found = runs(server)

    assert code == 0, err
    assert f"run {opened.info.run_id} (completed)" in out
    assert [(one.info.run_id, one.info.status) for one in found] == [
        (opened.info.run_id, "FINISHED")
    ]
    assert found[0].data.metrics["n/TO"] == 6
    files = {one.path for one in client.list_artifacts(opened.info.run_id)}
    assert {"predictions.parquet", "items", "figures"} <= files
    assert not (results / "unlogged").exists()

    # And the same command knows that all of it stands there.
    code, out, err = ended("evaluate", server, *words)
    assert code == 0, err
    assert f"in MLflow since an earlier run ({opened.info.run_id})" in out
