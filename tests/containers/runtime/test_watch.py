"""What ends a run from outside: signals, hangs, and the lock that holds Python itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from containers.runtime.watch import HangWatch, Signals, Stopped


@pytest.fixture
def signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield Signals()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_unwinds_at_once(signals):
    with pytest.raises(Stopped) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
    assert stopped.value.number == signal.SIGTERM


def test_a_signal_waits_for_the_write_in_hand(signals):
    written = []

    def write() -> None:
        with signals.held():
            os.kill(os.getpid(), signal.SIGINT)
            written.append("whole")

    with pytest.raises(Stopped):
        write()
    assert written == ["whole"]


def test_no_adapter_can_swallow_a_signal():
    assert not issubclass(Stopped, Exception)


def test_a_batch_in_time_is_left_alone():
    hung = []
    watch = HangWatch(0.2, hung.append)
    for name in "abc":
        with watch.watching([name]):
            pass
    threading.Event().wait(0.4)
    assert hung == []


def test_a_batch_over_time_is_reported_with_its_ids():
    reported, hung = threading.Event(), []

    def on_hang(ids):
        hung.extend(ids)
        reported.set()

    with HangWatch(0.1, on_hang).watching(["a", "b"]):
        assert reported.wait(5)
    assert hung == ["a", "b"]


def test_a_hang_that_holds_pythons_own_lock_ends_the_process():
    script = (
        "import ctypes\nfrom containers.runtime import watch\nwatch.LAST_RESORT_S = 0.5\n"
        "with watch.HangWatch(0.5, lambda ids: None).watching(['a']):\n"
        "    ctypes.PyDLL(None).sleep(60)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30)
    assert ended.returncode == 1
    assert b"Timeout" in ended.stderr
