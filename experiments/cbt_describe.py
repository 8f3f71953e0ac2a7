"""Entry point `cbt_describe`: a model's descriptions of patients' turns, for cbt_labels.

Asks any model of containers/, the study's gpt-audio-1.5 by OpenAI's SDK, or an
OpenAI-compatible endpoint of your own, to say how the patient feels, three runs a turn.
Recordings of therapy need not leave this machine: a local model, or an endpoint on it,
hears them here. OpenAI and any other remote endpoint are sent every clip and its context,
and only when max_requests allows as many requests as there are. Answers are kept: the same
command goes on where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import (
    TRACK,
    TRACK_CHOICES,
    OptionError,
    amount,
    existing_folder,
    one_of,
    read_options,
    truth,
    whole,
)

if TYPE_CHECKING:
    from experiments.runners import Job

OPTIONS = {
    "turns": ("", "folder of cbt_turns"),
    "model": (
        "voxtral",
        "a folder of containers/, heard here; gpt-audio-1.5, the study's: every clip and context "
        "is sent to OpenAI, key in OPENAI_API_KEY; of an endpoint, the card whose limits hold",
    ),
    "ask": ("descriptions", "descriptions (appendix B.1), or scores asked for directly (B.3)"),
    "runs": ("3", "how often each turn is asked about; the study's is 3"),
    "temperature": ("1", "of the answers; the study's is not in the text we have"),
    "top_p": ("1", "of the answers, above 0 up to 1"),
    "seed": ("0", "of the runs' seeds"),
    "limit": ("0", "the first so many turns; 0 for all"),
    "runner": ("auto", "where the model runs: process, docker, server; auto takes the first"),
    "endpoint": ("", "for runner=server: http://host:8000/v1; its key in UNDERTONE_API_KEY"),
    "served_model": ("", "the model's name there, e.g. gpt-audio-1.5"),
    "max_requests": ("0", "requests that a remote endpoint may be sent in this run"),
    "price": ("0", "US dollars for a minute of audio there, shown before anything is asked"),
    "dry_run": ("false", "true prints how much would be asked, and asks nothing"),
    "offline": ("false", "true makes any connection beyond this machine an error"),
    "precision": ("auto", "what the weights are computed in; auto is the card's first"),
    "device_map": ("auto", "where the weights go, as in transformers"),
    "gpus": ("auto", "GPUs a container gets: auto for all, count:2, or indices such as 0,1"),
    "output": ("outputs/cbt-described", "folder to write; its answers are used again"),
    **TRACK,
}


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    turns: Path
    model: str
    kind: str
    runs: int
    temperature: float
    top_p: float
    seed: int
    limit: int
    runner: str
    endpoint: str
    served_model: str
    max_requests: int
    price: float
    dry_run: bool
    offline: bool
    precision: str
    device_map: str
    gpus: str
    output: Path
    track: str


def main(arguments: Sequence[str] | None = None, run: Callable[[Job], None] | None = None) -> int:
    """Ask; 2 for a value or table that is wrong, 1 where the model was in the way.

    Args:
        run: instead of the runner's, for whoever has another way to a model.
    """
    try:
        asked = asked_from(read_options(OPTIONS, arguments, "cbt_describe", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from containers.runtime.card import CardError
    from core.dataset import DatasetError
    from core.protocol import ProtocolError
    from core.tasks import TaskError
    from experiments.asking import ask
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.runners import RunnerError
    from experiments.tracking import TrackingError
    from validation.schemas import TableError

    try:
        with only_one(asked.output, "cbt_describe"):
            print(ask(asked, run))
            if asked.track != "false" and not asked.dry_run:
                _tracked(asked)
    except (OptionError, DatasetError, TableError, TaskError, CardError) as error:
        return _sorry(2, error)
    except (RunnerError, FolderInUseError, ProtocolError, TrackingError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, asked.output))
    except KeyboardInterrupt:
        return _sorry(130, "interrupted; the same command goes on where it stopped.")
    return 0


def _tracked(asked: Asked) -> None:
    from experiments.stages import described_stage
    from experiments.track_build import track_stages

    stage = described_stage(asked.output, asked.kind)
    print(track_stages([stage], "cbt_describe", asked.track))


def asked_from(said: Mapping[str, str]) -> Asked:
    """The options, checked, folders of earlier stages last; OptionError for the first wrong one."""
    asked = options_of(said)
    existing_folder("turns", said["turns"])
    if not (asked.turns / "unlabelled.parquet").is_file():
        raise OptionError(f"turns: {said['turns']!r} has no unlabelled.parquet; run cbt_turns.")
    return asked


def options_of(said: Mapping[str, str]) -> Asked:
    """The options, checked, without a look at what an earlier stage makes."""
    from experiments.gpt_audio import is_gpt_audio
    from experiments.settings import models, runners

    runs = whole("runs", said["runs"])
    if runs == 0:
        raise OptionError("runs: expected 1 or more, found '0'.")
    temperature, top_p = amount("temperature", said["temperature"]), amount("top_p", said["top_p"])
    if runs > 1 and temperature == 0:
        raise OptionError("temperature: with 0 all runs of a turn are one; give more, or runs=1.")
    if not 0 < top_p <= 1:
        raise OptionError(f"top_p: expected a number above 0, up to 1, found {said['top_p']!r}.")
    runner = one_of("runner", said["runner"], ["auto", *runners()])
    if (runner == "server") != bool(said["endpoint"]):
        raise OptionError("endpoint: runner=server asks one, and no other runner does.")
    model = said["model"]
    if is_gpt_audio(model) and (runner != "auto" or said["endpoint"]):
        raise OptionError(
            f"model: {model} is asked by OpenAI's SDK; leave runner= and endpoint= out "
            "(OPENAI_BASE_URL names another server)."
        )
    return Asked(
        turns=Path(said["turns"]).expanduser(),
        model=model if is_gpt_audio(model) else one_of("model", model, models()),
        kind=one_of("ask", said["ask"], ("descriptions", "scores")),
        runs=runs,
        temperature=temperature,
        top_p=top_p,
        seed=whole("seed", said["seed"]),
        limit=whole("limit", said["limit"]),
        runner=runner,
        endpoint=said["endpoint"],
        served_model=said["served_model"],
        max_requests=whole("max_requests", said["max_requests"]),
        price=amount("price", said["price"]),
        dry_run=truth("dry_run", said["dry_run"]),
        offline=truth("offline", said["offline"]),
        precision=said["precision"],
        device_map=said["device_map"],
        gpus=said["gpus"],
        output=Path(said["output"]).expanduser(),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )


def _sorry(code: int, why: object) -> int:
    print(f"cbt_describe: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
