"""What a run found, kept on the disk until it stands in MLflow.

`<results>/unlogged/` holds a run's whole record from the moment there is one: record.json,
and in files/ all that becomes artifacts. It goes when MLflow has everything. Where the server
was away, or the process was killed while it wrote, `log_results` completes the run from
here; neither the dataset, nor the model, nor the code of the run is needed for that.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from core.replacing import replace_text
from experiments.tracking import Record, tables_written

FOLDER = "unlogged"
RECORD = "record.json"
FILES = "files"
SCHEMA = 1


class UnloggedError(ValueError):
    """A record that is not one; names the file and what to do."""


@dataclass(frozen=True)
class Unlogged:
    """A record and where it belongs.

    Attributes:
        results: folder of the results it is of.
        uri, experiment, run_id: the store, and the run that was opened for it there.
        outcome: what `recorded` knows these results by.
    """

    results: Path
    uri: str
    experiment: str
    run_id: str
    outcome: str
    record: Record


def staging(results: Path) -> Path:
    """An empty folder for what will be artifacts; a record of earlier results goes."""
    discard(results)
    files = results / FOLDER / FILES
    files.mkdir(parents=True)
    return files


def keep(found: Unlogged) -> Record:
    """Have the record on the disk beside its files; gives it as it is to be written."""
    folder = found.results / FOLDER
    record = found.record
    names = (*record.tables_in_files, *tables_written(record.tables, folder / FILES))
    said = {name: value for name, value in vars(record).items() if name not in ("files", "tables")}
    said["tables_in_files"] = names
    about = {name: getattr(found, name) for name in ("uri", "experiment", "run_id", "outcome")}
    text = json.dumps({"schema": SCHEMA, **about, "record": said}, ensure_ascii=False, indent=1)
    # Last: without it there is no record.
    replace_text(folder / RECORD, text)
    return Record(**{**said, "files": folder / FILES})


def read(results: Path) -> Unlogged:
    """The record kept for these results.

    Raises:
        UnloggedError: there is none, or it is no record.
    """
    path = results / FOLDER / RECORD
    try:
        said = json.loads(path.read_bytes())
        if said.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        record = said.pop("record")
        for name in ("tables_in_files", "headline"):
            record[name] = tuple(record[name])
        files = results / FOLDER / FILES
        return Unlogged(results, **said, record=Record(**record, files=files))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnloggedError(
            f"{path}: expected the record of a run, found {error!r}. Run the same `evaluate` "
            "again: its answers are kept and the record is made anew."
        ) from error


def below(folder: Path) -> list[Path]:
    """Folders of results with a record that MLflow lacks, anywhere under this one."""
    return sorted(path.parent.parent for path in folder.rglob(f"{FOLDER}/{RECORD}"))


def discard(results: Path) -> None:
    """Forget the record, as MLflow has it."""
    folder = results / FOLDER
    # The record before its files: half a record must not be completed from.
    (folder / RECORD).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
