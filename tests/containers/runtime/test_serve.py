"""The command as it is run in every container: whatever happens, each request has a status."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from containers.runtime.response_log import ResponseLog
from core.protocol import Response


def test_every_request_is_answered_and_the_summary_counts_them(case, asked):
    clip = case.clip("a.wav", 2.0)
    case.ask(asked("ao", "", clip), asked("at", "fine", clip), asked("to", "fine"))
    run = case.run()
    assert run.code == 0
    assert run.summary["counts"] == {"ok": 3}
    assert run.summary["hearing"]["seconds_used"] == run.summary["hearing"]["seconds_given"]
    answer = run.answers["ao"]
    assert (answer.audio_seconds, answer.audio_seconds_used) == (2.0, 2.0)
    assert (answer.image, answer.precision) == ("process", "float32")


def test_a_finished_run_is_answered_again_without_loading_the_model(case, asked):
    case.ask(asked("to", "fine"))
    case.run()
    again = case.run(mode="unloadable")
    assert (again.code, again.summary["answered"]) == (0, 0)
    assert again.summary["counts"] == {"ok": 1}


def test_a_full_disk_is_an_error_and_the_next_run_goes_on(case, asked, finish):
    case.ask(*(asked(str(n), "fine") for n in range(4)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Half an answer: the child takes over the limit and meets it as it would a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        started = case.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    run = finish(case, started)
    assert (run.code, run.statuses) == (74, {})
    assert "File too large" in run.said
    assert "Traceback" not in run.said
    assert case.run().summary["counts"] == {"ok": 4}


def test_a_failure_is_tried_again_by_the_next_run_and_an_answer_is_not(case, asked):
    with ResponseLog(case.responses) as log:
        log.append([Response("a", "model_error", reason="x"), Response("b", "ok", text="kept")])
    case.ask(asked("a", "fine"), asked("b", "fine"))
    run = case.run()
    assert run.answers["a"].text == "fine"
    assert run.answers["b"].text == "kept"


def test_one_request_that_raises_does_not_take_its_batch_along(case, asked):
    case.ask(asked("a", "fine"), asked("b", "raise"), asked("c", "fine"))
    run = case.run()
    assert run.statuses == {"a": "ok", "b": "model_error", "c": "ok"}
    assert run.answers["b"].reason == "ValueError: the tokenizer fell over"


def test_a_batch_that_does_not_fit_is_halved_and_the_run_learns_from_it(case, asked):
    case.ask(*(asked(str(n), "fine") for n in range(12)))
    run = case.run(mode="small")
    assert run.summary["counts"] == {"ok": 12}
    assert run.summary["halvings"] == 1


def test_an_item_that_never_fits_is_an_error_and_the_others_survive(case, asked):
    case.ask(asked("a", "fine"), asked("b", "oom"), asked("c", "fine"), asked("d", "fine"))
    run = case.run()
    assert run.statuses == {"a": "ok", "b": "model_error", "c": "ok", "d": "ok"}
    assert run.answers["b"].reason.startswith("out of memory on a batch of one")


def test_one_bad_file_is_its_items_audio_error(case, asked):
    case.clip("good.wav")
    (case.folder / "audio" / "page.wav").write_text("<html>not found</html>")
    case.ask(
        asked("good", "", "good.wav"), asked("page", "", "page.wav"), asked("gone", "", "gone.wav")
    )
    run = case.run()
    assert run.statuses == {"good": "ok", "page": "audio_error", "gone": "audio_error"}
    assert "gone.wav: no such file" in run.answers["gone"].reason


def test_probabilities_that_are_no_numbers_are_an_error(case, asked):
    case.ask(asked("a", "nan"))
    run = case.run()
    assert run.statuses == {"a": "model_error"}
    assert run.answers["a"].choice_logprobs is None


def test_free_text_at_its_limit_is_truncated(case, asked):
    case.ask(asked("a", "long", choices=None), asked("b", "long"))
    run = case.run()
    assert run.statuses == {"a": "truncated", "b": "ok"}


def test_a_clip_beyond_the_models_limit_is_truncated_and_says_so(case, asked):
    case.ask(asked("a", "", case.clip("long.wav", 25.0)))
    answer = case.run().answers["a"]
    assert (answer.status, answer.audio_seconds_used) == ("truncated", 20.0)
    assert answer.fallbacks == ("clip_cut",)


def test_a_system_prompt_the_model_has_no_place_for_moves_into_the_user_turn(case, asked):
    clip = case.clip("a.wav")
    case.ask(asked("ao", "Rate.", clip, system="Listen."), asked("to", "Rate.", system="Listen."))
    run = case.run()
    assert (run.answers["ao"].text, run.answers["to"].text) == ("Listen.\n\n  Rate.", "Rate.")
    assert run.answers["ao"].fallbacks == ("system_in_user_turn",)
    assert run.answers["to"].fallbacks == ()


def test_more_clips_than_the_model_takes_is_a_refusal_with_both_numbers(case, asked):
    clip = case.clip("a.wav")
    case.ask(asked("a", "", clip, clip, clip))
    run = case.run()
    assert run.statuses == {"a": "model_error"}
    assert "takes 2 clips per prompt; the request holds 3" in run.answers["a"].reason


def test_a_hang_costs_its_request_a_timeout_and_nothing_else(case, asked):
    # All four share a batch: after the hang they are asked one by one.
    case.ask(*(asked(name, name) for name in ["fine", "hang", "well", "good"]))
    run = case.run()
    assert run.code == 0
    assert run.statuses == {"fine": "ok", "hang": "timeout", "well": "ok", "good": "ok"}
    assert run.answers["hang"].reason == "no answer within 2.5 s."
    assert run.summary["counts"] == {"ok": 3, "timeout": 1}


def test_a_failure_from_before_a_hang_is_still_tried_after_it(case, asked):
    with ResponseLog(case.responses) as log:
        log.append([Response("old", "model_error", reason="x")])
    # Each has a prefix of its own, so each is a batch.
    case.ask(*(asked(name, name, prefix_parts=1) for name in ["hang", "old"]))
    assert case.run().statuses == {"hang": "timeout", "old": "ok"}


def test_a_model_that_only_hangs_is_given_up(case, asked):
    case.ask(*(asked(str(n), str(n), prefix_parts=1) for n in range(5)))
    run = case.run(mode="stuck")
    assert run.code == 75
    assert list(run.statuses.values()) == ["timeout"] * 3


def test_a_deaf_model_fails_the_run_before_any_answer(case, asked):
    case.ask(asked("ao", "", case.clip("a.wav")), asked("to", "fine"))
    run = case.run(mode="deaf")
    assert run.code == 4
    assert "does not hear" in run.said
    assert run.answers == {}


def test_a_model_that_drops_half_the_audio_fails_the_run(case, asked):
    case.ask(asked("ao", "", case.clip("a.wav")))
    run = case.run(mode="cuts")
    assert run.code == 4
    assert "was given 3.00 s of audio and used 1.50 s" in run.said


def test_a_deaf_model_may_be_asked_about_words(case, asked):
    case.ask(asked("to", "fine"))
    assert case.run(mode="deaf").statuses == {"to": "ok"}


def test_a_model_that_does_not_load_says_what_is_missing_in_one_line(case, asked):
    case.ask(asked("to", "fine"))
    run = case.run(mode="unloadable")
    assert run.code == 3
    assert "model.safetensors is missing; fetch it with" in run.said
    assert "Traceback" not in run.said


def test_a_missing_package_is_named_with_the_lock_that_has_it(case, asked):
    case.ask(asked("to", "fine"))
    run = case.run(mode="needs_torch")
    assert run.code == 3
    assert "a_package_nobody_has" in run.said
    assert "requirements.txt" in run.said


def test_stdout_holds_the_summary_alone_whatever_a_library_prints(case, asked):
    case.ask(asked("to", "fine"))
    run = case.run(mode="chatty")
    assert run.summary["counts"] == {"ok": 1}
    assert "Loading checkpoint" in run.said
    assert "native code" in run.said


def test_a_model_too_big_for_the_memory_names_the_smaller_precisions(case, asked):
    case.ask(asked("to", "fine"))
    run = case.run(mode="too_big")
    assert run.code == 3
    assert "out of memory in float32" in run.said
    assert "Try --precision int8" in run.said


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("broken", "could not load: KeyError: 'audio_tower.weight'"),
        (
            "mute",
            "could not answer the canary (its clips go into the temporary folder): TypeError: unexpected keyword audios",
        ),
    ],
)
def test_an_error_no_adapter_foresaw_ends_in_one_sentence_after_its_traceback(
    case, asked, mode, says
):
    case.ask(asked("ao", "", case.clip("a.wav")))
    run = case.run(mode=mode)
    assert run.code == 3
    assert run.said.splitlines()[-1].endswith(says)
    assert "Traceback" in run.said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--precision", "nf4"], "it has float32, int8"),
        (["--card", "nowhere.toml"], "no such card"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(case, asked, options, says):
    case.ask(asked("to", "fine"))
    run = case.run(*options)
    assert run.code == 2
    assert says in run.said
    assert "Traceback" not in run.said


def test_missing_requests_are_one_sentence(case):
    run = case.run()
    assert run.code == 2
    assert "requests.jsonl: cannot be read" in run.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_answered_and_the_next_run_goes_on(case, asked, finish, number):
    case.ask(*(asked(str(n), "slow", prefix_parts=1, seed=n, system=str(n)) for n in range(20)))
    process = case.start()
    _wait_for_lines(case.responses, 2)
    process.send_signal(number)
    run = finish(case, process)
    assert run.code == 128 + number
    assert run.summary["ended"] == "stopped"
    assert run.summary["counts"]["ok"] == len(run.answers) < 20
    case.ask(*(asked(str(n), "fine") for n in range(3)), asked("new", "fine"))
    assert case.run().summary["counts"] == {"ok": 4}


def test_a_kill_in_the_middle_loses_no_answer_and_asks_none_twice(case, asked, finish):
    case.ask(*(asked(str(n), "slow", prefix_parts=1, system=str(n)) for n in range(6)))
    for lines in (1, 3):
        process = case.start()
        _wait_for_lines(case.responses, lines)
        process.kill()
        kept = set(finish(case, process).answers)
        with case.responses.open("ab") as stream:
            stream.write(b'{"id":"half')
    run = case.run()
    assert run.summary["answered"] == 6 - len(kept)
    assert len(case.responses.read_text().splitlines()) == 6


def test_two_runs_never_write_one_file(case, asked, finish):
    case.ask(*(asked(str(n), "slow", prefix_parts=1, system=str(n)) for n in range(8)))
    first, second = case.start(), case.start()
    codes = {finish(case, first).code, finish(case, second).code}
    assert codes == {0}
    assert len(case.responses.read_text().splitlines()) == 8


def test_a_runtime_whose_parent_was_killed_ends_itself(case, asked):
    case.ask(*(asked(str(n), "slow", prefix_parts=1, system=str(n)) for n in range(60)))
    starter = (
        "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(p.pid, flush=True); "
        "time.sleep(60)"
    )
    process = case.start()
    command = list(process.args)
    process.kill()
    process.communicate()
    parent = subprocess.Popen(
        [sys.executable, "-c", starter, *command],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "SCRIPTED": ""},
        text=True,
    )
    child = int(parent.stdout.readline())
    _wait_for_lines(case.responses, 1)
    parent.kill()
    parent.communicate()
    assert _gone_within(child, 8.0)


def _wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "no answer appeared"
        time.sleep(0.02)


def _gone_within(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False
