"""The command `python -m containers.runtime`: arguments in, exit code out.

Reads the card and the requests, loads the model beside the card, checks that it
hears, answers what is pending and ends with one line of JSON on stdout:

    {"summary": {"requests": 72, "counts": {"ok": 71, "audio_error": 1}, "answered": 72,
     "seconds": 3.1, "items_per_s": 23.0, "audio_s_per_s": 148.2, "load_s": 0.2,
     "halvings": 0, "hearing": {...}, "work": {...}, "ended": "done"}}

`counts` are over all requests of the file, whenever they were answered. Progress
and messages go to stderr.

What was answered stays answered; audio_error, model_error and timeout are asked
again by the next run. A batch that takes longer than the card's `timeout_s` makes
the process start itself anew and ask its members one by one; one that hangs
alone is a timeout. The run ends when the process that started it has gone,
unless told to outlive it.

Exit codes: 0 every request has an answer or a status; 2 wrong arguments, card or
requests; 3 the model does not load; 4 it does not hear; 5 another process writes
the response file; 74 a file cannot be read or written, as on a full disk; 75 it
hangs again and again (then there is no summary); 130 and 143 after Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from containers.runtime.adapter import Adapter, Clip, LoadError
from containers.runtime.adapters import load_adapter, unforeseen
from containers.runtime.answers import AnswerFile, BusyError
from containers.runtime.batches import Sized
from containers.runtime.canary import DeafError, Hearing, check_hearing
from containers.runtime.card import Card, CardError, read_card
from containers.runtime.clips import ClipError, read_clip
from containers.runtime.footprint import footprint
from containers.runtime.loop import Run, answer_all, measured
from containers.runtime.progress import Progress
from containers.runtime.prompts import prompt_of
from containers.runtime.replies import Stamp, failure
from containers.runtime.request_file import RequestFile
from containers.runtime.watch import HangWatch, Signals, Stopped, end_with_parent
from core.protocol import ProtocolError

DONE, WRONG_INPUT, NOT_LOADED, DEAF, BUSY, NO_FILE, HANGS = 0, 2, 3, 4, 5, 74, 75
# Hangs with no answer between them after which a run gives up.
MOST_HANGS = 3
CANARY_CANDIDATES = 8


@dataclass(frozen=True)
class Job:
    """One call of the command: what was asked for, and what it holds open."""

    options: argparse.Namespace
    card: Card
    stamp: Stamp
    requests: RequestFile
    answers: AnswerFile
    signals: Signals
    out: SummaryOnly


class SummaryOnly:
    """Keeps stdout for the summary: what a library prints there goes to stderr instead."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._stdout = os.dup(1)
        os.dup2(2, 1)

    def write(self, summary: dict[str, Any]) -> None:
        os.write(self._stdout, (json.dumps({"summary": summary}) + "\n").encode())

    def give_back(self) -> None:
        """Before another program takes over this process."""
        os.dup2(self._stdout, 1)


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code and never raises for what a user can mend."""
    options = _options(arguments)
    signals = Signals()
    try:
        _serve(_job(options, signals))
    except (CardError, ProtocolError) as error:
        return _sorry(WRONG_INPUT, error)
    except LoadError as error:
        return _sorry(NOT_LOADED, error)
    except DeafError as error:
        return _sorry(DEAF, error)
    except BusyError as error:
        return _sorry(BUSY, error)
    except OSError as error:
        # Of our own files: an adapter's errors are its requests' or its loading's.
        return _sorry(NO_FILE, error)
    except Stopped as stopped:
        return 128 + stopped.number
    return DONE


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m containers.runtime",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, explained in (
        ("card", "the model's model.toml; its adapter.py is beside it"),
        ("weights", "folder of the model's weights"),
        ("requests", "requests.jsonl"),
        ("responses", "responses.jsonl, created or continued"),
        ("audio", "folder of the clips the requests name"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=explained)
    parser.add_argument("--precision", default="", help="default: the card's first")
    parser.add_argument("--device-map", default="auto")
    parser.add_argument("--image", default="process", help="digest of the image this runs in")
    parser.add_argument("--canary", choices=("on", "off"), default="on")
    parser.add_argument("--log-every", type=float, default=10.0, help="seconds between log lines")
    parser.add_argument(
        "--outlive-parent", action="store_true", help="go on when the starting process is gone"
    )
    # These are set by this program when it starts itself anew after a hang.
    parser.add_argument("--run-start", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--hangs", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _job(options: argparse.Namespace, signals: Signals) -> Job:
    card = read_card(options.card)
    precision = options.precision or card.capabilities.precisions[0]
    if precision not in card.capabilities.precisions:
        raise CardError(
            f"{options.card}: {card.name} has no precision {precision!r}; "
            f"it has {', '.join(card.capabilities.precisions)}."
        )
    requests = RequestFile(options.requests)
    answers = AnswerFile(options.responses, options.run_start)
    if answers.repair:
        print(answers.repair, file=sys.stderr, flush=True)
    if not options.outlive_parent:
        end_with_parent(answers.writing)
    stamp = Stamp(card.digest, options.image, precision)
    return Job(options, card, stamp, requests, answers, signals, SummaryOnly())


def _serve(job: Job) -> None:
    """Answer what is pending, and write the summary however it ends."""
    summary: dict[str, Any] = {"model": job.card.name, "requests": sum(1 for _ in job.requests)}
    try:
        _answer(job, summary)
        summary["ended"] = "done"
    except Stopped:
        summary["ended"] = "stopped"
        raise
    except (LoadError, DeafError) as error:
        summary["ended"] = type(error).__name__
        raise
    finally:
        with job.signals.held():
            summary["counts"] = job.answers.counts(job.requests)
            job.out.write(summary)


def _answer(job: Job, summary: dict[str, Any]) -> None:
    audio = job.options.audio
    pending = job.answers.pending(job.requests.placed())
    good, bad = measured(pending, job.card, audio, job.stamp)
    summary["answered"] = 0
    if not good and not bad:
        return
    seconds = sum(entry.audio_s for entry in good)
    progress = Progress(len(good) + len(bad), seconds, sys.stderr, job.options.log_every)
    alone = frozenset(job.options.alone.split(","))
    run = Run(job.card, audio, job.answers, job.stamp, job.signals, progress, alone)
    adapter: Adapter | None = None
    try:
        if bad:
            run.write(bad)
        if good:
            started = time.perf_counter()
            adapter = _loaded(job)
            summary["load_s"] = round(time.perf_counter() - started, 3)
            watch = HangWatch(job.card.budget.timeout_s, _starting_anew(job, progress))
            if job.options.canary == "on":
                with watch.watching(()):
                    hearing = _canary(job, adapter, good)
                summary["hearing"] = hearing and asdict(hearing)
            answer_all(run, adapter, good, watch)
    finally:
        progress.finish()
        summary.update(_speed(progress), halvings=run.halvings)
        if adapter is not None:
            summary["work"] = asdict(adapter.work)
            summary.update(footprint())


def _loaded(job: Job) -> Adapter:
    return load_adapter(
        job.options.card,
        job.card,
        job.options.weights,
        precision=job.stamp.precision,
        device_map=job.options.device_map,
    )


def _canary(job: Job, adapter: Adapter, good: Sequence[Sized]) -> Hearing | None:
    """Check hearing with a question of the run, preferably one without the transcript."""
    by_length = sorted(good, key=lambda entry: -entry.audio_s)
    spoken = [entry for entry in by_length if entry.clips]
    # Of each length one first: where clips were changed, equally long ones are of one turn.
    first = {id(entry) for entry in {e.audio_s: e for e in reversed(spoken)}.values()}
    candidates = sorted(spoken, key=lambda entry: id(entry) not in first)
    clips = _readable(job.options.audio, (name for entry in candidates for name in entry.clips))
    askable = [entry for entry in spoken if set(entry.clips) <= set(clips)]
    if not askable:
        return None
    asked = next((entry for entry in askable if not entry.worded), askable[0]).read()
    question, _ = prompt_of(asked, clips, job.card.capabilities)
    try:
        with tempfile.TemporaryDirectory(prefix="canary-") as folder:
            return check_hearing(adapter, question, list(clips.values()), Path(folder))
    except DeafError:
        raise
    except Exception as error:
        doing = "answer the canary (its clips go into the temporary folder)"
        raise unforeseen(job.card, doing, error, job.stamp.precision) from error


def _readable(audio: Path, names: Iterable[str]) -> dict[str, Clip]:
    """The first few clips that can be read, by name."""
    clips: dict[str, Clip] = {}
    for name in dict.fromkeys(names):
        if len(clips) == CANARY_CANDIDATES:
            break
        with suppress(ClipError):
            clips[name] = read_clip(audio / name)
    return clips


def _starting_anew(job: Job, progress: Progress) -> Callable[[Sequence[str]], None]:
    """What to do about a hang: become a fresh process, which asks the batch's members one by
    one; a request that hangs alone has timed out."""

    def start_anew(ids: Sequence[str]) -> None:
        reason = f"no answer within {job.card.budget.timeout_s:g} s."
        with job.answers.writing:
            if len(ids) == 1:
                job.answers.append([failure(ids[0], "timeout", reason, job.stamp)])
            hangs = 1 + (0 if progress.answered else job.options.hangs)
            asked = f"A batch of {len(ids)}" if ids else "The canary"
            print(f"{asked}: {reason} Starting anew.", file=sys.stderr, flush=True)
            faulthandler.dump_traceback(sys.stderr)
            if hangs >= MOST_HANGS:
                print(f"{hangs} hangs with no answer between them.", file=sys.stderr, flush=True)
                os._exit(HANGS)
            # The last value of an option counts, so these override an earlier restart's.
            alone = ",".join([*filter(None, job.options.alone.split(",")), *ids])
            again = ["--run-start", str(job.answers.run_start), "--hangs", str(hangs)]
            again += ["--alone", alone]
            job.out.give_back()
            os.execv(sys.executable, [*sys.orig_argv, *again])

    return start_anew


def _speed(progress: Progress) -> dict[str, float]:
    elapsed = max(progress.elapsed_s, 1e-9)
    return {
        "answered": progress.answered,
        "seconds": round(elapsed, 3),
        "items_per_s": round(progress.answered / elapsed, 2),
        "audio_s_per_s": round(progress.audio_s / elapsed, 2),
    }


def _sorry(code: int, error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr, flush=True)
    return code
