"""Nothing is reported and nobody is asked unless the user said so, in no process of a run."""

import os
import subprocess
import sys

import pytest

from experiments import TELEMETRY_OFF
from experiments.runners.process import environment
from experiments.settings import ROOT

# What a library of a run may do behind our back, in the process itself or one it starts.
WAYS_OUT = {
    "a look-up": "socket.getaddrinfo('example.org', 443)",
    "a look-up of an older kind": "socket.gethostbyname('example.org')",
    "another": "socket.gethostbyname_ex('example.org')",
    "a name for an address": "socket.gethostbyaddr('192.0.2.1')",
    "another for one": "socket.getnameinfo(('192.0.2.1', 80), 0)",
    "a connection": "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "one that does not wait": "socket.socket().connect_ex(('192.0.2.1', 80))",
    "a connection by version 6": "socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))",
    "a mapped address": "socket.socket(socket.AF_INET6).connect(('::ffff:192.0.2.1', 80))",
    "a datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "a message": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('192.0.2.1', 53))",
    "a connected datagram": "socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 53))",
    "urllib": "__import__('urllib.request').request.urlopen('http://example.org')",
    "asyncio": "__import__('asyncio').run(__import__('asyncio').open_connection('192.0.2.1', 80))",
}
CHILDREN = {
    "itself": "{code}",
    "a child": "subprocess.run([sys.executable, '-c', 'import socket\\n' + {code!r}], check=True)",
    "a child with an environment of its own": (
        "subprocess.run([sys.executable, '-c', 'import socket\\n' + {code!r}], check=True, env={{}})"
    ),
    "a fork": "os.waitpid(pid, 0)[1] and sys.exit(1) if (pid := os.fork()) else {code}",
    "a pool": (
        "__import__('multiprocessing').get_context('spawn').Pool(1)"
        ".apply(eval, (\"__import__('socket').getaddrinfo('example.org', 443)\",))"
    ),
}


def offline(code):
    code = (
        "import os, socket, subprocess, sys\n"
        "from experiments.offline import forbid_connections\n"
        f"if __name__ == '__main__':\n    forbid_connections()\n    {code}\n"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("way", WAYS_OUT)
def test_offline_no_way_leads_out(way):
    ended = offline(WAYS_OUT[way])

    assert ended.returncode != 0
    assert "offline=true, yet something wants to reach" in ended.stderr


@pytest.mark.parametrize("who", CHILDREN)
def test_offline_holds_in_every_python_a_run_starts(who):
    ended = offline(CHILDREN[who].format(code=WAYS_OUT["a look-up"]))

    assert ended.returncode != 0
    assert "offline=true, yet something wants to reach 'example.org'" in ended.stderr


def test_packages_are_told_to_report_nothing_before_they_are_imported():
    code = "import experiments.evaluate, os, sys; print(dict(os.environ), 'mlflow' in sys.modules)"
    kept = {name: value for name, value in os.environ.items() if name not in TELEMETRY_OFF}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=kept, capture_output=True, text=True
    ).stdout

    assert all(f"'{name}': '{value}'" in said for name, value in TELEMETRY_OFF.items())
    assert said.endswith("False\n")
    # A model's process is told the same; MLflow is not in it.
    assert TELEMETRY_OFF.keys() - environment().keys() == {"MLFLOW_DISABLE_TELEMETRY"}
