"""Entry point `export`: runs in a form that others can publish or open in their own tools.

`to=hf` writes parquet tables and a dataset card; `to=inspect` writes logs for Inspect. Reads
the run folders under `output` (not MLflow). The datasets' words are left out unless
`transcripts=true`; audio always is. Exit codes: 0 done; 1 a run's files cannot be read; 2 a
value is wrong.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, one_of, read_options, truth

if TYPE_CHECKING:
    from experiments.run_sets import RunSet

OPTIONS = {
    "to": ("hf", "hf: parquet and a dataset card; inspect: logs for Inspect"),
    "output": ("outputs", "folder with the runs of `evaluate`"),
    "runs": ("", "run folders with commas between; empty: the latest whole run of every model"),
    "task": ("", "of this task only"),
    "dataset": ("", "on the dataset of this name only"),
    "folder": ("", "where to write; empty: outputs/export/<to>"),
    "transcripts": ("false", "true puts the datasets' words in: read their licences first"),
    "licence": ("", "of what is written, as the Hugging Face Hub names it: cc-by-4.0"),
    "data": ("", "for transcripts: where the dataset lies now; goes before where the run had it"),
}
FORMATS = ("hf", "inspect")


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    to: str
    output: Path
    runs: tuple[Path, ...]
    task: str
    dataset: str
    folder: Path
    transcripts: bool
    licence: str
    data: Path | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; the exit code is in the module's docstring."""
    try:
        asked = _asked(read_options(OPTIONS, arguments, "export", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from experiments.run_description import RunDescriptionError

    try:
        return run(asked)
    except OptionError as error:
        return _sorry(2, error)
    except RunDescriptionError as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, f"{error.filename}: {error.strerror}")


def run(asked: Asked) -> int:
    """Gather, write, say what was written and under what it stands."""
    sets = _sets(asked)
    if asked.to == "hf":
        from experiments.export_hf import write_hf

        lines = write_hf(
            sets,
            asked.folder,
            transcripts=asked.transcripts,
            licence=asked.licence,
            data=asked.data,
        )
        look = f"hf upload NAME/REPOSITORY {asked.folder} --repo-type dataset"
    else:
        from experiments.export_inspect import write_inspect

        lines = write_inspect(sets, asked.folder, transcripts=asked.transcripts, data=asked.data)
        look = f"inspect view --log-dir {asked.folder}   (pip install inspect-ai)"
    for line in lines:
        print(line)
    for found in sets:
        about = found.about.dataset
        held = (
            "words included" if asked.transcripts else "none of its transcripts, contexts or sound"
        )
        print(f"{found.dataset}: {about['licence']}; {held}")
    print(f"files: {asked.folder}")
    print(f"open:  {look}")
    return 0


def _sets(asked: Asked) -> list[RunSet]:
    from experiments.export_tables import chosen, run_name
    from experiments.run_sets import described_folders, gathered, read_run

    if asked.runs:
        runs = [read_run(folder) for folder in dict.fromkeys(asked.runs)]
    else:
        found = [read_run(folder) for folder in described_folders(asked.output)]
        runs = chosen(found, task=asked.task, dataset=asked.dataset)
    if not runs:
        raise OptionError(
            f"output: no whole run in {asked.output} fits; run `mlflow run . -e evaluate` first, "
            "or name run folders with -P runs=."
        )
    names = [run_name(run) for run in runs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError(f"runs: more than one folder holds {twice[0]}; export them apart.")
    return gathered(runs)


def _asked(said: dict[str, str]) -> Asked:
    to = one_of("to", said["to"], FORMATS)
    output = Path(said["output"]).expanduser()
    named = [part.strip() for part in said["runs"].split(",") if part.strip()]
    if not re.fullmatch(r"[a-z0-9.-]*", said["licence"]):
        raise OptionError(
            "licence: expected a name as the Hub has it, such as cc-by-4.0, found "
            f"{said['licence']!r}."
        )
    return Asked(
        to=to,
        output=output if named else existing_folder("output", said["output"]),
        runs=tuple(existing_folder("runs", part).resolve() for part in named),
        task=said["task"],
        dataset=said["dataset"],
        folder=Path(said["folder"] or output / "export" / to).expanduser(),
        transcripts=truth("transcripts", said["transcripts"]),
        licence=said["licence"],
        data=existing_folder("data", said["data"]).resolve() if said["data"] else None,
    )


def _sorry(code: int, why: object) -> int:
    print(f"export: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
