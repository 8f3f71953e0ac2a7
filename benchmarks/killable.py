"""Five kinds of work that can be killed: how each is started, what it leaves, whom a kill hits.

Each runs in a process of its own, forked from one that has imported everything, and leaves
real files; a model is a process of its own again, or a container. The null model answers
three requests at a time and the voice hums, so that there are many moments between two
writes. Each time a model or a voice is started, a line is added to `loads`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.replacing import replace_text
from experiments.settings import ROOT

# What the work needs, imported once for all the processes forked from there.
PRELOAD = [
    "mlflow",
    "mlflow.store.tracking.sqlalchemy_store",
    "experiments.evaluate",
    "experiments.evaluation",
    "experiments.record",
    "experiments.recorded",
    "experiments.tracking",
    "experiments.table",
    "experiments.build_manipulation",
    "experiments.asking",
    "experiments.labelling",
    "experiments.runners.process",
    "core.tasks.distress",
    "core.embedding",
    "matplotlib.figure",
    "benchmarks.killable",
]
ITEMS = 12
AT_ONCE = 3
TURNS = 6
TEXTS = 600
RUNS = 2
ANSWERING_S = SPEAKING_S = 0.02
FINAL = ("ok", "refused", "unparsed", "truncated")


@dataclass(frozen=True)
class Work:
    """One kind of work.

    Attributes:
        name: as the table shows it.
        start: does all of it in a folder and gives the exit code; for `carried_out`.
        found: what it left there that must not depend on kills.
        done: ids of what is finished there, one for each time it was finished.
        victims: of a running process, whom a kill is for; none where it is not there yet.
        survives: whether the process itself goes on to say that its victim is gone.
    """

    name: str
    start: Callable[[Path], int]
    found: Callable[[Path], Any]
    done: Callable[[Path], list[str]]
    victims: Callable[[int, Path], list[Callable[[], None]]]
    survives: bool = False


def carried_out(start: Callable[[Path], int], folder: Path, store: str) -> None:
    """The body of a forked process: the work, its words in a file, its exit code its own.

    Args:
        store: address of the MLflow store its runs go to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(MLFLOW_TRACKING_URI=store, UNDERTONE_NULL_LATENCY_S=str(ANSWERING_S))
    os.environ.pop("MLFLOW_RUN_ID", None)
    with (folder / "said.txt").open("ab") as said:
        for number in (1, 2):
            os.dup2(said.fileno(), number)
    code = start(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    # No leave-taking: what a killed process would not do must not be needed.
    os._exit(code)


def noted(folder: Path) -> None:
    with (folder / "loads").open("a") as stream:
        stream.write("1\n")


def loads(folder: Path) -> int:
    """How often a model or a voice was started."""
    path = folder / "loads"
    return len(path.read_text().splitlines()) if path.exists() else 0


def itself(pid: int, _folder: Path) -> list[Callable[[], None]]:
    return [lambda: os.kill(pid, 9)]


def start_store(_folder: Path) -> int:
    """Make the store's tables, which is no part of what is killed."""
    from experiments.store import open_store

    open_store()
    return 0


# evaluate, and the process of its model


def start_evaluate(folder: Path) -> int:
    from experiments import evaluate
    from experiments.runners import process

    small, run = small_card(folder), process.run

    def counted(job: Any) -> None:
        noted(folder)
        run(dataclasses.replace(job, card_path=small))

    process.run = counted
    fixed = ["--model", "null", "--conditions", "AO,TO", "--limit", str(ITEMS)]
    return evaluate.main([*fixed, "--resamples", "50", "--output", str(folder / "out")])


def small_card(folder: Path) -> Path:
    """The null model, three requests at a time."""
    place = folder / "card"
    if not (place / "model.toml").exists():
        shutil.copytree(ROOT / "containers" / "null", place, dirs_exist_ok=True)
        card = (place / "model.toml").read_text()
        (place / "model.toml").write_text(card.replace("items = 512", f"items = {AT_ONCE}"))
    return place / "model.toml"


def figures(folder: Path) -> Any:
    """Metrics and predictions, without what depends on the clock."""
    (metrics,) = folder.glob("out/*/*/*/**/metrics.json")
    table = pd.read_parquet(metrics.with_name("predictions.parquet"))
    left_out = [name for name in ("latency_s", "request_id") if name in table]
    return metrics.read_text(), table.drop(columns=left_out).round(6).to_json()


def answered(folder: Path) -> list[str]:
    """Ids of final answers, one for each line, whole lines only."""
    found = []
    for path in folder.glob("**/*responses.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n") and (said := json.loads(line))["status"] in FINAL:
                found.append(said["id"])
    return found


def the_model(pid: int, _folder: Path) -> list[Callable[[], None]]:
    """The process the model runs in, once it is there."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    models = [child for child in children if b"containers.runtime" in _command(child)]
    return [lambda: os.kill(models[0], 9)] if models else []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# a container


def start_contained(folder: Path) -> int:
    from experiments import evaluate
    from experiments.runners import docker

    run = docker.run

    def counted(job: Any) -> None:
        noted(folder)
        run(job)

    docker.run = counted
    fixed = ["--model", "baseline", "--runner", "docker", "--conditions", "TO"]
    fixed += ["--data", str(texts(folder)), "--resamples", "50"]
    return evaluate.main([*fixed, "--output", str(folder / "out")])


def texts(folder: Path) -> Path:
    """A dataset without audio, of some batches of the model in the image."""
    data = folder / "texts"
    if not (data / "manifest.csv").exists():
        data.mkdir(exist_ok=True)
        rows = [
            f"{n},s{n // 50},{n},,I slept {n} minutes and was {'sad' * (n % 7)},,{1 + n % 5}\n"
            for n in range(TEXTS)
        ]
        header = "item_id,session_id,turn_index,audio,transcript,context,label\n"
        replace_text(data / "manifest.csv", header + "".join(rows))
    return data


def the_container(_pid: int, folder: Path) -> list[Callable[[], None]]:
    """The container that writes this folder's answers, once it runs."""
    from experiments import images
    from experiments.runners import docker

    there = images.engine().containers.list(filters={"label": docker.OWNER})
    ours = [one for one in there if any(str(folder) in m["Source"] for m in one.attrs["Mounts"])]
    return [ours[0].kill] if ours else []


# a TTS build


def start_built(folder: Path) -> int:
    from experiments import build_manipulation

    build_manipulation.Kokoro = lambda: Humming(folder)  # type: ignore[assignment, misc]
    source = folder / "dialogues.csv"
    if not source.exists():
        replace_text(source, dialogues())
    words = {"source": source, "tts": "kokoro", "output": folder / "out", "turns": folder / "turns"}
    return build_manipulation.main([w for k, v in words.items() for w in (f"--{k}", str(v))])


def dialogues() -> str:
    rows = [
        f'{number},"Person1: You were late {number} times.\nPerson2: I know {number}.",0,,'
        for number in range(ITEMS)
    ]
    return "\n".join(["ID,Dialogue,Manipulative,Technique,Vulnerability", *rows]) + "\n"


class Humming:
    """Kokoro's voices, each a tone of its own as long as its words."""

    name, model = "kokoro", "hum"

    def __init__(self, folder: Path) -> None:
        self.settings: dict[str, Any] = {}
        self._folder = folder
        self._is_loaded = False

    def speak(self, text: str, voice: str) -> Any:
        import time

        import numpy as np

        from core.speech.engine import Sound

        if not self._is_loaded:
            noted(self._folder)
            self._is_loaded = True
        time.sleep(SPEAKING_S)
        at = np.arange(round(0.06 * len(text) * 16_000)) / 16_000
        return Sound((0.1 * np.sin(2 * np.pi * 300 * len(voice) * at)).astype(np.float32), 16_000)


def built(folder: Path) -> Any:
    """Manifest and dataset.json, which hold the digest of every clip; and the turns' times."""
    files = sorted(
        path for path in (folder / "out").rglob("*") if path.is_file() and path.name[0] != "."
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def spoken(folder: Path) -> list[str]:
    return [path.stem for path in (folder / "turns").glob("[!.]*.flac")]


# a label run


def start_labelled(folder: Path) -> int:
    from experiments import cbt_describe, cbt_labels
    from experiments.runners import process

    small, run = small_card(folder), process.run

    def counted(job: Any) -> None:
        noted(folder)
        run(dataclasses.replace(job, card_path=small))

    process.run = counted
    turns = folder / "turns"
    if not (turns / "unlabelled.parquet").exists():
        unlabelled(turns)
    described = folder / "described"
    words = {"turns": turns, "model": "null", "runner": "process", "runs": RUNS}
    code = cbt_describe.main(
        [w for k, v in {**words, "output": described}.items() for w in (f"--{k}", str(v))]
    )
    if code:
        return code
    words = {"descriptions": described / "descriptions.csv", "turns": turns}
    return cbt_labels.main(
        [w for k, v in {**words, "output": folder / "out"}.items() for w in (f"--{k}", str(v))]
    )


def unlabelled(folder: Path) -> None:
    """Turns as cbt_turns leaves them, of the demo's clips."""
    demo = ROOT / "demo" / "distress"
    items = pd.read_csv(demo / "manifest.csv", nrows=TURNS)
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    for name in items["audio"]:
        shutil.copyfile(demo / name, folder / name)
    kept = items[["item_id", "session_id", "turn_index", "audio", "transcript", "context"]]
    times = {"start_s": 0.0, "end_s": items["seconds"], "speaker": "A", "seconds": items["seconds"]}
    part = folder / "part.parquet"
    kept.assign(**times).to_parquet(part)
    part.replace(folder / "unlabelled.parquet")


def labelled(folder: Path) -> Any:
    names = ("labels.csv", "similarities.csv", "manifest.parquet", "dataset.json", "card.md")
    tables = {name: (folder / "out" / name).read_bytes() for name in names}
    return tables, (folder / "described" / "descriptions.csv").read_bytes()


def twice(ids: Sequence[str]) -> list[str]:
    """Those that were finished more than once."""
    return sorted(name for name, count in Counter(ids).items() if count > 1)


EVALUATE = Work("evaluate", start_evaluate, figures, answered, itself)
WORKER = Work("model's process", start_evaluate, figures, answered, the_model, survives=True)
CONTAINER = Work("container", start_contained, figures, answered, the_container, survives=True)
BUILD = Work("TTS build", start_built, built, spoken, itself)
LABELS = Work("label run", start_labelled, labelled, answered, itself)
ALL = (EVALUATE, WORKER, CONTAINER, BUILD, LABELS)
