import subprocess
import sys

import pytest

from experiments.settings import ROOT

# In a process of its own: an audit hook stays for the life of the interpreter.
PREAMBLE = (
    "import socket; from experiments.offline import forbid_connections; forbid_connections();"
)


def offline(code):
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + code], cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "socket.getaddrinfo('example.org', 443)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "import urllib.request; urllib.request.urlopen('http://example.org')",
    ],
)
def test_a_connection_beyond_this_machine_is_an_error(code):
    ended = offline(code)

    assert ended.returncode == 1
    assert "offline=true, yet something wants to reach" in ended.stderr


def test_the_loopback_stays_open():
    ended = offline(
        "s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(('localhost', s.getsockname()[1]))"
    )

    assert ended.returncode == 0, ended.stderr


def test_a_module_runs_under_the_same_rule(tmp_path):
    (tmp_path / "caller.py").write_text("import socket, sys\nsocket.getaddrinfo(sys.argv[1], 80)\n")

    ended = subprocess.run(
        [sys.executable, "-m", "experiments.offline", "caller", "example.org"],
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert "wants to reach 'example.org'" in ended.stderr
