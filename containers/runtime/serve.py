"""The command `python -m containers.runtime`: arguments in, exit code out.

Reads the card and the requests, loads the model beside the card, checks that it
hears, answers what is pending and ends with one line of JSON on stdout:

    {"summary": {"requests": 72, "counts": {"ok": 71, "audio_error": 1}, "answered": 72,
     "seconds": 3.1, "items_per_s": 23.0, "audio_s_per_s": 148.2, "load_s": 0.2,
     "halvings": 0, "hearing": {...}, "work": {...}, "ended": "done"}}

`counts` are over all requests of the file, whenever they were answered. Progress
and messages go to stderr.

Exit codes: 0 every request has an answer or a status; 2 wrong arguments, card or
requests; 3 the model does not load; 4 it does not hear; 5 another process writes
the response file; 75 it hangs again and again (then there is no summary); 130
and 143 after Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from containers.runtime.adapter import Adapter, LoadError
from containers.runtime.answers import AnswerFile, BusyError
from containers.runtime.batches import Sized
from containers.runtime.canary import DeafError, Hearing, check_hearing
from containers.runtime.card import Card, CardError, read_card
from containers.runtime.clips import ClipError, read_clip
from containers.runtime.loop import Run, answer_all, is_out_of_memory, measured
from containers.runtime.progress import Progress
from containers.runtime.prompts import clip_names, prompt_of
from containers.runtime.replies import Stamp, failure
from containers.runtime.watch import HangWatch, Signals, Stopped, end_with_parent
from core.protocol import ProtocolError, Request, read_requests

DONE, WRONG_INPUT, NOT_LOADED, DEAF, BUSY, HANGS = 0, 2, 3, 4, 5, 75
# Hangs with no answer between them after which a run gives up.
MOST_HANGS = 3
CANARY_CANDIDATES = 8


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code and never raises for what a user can mend."""
    options = _options(arguments)
    signals = Signals()
    try:
        return _serve(options, signals)
    except (CardError, ProtocolError) as error:
        return _sorry(WRONG_INPUT, error)
    except LoadError as error:
        return _sorry(NOT_LOADED, error)
    except DeafError as error:
        return _sorry(DEAF, error)
    except BusyError as error:
        return _sorry(BUSY, error)
    except Stopped as stopped:
        return 128 + stopped.number


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m containers.runtime", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
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
    # Both are set by this program when it starts itself anew after a hang.
    parser.add_argument("--run-start", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--hangs", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _serve(options: argparse.Namespace, signals: Signals) -> int:
    card = read_card(options.card)
    precision = options.precision or card.capabilities.precisions[0]
    if precision not in card.capabilities.precisions:
        raise CardError(
            f"{options.card}: {card.name} has no precision {precision!r}; "
            f"it has {', '.join(card.capabilities.precisions)}."
        )
    requests = _requests(options.requests)
    stamp = Stamp(card.digest, options.image, precision)
    answers = AnswerFile(options.responses, options.run_start)
    if not options.outlive_parent:
        end_with_parent(answers.writing)
    summary: dict[str, Any] = {"model": card.name, "requests": len(requests)}
    try:
        _answer(options, signals, card, stamp, answers, requests, summary)
        summary["ended"] = "done"
    except Stopped:
        summary["ended"] = "stopped"
        raise
    except (LoadError, DeafError) as error:
        summary["ended"] = type(error).__name__
        raise
    finally:
        with signals.held():
            summary["counts"] = answers.counts(requests)
            print(json.dumps({"summary": summary}), flush=True)
    return DONE


def _requests(path: Path) -> list[Request]:
    try:
        return read_requests(path)
    except OSError as error:
        raise ProtocolError(f"{path}: cannot be read ({error.strerror}).") from error


def _answer(
    options: argparse.Namespace,
    signals: Signals,
    card: Card,
    stamp: Stamp,
    answers: AnswerFile,
    requests: Sequence[Request],
    summary: dict[str, Any],
) -> None:
    pending = answers.pending(requests)
    summary["answered"] = 0
    if not pending:
        return
    good, bad = measured(pending, card, options.audio, stamp)
    progress = Progress(len(pending), sum(entry.audio_s for entry in good), sys.stderr)
    run = Run(card, options.audio, answers, stamp, signals, progress)
    adapter: Adapter | None = None
    try:
        if bad:
            run.write(bad)
        if good:
            adapter, summary["load_s"] = _loaded(options, card, stamp.precision)
            watch = _hang_watch(options, card, stamp, answers, progress)
            if options.canary == "on":
                with watch.watching(()):
                    hearing = _canary(adapter, card, options.audio, good)
                summary["hearing"] = hearing and asdict(hearing)
            answer_all(run, adapter, good, watch)
    finally:
        progress.finish()
        summary.update(_speed(progress), halvings=run.halvings)
        if adapter is not None:
            summary["work"] = asdict(adapter.work)


def _loaded(options: argparse.Namespace, card: Card, precision: str) -> tuple[Adapter, float]:
    started = time.perf_counter()
    module = _adapter_module(options.card, card)
    try:
        adapter: Adapter = module.load(
            card, options.weights, precision=precision, device_map=options.device_map
        )
    except ImportError as error:
        raise _missing_package(card, error) from error
    except LoadError:
        raise
    except Exception as error:
        raise _unexpected(card, "load", error, precision) from error
    return adapter, round(time.perf_counter() - started, 3)


def _adapter_module(card_path: Path, card: Card) -> ModuleType:
    """`adapter.py` beside the card, wherever the folder is."""
    path = card_path.resolve().parent / "adapter.py"
    name = f"containers.{path.parent.name}.adapter"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise LoadError(f"{path}: no adapter beside the card.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise _missing_package(card, error) from error
    return module


def _missing_package(card: Card, error: ImportError) -> LoadError:
    return LoadError(
        f"{card.name}: a package is missing or does not fit ({error}). Install the model's "
        f"containers/{card.name}/requirements.txt in an environment of its own, or build its image."
    )


def _unexpected(card: Card, doing: str, error: Exception, precision: str) -> LoadError:
    """An error no adapter foresaw: one sentence for the user, the rest on stderr."""
    if is_out_of_memory(error):
        others = [name for name in card.capabilities.precisions if name != precision]
        smaller = f" Try --precision {' or '.join(others)}." if others else ""
        return LoadError(f"{card.name}: out of memory in {precision} ({error}).{smaller}")
    traceback.print_exception(error, file=sys.stderr)
    return LoadError(f"{card.name}: could not {doing}: {type(error).__name__}: {error}")


def _canary(adapter: Adapter, card: Card, audio: Path, good: Sequence[Sized]) -> Hearing | None:
    """Check hearing with a question of the run, preferably one without the transcript."""
    spoken = [entry for entry in good if clip_names(entry.request)]
    if not spoken:
        return None
    names = dict.fromkeys(
        name
        for entry in sorted(spoken, key=lambda entry: -entry.audio_s)
        for name in clip_names(entry.request)
    )
    clips = {}
    for name in names:
        try:
            clips[name] = read_clip(audio / name)
        except ClipError:
            continue
        if len(clips) == CANARY_CANDIDATES:
            break
    askable = [entry.request for entry in spoken if set(clip_names(entry.request)) <= set(clips)]
    if not askable:
        return None
    silent = [
        request for request in askable if all(p.get("slot") != "transcript" for p in request.parts)
    ]
    question, _ = prompt_of((silent or askable)[0], clips, card.capabilities)
    try:
        scratch = tempfile.TemporaryDirectory(prefix="canary-")
    except OSError as error:
        raise LoadError(
            f"no folder for the canary's clips ({error}); mount a writable /tmp."
        ) from error
    try:
        with scratch as folder:
            return check_hearing(adapter, question, list(clips.values()), Path(folder))
    except DeafError:
        raise
    except Exception as error:
        raise _unexpected(card, "answer the canary", error, "this precision") from error


def _hang_watch(
    options: argparse.Namespace, card: Card, stamp: Stamp, answers: AnswerFile, progress: Progress
) -> HangWatch:
    def start_anew(ids: Sequence[str]) -> None:
        asked = f"a batch of {len(ids)}" if ids else "the canary"
        reason = f"no answer within {card.budget.timeout_s:g} s ({asked})."
        with answers.writing:
            answers.append([failure(request_id, "timeout", reason, stamp) for request_id in ids])
            hangs = 1 + (0 if progress.answered else options.hangs)
            print(f"{reason} Starting anew without it.", file=sys.stderr, flush=True)
            faulthandler.dump_traceback(sys.stderr)
            if hangs >= MOST_HANGS:
                print(f"{hangs} hangs with no answer between them.", file=sys.stderr, flush=True)
                os._exit(HANGS)
            # The last value of an option counts, so these override an earlier restart's.
            again = ["--run-start", str(answers.run_start), "--hangs", str(hangs)]
            os.execv(sys.executable, [*sys.orig_argv, *again])

    return HangWatch(card.budget.timeout_s, start_anew)


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
