"""What a terminal and a log are told."""

from __future__ import annotations

import io

from containers.runtime.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_has_rates_time_left_and_failures():
    clock = Clock()
    progress = Progress(total=4, audio_s=40, stream=io.StringIO(), clock=clock)
    clock.now = 10.0
    progress.add(answered=2, audio_s=30, failures=1)
    # Three quarters of the audio in 10 s leaves 3.3 s.
    assert progress.line() == "2/4 items, 0.2 items/s, 3.0 audio-s/s, 0:03 left, 1 failed"


def test_without_audio_the_items_foretell_the_end():
    clock = Clock()
    progress = Progress(total=100, audio_s=0, stream=io.StringIO(), clock=clock)
    clock.now = 60.0
    progress.add(answered=1, audio_s=0, failures=0)
    assert progress.line() == "1/100 items, 0.0 items/s, 1:39:00 left, 0 failed"


def test_a_log_gets_a_line_every_so_often_and_one_at_the_end():
    clock, log = Clock(), io.StringIO()
    progress = Progress(total=100, audio_s=0, stream=log, every_s=10, clock=clock)
    for _ in range(100):
        clock.now += 0.25
        progress.add(1, 0, 0)
    progress.finish()
    assert len(log.getvalue().splitlines()) == 3


def test_a_terminal_gets_a_bar_on_one_line():
    clock, terminal = Clock(), Terminal()
    progress = Progress(total=2, audio_s=0, stream=terminal, clock=clock)
    clock.now = 1.0
    progress.add(1, 0, 0)
    progress.finish()
    assert "\r[############            ] 1/2 items" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1
