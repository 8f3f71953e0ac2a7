"""What `evaluate` was asked to do, checked before anything is opened, loaded or written.

Takes the raw words of a command line or of `mlflow run -P`, gives `Settings`.
Standard library only until an option of a task is given: the MLflow plug-in reads it too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from experiments.credentials import holds_credentials

if TYPE_CHECKING:
    from core.tasks import Task

ROOT = Path(__file__).resolve().parent.parent
CONDITIONS = ("AO", "AT", "TO")
# All resamples of all metrics are held at once; at this many an interval's ends are exact to
# far more digits than are shown.
MOST_RESAMPLES = 1_000_000

OPTIONS: dict[str, tuple[str, str]] = {
    "model": ("baseline", "a folder of containers/: baseline, null, ...; several with commas"),
    "task": ("distress", "a module of core/tasks/: distress, manipulation, ..."),
    "data": ("demo", "dataset folder with a manifest; demo is the set that comes along"),
    "conditions": ("AO,AT,TO", "what the model is given: audio, audio and transcript, transcript"),
    "limit": ("0", "evaluate this many items only, the first of the manifest; 0 for all"),
    "seed": ("0", "of every random draw of the run"),
    "resamples": ("1000", "bootstrap resamples behind each interval"),
    "output": ("outputs", "folder the run's files go under"),
    "runner": ("auto", "where the model runs: process, ...; auto takes the first that can"),
    "offline": ("false", "true makes any connection beyond this machine an error"),
    "precision": ("auto", "what the weights are computed in; auto is the card's first"),
    "device_map": ("auto", "where the weights go, as in transformers; auto decides itself"),
    "gpus": ("auto", "GPUs a container gets: auto for all, count:2, or indices such as 0,1"),
    "endpoint": ("", "for runner=server: an OpenAI-compatible address, http://host:8000/v1"),
    "served_model": ("", "the model's name at the endpoint; empty for its repository's"),
    "address": ("auto", "for runner=ray: auto, local, host:port or ray://host:10001"),
    "node_runner": ("auto", "for runner=ray: what runs a shard on its node, process or docker"),
    "store": ("", "for runner=ray: fsspec URL of clips and weights; empty for shared folders"),
}
NODE_RUNNERS = ("auto", "process", "docker")


class SettingsError(ValueError):
    """A value that cannot be meant; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Settings:
    """One evaluation, as asked for.

    Attributes:
        model: name of a folder under containers/.
        task: name of a module under core/tasks/.
        data: dataset folder, absolute.
        conditions: subset of `CONDITIONS`, in that order.
        limit: items at most, or None for all.
        seed: >= 0.
        resamples: >= 1.
        output: folder, absolute; made when needed.
        runner: name of a module under experiments/runners/.
        offline: no socket beyond the loopback.
        precision, device_map: handed to the model's adapter.
        gpus: "auto", "count:N" or indices with commas between.
        endpoint, served_model: of a server; "" where none is meant.
        address, node_runner, store: of a Ray cluster; `runners.Site` says what they mean.
        of_task: options of the task that were given, as typed; the task has the others' defaults.
    """

    model: str
    task: str
    data: Path
    conditions: tuple[str, ...]
    limit: int | None
    seed: int
    resamples: int
    output: Path
    runner: str
    offline: bool
    precision: str
    device_map: str
    gpus: str = "auto"
    endpoint: str = ""
    served_model: str = ""
    address: str = "auto"
    node_runner: str = "auto"
    store: str = ""
    of_task: Mapping[str, str] = field(default_factory=dict)

    @property
    def card_path(self) -> Path:
        return ROOT / "containers" / self.model / "model.toml"


def read_arguments(arguments: Sequence[str], program: str, purpose: str) -> dict[str, str]:
    """The raw words behind each option, defaults filled in; `--help` prints and exits.

    Options of the task are among them where they were given. Which there are the task says,
    and it is only looked at for words beyond our own, or for `--task NAME --help`.

    Raises:
        SettingsError: for an option that does not exist.
    """
    parser = _parser(program, purpose, OPTIONS)
    asks_help = bool({"-h", "--help"} & set(arguments))
    quiet = [word for word in arguments if word not in ("-h", "--help")]
    known, unknown = parser.parse_known_args(quiet)
    if not unknown and not asks_help:
        return dict(vars(known))
    if asks_help and not any(word.partition("=")[0] == "--task" for word in arguments):
        _parser(
            program, f"{purpose} With --task, its own options are shown too.", OPTIONS
        ).print_help()
        sys.exit(0)
    task = one_of("task", known.task, tasks())
    of_task = {name: (s.default, s.meaning) for name, s in _task(task).SETTINGS.items()}
    if asks_help:
        _parser(program, f"{purpose} Options of {task} come last.", OPTIONS | of_task).print_help()
        sys.exit(0)
    rest = _parser(program, purpose, of_task, argparse.SUPPRESS)
    found, unknown = rest.parse_known_args(unknown)
    if unknown:
        option = unknown[0].lstrip("-").partition("=")[0]
        raise SettingsError(_not_of_task(option, task))
    return {**vars(known), **vars(found)}


def _parser(
    program: str, purpose: str, options: Mapping[str, tuple[str, str]], default: str | None = None
) -> argparse.ArgumentParser:
    parser = _Parser(prog=program, description=purpose, allow_abbrev=False)
    for name, (usual, meaning) in options.items():
        parser.add_argument(
            f"--{name}",
            default=usual if default is None else default,
            metavar="VALUE",
            help=f"{meaning} [{usual}]",
        )
    return parser


def _task(name: str) -> Task:
    # Imported here: a task brings numpy and pandas, which `--help` alone should not wait for.
    from core.tasks import task

    return task(name)


def _of_task(
    words: Mapping[str, str], task: str, conditions: tuple[str, ...], root: Path
) -> dict[str, str]:
    """The words that are options of the task, checked by it."""
    given = {name: str(value) for name, value in words.items() if name not in OPTIONS}
    if not given:
        return {}
    from core.tasks import TaskError

    known = _task(task)
    for name in given:
        if name not in known.SETTINGS:
            raise SettingsError(_not_of_task(name, task, root))
    try:
        known.check(given)
        known.variants(given, conditions)
    except TaskError as error:
        raise SettingsError(str(error)) from error
    return given


def _not_of_task(option: str, task: str, root: Path = ROOT) -> str:
    others = [name for name in tasks(root) if name != task and option in _task(name).SETTINGS]
    if others:
        own = ", ".join(_task(task).SETTINGS)
        return f"{option} is an option of task {others[0]}, and task is {task}, which takes: {own}."
    return _no_such("option", option, [*OPTIONS, *_task(task).SETTINGS])


def settings_from(
    words: Mapping[str, str], base: Path | None = None, root: Path = ROOT
) -> Settings:
    """Check raw words and give them their types.

    Args:
        words: option -> value; a missing option takes its default.
        base: folder that relative paths start from; the current one if None.
        root: the clone whose models, tasks and demo sets are meant.

    Raises:
        SettingsError: for the first value that is wrong.
    """
    said = {name: str(words.get(name, default)) for name, (default, _) in OPTIONS.items()}
    base = base or Path.cwd()
    model = one_of("model", said["model"], models(root))
    task = one_of("task", said["task"], tasks(root))
    conditions = _conditions(said["conditions"])
    return Settings(
        model=model,
        task=task,
        data=_dataset_folder(said["data"], task, base, root),
        conditions=conditions,
        limit=_whole("limit", said["limit"]) or None,
        seed=_whole("seed", said["seed"]),
        resamples=_whole("resamples", said["resamples"], least=1, most=MOST_RESAMPLES),
        output=_output_folder(said["output"], base),
        runner=one_of("runner", said["runner"], ["auto", *runners(root)]),
        offline=_truth("offline", said["offline"]),
        precision=_not_empty("precision", said["precision"]),
        device_map=_device_map(said["device_map"]),
        gpus=_gpus(said["gpus"]),
        endpoint=_endpoint(said["endpoint"].strip(), said["runner"]),
        served_model=said["served_model"].strip(),
        address=_address(said["address"].strip(), said["runner"]),
        node_runner=one_of("node_runner", said["node_runner"], list(NODE_RUNNERS)),
        store=_store(said["store"].strip(), said["runner"]),
        of_task=_of_task(words, task, conditions, root),
    )


def models(root: Path = ROOT) -> list[str]:
    """Models there are: every folder of containers/ with a card."""
    return sorted(card.parent.name for card in (root / "containers").glob("*/model.toml"))


def recognisers(root: Path = ROOT) -> list[str]:
    """What else has an image and weights: every folder of containers/ with a recogniser.toml."""
    return sorted(card.parent.name for card in (root / "containers").glob("*/recogniser.toml"))


def card_file(name: str, root: Path = ROOT) -> Path:
    """The card of a model or a recogniser."""
    kind = "recogniser.toml" if name in recognisers(root) else "model.toml"
    return root / "containers" / name / kind


def tasks(root: Path = ROOT) -> list[str]:
    """Tasks there are: every public module of core/tasks/."""
    return _public_modules(root / "core" / "tasks")


def runners(root: Path = ROOT) -> list[str]:
    """Runners there are: every public module of experiments/runners/."""
    return _public_modules(root / "experiments" / "runners")


def experiment_name(settings: Settings) -> str:
    """The MLflow experiment a run belongs to: one for each task and dataset.

    Named by the dataset's own name, so that the runs of all models meet however
    the folder was spelled.
    """
    try:
        name = str(json.loads((settings.data / "dataset.json").read_bytes())["name"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        name = settings.data.name
    return f"{settings.task}/{name}"


def _public_modules(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if not path.name.startswith("_"))


def _dataset_folder(said: str, task: str, base: Path, root: Path) -> Path:
    folder = root / "demo" / task if said == "demo" else (base / Path(said).expanduser())
    if not folder.is_dir():
        raise SettingsError(f"data: there is no folder {folder}; give a dataset folder or demo.")
    if not any(folder.glob("manifest.*")):
        raise SettingsError(
            f"data: {folder} has no manifest; give a dataset folder (a manifest.parquet, .csv or "
            ".jsonl, and audio/)."
        )
    return folder.resolve()


def _output_folder(said: str, base: Path) -> Path:
    folder = base / Path(_not_empty("output", said)).expanduser()
    taken = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if taken.exists() and not taken.is_dir():
        raise SettingsError(f"output: {taken} is a file; give a folder.")
    return folder.resolve()


def _conditions(said: str) -> tuple[str, ...]:
    asked = [word.strip().upper() for word in said.split(",") if word.strip()]
    if not asked:
        raise SettingsError("conditions: expected some of AO,AT,TO, found nothing.")
    for word in asked:
        one_of("condition", word, list(CONDITIONS))
    return tuple(condition for condition in CONDITIONS if condition in asked)


def _whole(name: str, said: str, least: int = 0, most: int | None = None) -> int:
    # Digits alone: int() would also read 1_0 as 10.
    number = int(said) if re.fullmatch(r"\s*\+?[0-9]{1,18}\s*", said) else least - 1
    if number < least or (most is not None and number > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise SettingsError(f"{name}: expected a whole number of {bounds}, found {said!r}.")
    return number


def _truth(name: str, said: str) -> bool:
    if said.lower() not in ("true", "false"):
        raise SettingsError(f"{name}: expected true or false, found {said!r}.")
    return said.lower() == "true"


def _device_map(said: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", said):
        raise SettingsError(f"device_map: expected auto, cpu, cuda or cuda:N, found {said!r}.")
    return said


def _gpus(said: str) -> str:
    if not re.fullmatch(r"auto|count:[1-9]\d*|\d+(,\d+)*", said):
        raise SettingsError(
            f"gpus: expected auto, count:N or indices with commas between, found {said!r}."
        )
    return said


def _endpoint(said: str, runner: str) -> str:
    if holds_credentials(said):
        raise SettingsError(
            "endpoint: give the address alone, without a login or a key in it; a key goes in "
            "UNDERTONE_API_KEY, which no log shows."
        )
    if said and runner in ("auto", "process", "docker", "ray"):
        raise SettingsError(f"endpoint: only runner=server asks one, and runner is {runner!r}.")
    if runner == "server" and not said:
        raise SettingsError(
            "endpoint: runner=server needs one, such as http://localhost:8000/v1 "
            "(mlflow run . -e serve_args -P model=... prints how to start it)."
        )
    return said


def _address(said: str, runner: str) -> str:
    if said != "auto" and runner != "ray":
        raise SettingsError(f"address: only runner=ray has one, and runner is {runner!r}.")
    if not re.fullmatch(r"auto|local|(ray://)?[^\s/@:]+:\d+", said):
        raise SettingsError(
            f"address: expected auto, local, host:port or ray://host:port, found {said!r}."
        )
    return said


def _store(said: str, runner: str) -> str:
    if said and runner != "ray":
        raise SettingsError(f"store: only runner=ray reads one, and runner is {runner!r}.")
    if holds_credentials(said):
        raise SettingsError(
            "store: give the address alone, without a login or a key in it; those are read from "
            "the environment, as the store's package says."
        )
    if said and not re.match(r"[a-z0-9+]+:|/", said):
        raise SettingsError(
            f"store: expected an address every node knows, such as s3://bucket/folder or "
            f"/mnt/shared, found {said!r}."
        )
    return said.rstrip("/")


def _not_empty(name: str, said: str) -> str:
    if not said.strip():
        raise SettingsError(f"{name}: expected a value, found nothing; leave it out for auto.")
    return said


def one_of(kind: str, said: str, known: list[str]) -> str:
    """The value, where it is one of those there are; else SettingsError with the nearest."""
    if said not in known:
        raise SettingsError(_no_such(kind, said, known))
    return said


def _no_such(kind: str, said: str, known: list[str]) -> str:
    near = get_close_matches(said.lower(), known, n=1) or get_close_matches(said, known, n=1)
    guess = f"did you mean {near[0]!r}? There are" if near else "there are"
    return f"There is no {kind} {said!r}; {guess}: {', '.join(known) or 'none'}."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; see --help.")
