"""Entry point `browse`: a local page to listen to clips and see what each model said of them.

Reads the run folders under `output` (not MLflow) and the datasets they name. Serves on the
loopback alone, asks nothing of any other machine, and ends with ctrl-C. Exit codes: 0 ended;
1 the port is taken; 2 a value is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, read_options, whole

if TYPE_CHECKING:
    from core.dataset import Dataset
    from experiments.browse_index import Shown

OPTIONS = {
    "output": ("outputs", "folder with the runs of `evaluate`"),
    "data": ("", "where a dataset lies now; goes before where the run had it"),
    "port": ("8010", "on this machine; 0 takes any that is free"),
}


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    output: Path
    data: Path | None
    port: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until ended; returns the exit code."""
    from experiments.parent import Stopped, end_on_signal, end_with_parent

    try:
        asked = _asked(read_options(OPTIONS, arguments, "browse", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    end_on_signal()
    end_with_parent()
    try:
        return serve(asked)
    except (KeyboardInterrupt, Stopped):
        return 0


def serve(asked: Asked) -> int:
    """Serve the page; returns only if there is nothing to serve."""
    from experiments.browse_server import Site, kept_key, server
    from experiments.run_sets import undescribed_folders

    sets = reader(asked.output, asked.data)
    found = sets()
    for folder in undescribed_folders(asked.output):
        print(f"left out, has no run.json: {folder}. Run its `evaluate` again; answers are kept.")
    if not found:
        return _sorry(
            2, f"output: no runs in {asked.output}; run `mlflow run . -e evaluate` first."
        )
    site = Site(kept_key(asked.output), sets)
    try:
        listening = server(site, asked.port)
    except OSError as error:
        return _sorry(1, f"port {asked.port}: {error.strerror}; give another with -P port=.")
    for shown in found.values():
        runs = shown.runs
        said = "1 run" if len(runs.runs) == 1 else f"{len(runs.runs)} runs"
        print(f"{runs.task}, {runs.dataset}: {len(shown.place)} items, {said}")
    print(f"listen: http://127.0.0.1:{listening.server_port}/?key={site.key}", flush=True)
    print("Ctrl-C ends it.", flush=True)
    with listening:
        listening.serve_forever()
    return 0


def reader(output: Path, data: Path | None) -> Callable[[], Mapping[str, Shown]]:
    """Gives the sets of a folder, read anew where a run was written since the last time."""
    from experiments.browse_index import made_ready
    from experiments.run_description import RunDescriptionError
    from experiments.run_sets import dataset_of, described_folders, gathered, read_run

    lock = Lock()
    known: tuple[dict[Path, int], Mapping[str, Shown]] = ({}, {})
    # By set: a dataset is hashed whole when it is read, and does not change for a run more.
    datasets: dict[str, tuple[Dataset | None, list[str]]] = {}

    def read() -> Mapping[str, Shown]:
        nonlocal known
        # Two requests at once must not read everything twice.
        with lock:
            state = _written(described_folders(output))
            if state != known[0]:
                runs, faults = [], []
                for folder in state:
                    try:
                        runs.append(read_run(folder, variants=True))
                    except RunDescriptionError as error:
                        faults.append(str(error))
                shown = {}
                for found in gathered(runs):
                    if datasets.get(found.key, (None,))[0] is None:
                        datasets[found.key] = dataset_of(found, data)
                    dataset, notes = datasets[found.key]
                    shown[found.key] = made_ready(found, dataset, [*notes, *faults])
                known = (state, shown)
            return known[1]

    return read


def _written(folders: Sequence[Path]) -> dict[Path, int]:
    """When each run was last written; without those that go away at this moment."""
    found = {}
    for folder in folders:
        with suppress(OSError):
            found[folder] = (folder / "run.json").stat().st_mtime_ns
    return found


def _asked(said: dict[str, str]) -> Asked:
    return Asked(
        output=existing_folder("output", said["output"]).resolve(),
        data=existing_folder("data", said["data"]).resolve() if said["data"] else None,
        port=whole("port", said["port"], most=65535),
    )


def _sorry(code: int, why: object) -> int:
    print(f"browse: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
