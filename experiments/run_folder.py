"""The folder one model leaves its answers in, and the lock that keeps it to one process.

`<output>/<task>/<dataset>-<hash>/<model>/` holds responses.jsonl (append-only: the
memory that makes a second run cheap), and what came of them: requests.jsonl,
predictions.parquet, metrics.json. A run of the first items alone leaves those three in
`limit-<n>/` below, and shares the answers. Decoded audio lies beside, shared by all models.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.replacing import replace_text, sweep
from experiments.output_lock import FolderInUseError, only_one

__all__ = ["FolderInUseError", "RunFolder", "held", "run_folder", "safe_name", "write_json"]

LONGEST_NAME = 100


@dataclass(frozen=True)
class RunFolder:
    """Where each file of a run is.

    Attributes:
        path: what all runs of the model on the dataset share: the answers, the lock.
        audio: decoded clips of all models.
        limit: how many of the first items are evaluated; 0 for all.
    """

    path: Path
    audio: Path
    limit: int = 0

    @property
    def results(self) -> Path:
        """Folder of what came out: a try of five items must not replace the whole run's."""
        return self.path / f"limit-{self.limit}" if self.limit else self.path

    @property
    def requests(self) -> Path:
        return self.results / "requests.jsonl"

    @property
    def responses(self) -> Path:
        return self.path / "responses.jsonl"

    @property
    def predictions(self) -> Path:
        return self.results / "predictions.parquet"

    @property
    def variants(self) -> Path:
        """Predictions of variants; only for a run that asked for some."""
        return self.results / "variants.parquet"

    @property
    def work(self) -> Path:
        """What the model's process says of its work; only where a runner leaves it."""
        return self.path / "work.json"

    @property
    def log(self) -> Path:
        """What a container printed, run after run; only where a runner leaves it."""
        return self.path / "model.log"

    @property
    def tables(self) -> Path:
        """Folder of the study's own tables; only for a task that has some."""
        return self.results / "tables"

    @property
    def description(self) -> Path:
        """What the run was; see `experiments.run_description`."""
        return self.results / "run.json"

    @property
    def metrics(self) -> Path:
        return self.results / "metrics.json"

    def answers_of_other_versions(self) -> list[Path]:
        """Answer files of this model on datasets of the same name and another hash."""
        dataset, model = self.path.parent, self.path.name
        name = dataset.name.rpartition("-")[0]
        hash_8 = "[0-9a-f]" * 8
        others = dataset.parent.glob(f"{glob.escape(name)}-{hash_8}/{model}/{self.responses.name}")
        return sorted(path for path in others if path != self.responses)


def run_folder(
    output: Path, task: str, dataset: str, dataset_hash: str, model: str, *, limit: int = 0
) -> RunFolder:
    """Make (or find) the folder of one model on one dataset.

    Args:
        dataset: the dataset's name, any text; made safe for a path.
        dataset_hash: hex digest; its first 8 digits keep equal names apart.
        limit: how many of the first items are evaluated; 0 for all.
    """
    path = output / task / safe_name(dataset, dataset_hash) / model
    folder = RunFolder(path, output / "audio", limit)
    for made in (folder.results, folder.audio):
        made.mkdir(parents=True, exist_ok=True)
    return folder


def safe_name(dataset: str, dataset_hash: str) -> str:
    """A folder's name for a dataset, whatever it is called; arguments as `run_folder`'s."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", dataset).strip("._") or "dataset"
    # A file system takes 255 bytes a name; the digest behind keeps the cut ones apart.
    return f"{safe[:LONGEST_NAME]}-{dataset_hash[:8]}"


@contextmanager
def held(folder: RunFolder) -> Iterator[None]:
    """Keep every other evaluation out of the folder while this block runs.

    Raises:
        FolderInUseError: at once, where another process holds it.
    """
    with only_one(folder.path, "evaluate"):
        sweep(folder.results)
        yield


def write_json(path: Path, value: Any) -> None:
    """Replace a file by a value's JSON; a reader sees the old or the new one, never half."""
    replace_text(path, json.dumps(value, ensure_ascii=False, indent=1))
