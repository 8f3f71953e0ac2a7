import os
import signal
import subprocess
import sys
import time

from experiments.settings import ROOT

CHILD = """
import os, sys, time
from experiments.parent import Stopped, end_on_signal, end_with_parent
end_on_signal()
end_with_parent()
try:
    print(os.getpid(), flush=True)
    time.sleep(60)
except Stopped:
    open(sys.argv[1], "w").write("closed everything")
"""


def wait_until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def started_by_a_shell(tmp_path):
    """A shell that waits for its program, as `mlflow run` starts one; its pid and the program's."""
    (tmp_path / "child.py").write_text(CHILD)
    script = f'"{sys.executable}" "{tmp_path}/child.py" "{tmp_path}/ended"; true'
    middle = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run(['bash', '-c', sys.argv[1]])",
            script,
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    return middle, int(middle.stdout.readline())


def test_a_program_ends_in_order_when_whoever_started_its_shell_is_killed(tmp_path):
    middle, _child = started_by_a_shell(tmp_path)
    middle.kill()
    middle.wait()

    wait_until((tmp_path / "ended").exists)


def test_sigterm_unwinds_what_is_open(tmp_path):
    middle, child = started_by_a_shell(tmp_path)
    os.kill(child, signal.SIGTERM)
    middle.wait(5)

    assert (tmp_path / "ended").read_text() == "closed everything"
