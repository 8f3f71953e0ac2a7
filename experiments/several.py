"""Several models in one command, `-P model=voxtral,gemma4`: an evaluation of its own for each.

Each is a process with its own folder, MLflow run and exit, so that one that fails takes
none along. With runner=ray they run at once and share the cluster: those that need most
memory begin, and Ray places what comes next where there is room. Otherwise they run one
after another.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from containers.runtime.card import read_card
from experiments.parent import Stopped, end_on_signal, end_with_parent
from experiments.runners import RunnerError, Site
from experiments.settings import OPTIONS, ROOT, Settings, SettingsError, models, one_of

# After SIGTERM a run cancels its shards and closes its MLflow run.
GRACE_S = 40.0


def each_model(words: Mapping[str, str], root: Path = ROOT) -> list[dict[str, str]]:
    """The words of one evaluation for each model named, in the order they are named.

    Raises:
        SettingsError: a model named twice, or a name left out between two commas.
    """
    said = str(words.get("model", OPTIONS["model"][0]))
    if "," not in said:
        return [dict(words)]
    named = [name.strip() for name in said.split(",")]
    if not all(named):
        raise SettingsError(f"model: expected names with commas between, found {said!r}.")
    for name in named:
        one_of("model", name, models(root))
        if named.count(name) > 1:
            raise SettingsError(f"model: {name} is named twice in {said!r}.")
    return [{**words, "model": name} for name in named]


def run_each(each: Sequence[Mapping[str, str]], checked: Sequence[Settings]) -> int:
    """Evaluate every model; returns the worst of their exit codes.

    Args:
        each: the words of each evaluation.
        checked: the same, checked.
    """
    end_on_signal()
    end_with_parent()
    commands = {one.model: _command(words) for words, one in zip(each, checked, strict=True)}
    side_by_side = checked[0].runner == "ray"
    codes: dict[str, int] = {}
    children: list[subprocess.Popen[bytes]] = []
    try:
        if side_by_side:
            commands = _on_one_cluster(commands, checked)
            codes = _at_once(commands, children)
        else:
            for number, (model, command) in enumerate(commands.items()):
                children.append(subprocess.Popen(command, env=_environment(number)))
                codes[model] = children[-1].wait()
    except RunnerError as error:
        print(error, file=sys.stderr)
        return 1
    except (Stopped, KeyboardInterrupt) as error:
        _end(children)
        print("Ended; the same command goes on where each model stopped.", file=sys.stderr)
        return 143 if isinstance(error, Stopped) else 130
    ends = ", ".join(f"{model} {_end_of(code)}" for model, code in codes.items())
    print(f"{len(codes)} {'model' if len(codes) == 1 else 'models'}: {ends}")
    return max(code if code >= 0 else 128 - code for code in codes.values())


def by_memory(checked: Sequence[Settings]) -> list[Settings]:
    """Those that need most GPU memory first: they wait longest for room once others run."""

    def need_gb(one: Settings) -> float:
        sizes = read_card(one.card_path).gpu_memory_gb
        return sizes.get(one.precision, max(sizes.values(), default=0.0))

    return sorted(checked, key=lambda one: -need_gb(one))


def _on_one_cluster(
    commands: Mapping[str, list[str]], checked: Sequence[Settings]
) -> dict[str, list[str]]:
    """The commands in the order they begin, all at one address."""
    ordered = [one.model for one in by_memory(checked)]
    if checked[0].address != "local":
        return {model: commands[model] for model in ordered}
    from experiments.runners._cluster import address_here

    # Each would start a cluster of its own, and none would know of the others.
    here = address_here(Site(address="local", offline=checked[0].offline))
    # The last of an option counts.
    return {model: [*commands[model], "--address", here] for model in ordered}


def _at_once(
    commands: Mapping[str, Sequence[str]], children: list[subprocess.Popen[bytes]]
) -> dict[str, int]:
    """Run all; what each prints as its result is shown in one piece when it ends."""
    codes: dict[str, int] = {}
    showing = threading.Lock()
    followers = []
    for number, (model, command) in enumerate(commands.items()):
        child = subprocess.Popen(
            command, env=_environment(number), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        children.append(child)
        follower = threading.Thread(target=_follow, args=(model, child, codes, showing))
        follower.daemon = True
        follower.start()
        followers.append(follower)
    for follower in followers:
        follower.join()
    return {model: codes[model] for model in commands}


def _follow(
    model: str, child: subprocess.Popen[bytes], codes: dict[str, int], showing: threading.Lock
) -> None:
    assert child.stdout
    assert child.stderr
    progress = threading.Thread(target=_prefixed, args=(model, child.stderr), daemon=True)
    progress.start()
    result = child.stdout.read()
    progress.join()
    codes[model] = child.wait()
    with showing:
        sys.stdout.buffer.write(result)
        sys.stdout.flush()


def _prefixed(model: str, said: IO[bytes]) -> None:
    for line in said:
        sys.stderr.buffer.write(f"{model}: ".encode() + line)
        sys.stderr.flush()


def _command(words: Mapping[str, str]) -> list[str]:
    options = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "experiments.evaluate", *options]


def _environment(number: int) -> dict[str, str]:
    """The first takes the run that `mlflow run` has opened; the others open theirs beside it."""
    given = dict(os.environ)
    if number:
        given.pop("MLFLOW_RUN_ID", None)
    return given


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()


def _end_of(code: int) -> str:
    return "done" if code == 0 else f"ended with code {code}"
