"""A dataset folder: dataset.json, one manifest, audio files; read, checked, hashed, written.

Reading gives typed rows whose audio lies inside the folder and has the content
the manifest says. Values are judged by whoever reads (`validation.datasets`), in the
same pass.
Any folder with a manifest can be read; what dataset.json would have said is then
unknown, and said to be.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd

from core.faults import Fault, shown
from core.manifest import FORMATS, Cells, DatasetError, is_nothing, read_cells, typed
from core.replacing import replacing

__all__ = ["Dataset", "DatasetError", "read_dataset", "write_dataset"]

SCHEMA = 1
LONGEST_NAME = 200
# Rows, or files, that are taken at a time where those of all need not be held.
_TOGETHER = 4096
_OWN = ("schema", "name", "task", "licence", "source", "synthetic", "hash", "counts")
_TYPES: dict[str, type] = {"name": str, "task": str, "licence": str, "synthetic": bool}
_ADVICE = "Correct these and run again."

# Given typed items and the (row, column) of cells found faulty already: what else is wrong.
Judge = Callable[[pd.DataFrame, Set[tuple[int | None, str | None]]], list[Fault]]


@dataclass(frozen=True)
class Dataset:
    """A dataset that was read.

    Attributes:
        name: of dataset.json, or of the folder.
        folder: absolute; audio paths of the items start here.
        hash: hex sha256 over the rows and the audio they name. Equal for csv, jsonl
            and parquet of the same rows; another order is another hash, since a
            limit takes the first rows.
        synthetic: False where unknown, with a note.
        items: the manifest's rows, see `core.manifest.typed`; `audio_sha256` is
            there for every audio file.
        manifest: its file, for messages.
        source: where the data comes from.
        about: further entries of dataset.json.
        notes: what was not known.
    """

    name: str
    task: str
    folder: Path
    hash: str
    synthetic: bool
    licence: str
    items: pd.DataFrame
    manifest: Path
    source: str = "unknown"
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_dataset(
    folder: Path, task: str, *, manifest: str | None = None, judge: Judge | None = None
) -> Dataset:
    """Read a dataset for a task.

    Args:
        folder: holds manifest.parquet, .csv or .jsonl, exactly one of them.
        task: as in dataset.json.
        manifest: "turns" or "dialogues"; by default what the task says.
        judge: what the values must keep to; by default nothing.

    Raises:
        DatasetError: naming every row that has a cell of the wrong type, audio
            outside the folder, missing, or of another content, or a value that
            `judge` refuses; or saying what else is wrong with the folder.
    """
    folder = Path(folder).resolve()
    about = _about(folder, task)
    path = _manifest(folder)
    items = _checked(path, manifest or _kind(task), read_cells(path), judge)
    if items.empty:
        raise DatasetError(str(path), [Fault(None, None, "rows", "none")], _ADVICE)
    found = dataset_hash(items)
    if about.get("hash", found) != found:
        fault = Fault(None, "hash", f"{found} as the rows and audio have it", str(about["hash"]))
        advice = "The data changed after it was described: write the dataset again."
        raise DatasetError(str(folder / "dataset.json"), [fault], advice)
    notes = () if about else ("no dataset.json: licence unknown, taken as not synthetic",)
    return Dataset(
        name=about.get("name", folder.name),
        task=task,
        folder=folder,
        hash=found,
        synthetic=about.get("synthetic", False),
        licence=about.get("licence", "unknown"),
        items=items,
        manifest=path,
        source=str(about.get("source", "unknown")),
        about={name: value for name, value in about.items() if name not in _OWN},
        notes=notes,
    )


def write_dataset(
    folder: Path,
    items: pd.DataFrame,
    *,
    name: str,
    task: str,
    licence: str,
    source: str,
    synthetic: bool,
    manifest: str | None = None,
    suffix: str = "parquet",
    about: Mapping[str, Any] | None = None,
) -> Dataset:
    """Describe the audio files of a folder: write its manifest, then its dataset.json.

    Each file appears whole or not at all, dataset.json last; a crash between them
    leaves a folder that `read_dataset` refuses and that writing again mends.

    Args:
        items: rows with the columns of `core.manifest.COLUMNS`; audio is in place.
        suffix: parquet, csv or jsonl.
        about: further entries for dataset.json.

    Raises:
        DatasetError: as `read_dataset` would for these rows; nothing is written then.
    """
    folder = Path(folder).resolve()
    if suffix not in FORMATS:
        fault = Fault(None, "suffix", f"one of {', '.join(FORMATS)}", shown(suffix))
        raise DatasetError(str(folder), [fault], _ADVICE)
    path = folder / f"manifest.{suffix}"
    records = [{str(name): cell for name, cell in row.items()} for row in items.to_dict("records")]
    cells = Cells(tuple(map(str, items.columns)), records)
    rows = _checked(path, manifest or _kind(task), cells)
    described = {
        "schema": SCHEMA,
        "name": name,
        "task": task,
        "licence": licence,
        "source": source,
        "synthetic": synthetic,
        "hash": dataset_hash(rows),
        "counts": _counts(rows),
        **(about or {}),
    }
    _check_about(folder, task, described)
    folder.mkdir(parents=True, exist_ok=True)
    _replace(path, _written(rows, suffix))
    for other in FORMATS:
        if other != suffix:
            (folder / f"manifest.{other}").unlink(missing_ok=True)
    content = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
    _replace(folder / "dataset.json", content.encode())
    return read_dataset(folder, task, manifest=manifest)


def dataset_hash(items: pd.DataFrame) -> str:
    """Hex sha256 over rows in order; audio counts by content, an empty cell not at all."""
    names = sorted(set(items.columns) - {"audio"})
    hashed = sha256()
    for start in range(0, len(items), _TOGETHER):
        for row in items[names].iloc[start : start + _TOGETHER].to_dict("records"):
            cells = {name: value for name, value in row.items() if not is_nothing(value)}
            line = json.dumps(
                cells, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str
            )
            hashed.update(line.encode() + b"\n")
    return hashed.hexdigest()


def _kind(task: str) -> str:
    from core.tasks import task as found

    return found(task).MANIFEST


def _about(folder: Path, task: str) -> dict[str, Any]:
    path = folder / "dataset.json"
    if not folder.is_dir():
        fault = Fault(None, None, "a dataset folder", "no folder")
        raise DatasetError(str(folder), [fault], "Check the path.")
    if not path.exists():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8-sig"))
    # Brackets without end are beyond what the parser can nest.
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(str(path), [Fault(None, None, "JSON", str(error))], _ADVICE) from error
    if not isinstance(about, dict):
        raise DatasetError(str(path), [Fault(None, None, "a JSON object", shown(about))], _ADVICE)
    _check_about(folder, task, about)
    return about


def _check_about(folder: Path, task: str, about: Mapping[str, Any]) -> None:
    faults = []
    if about.get("schema") != SCHEMA:
        faults.append(Fault(None, "schema", str(SCHEMA), shown(about.get("schema"))))
    for name, kind in _TYPES.items():
        value = about.get(name)
        if not isinstance(value, kind) or value == "":
            expected = "true or false" if kind is bool else "text"
            faults.append(Fault(None, name, expected, shown(value)))
    called = about.get("name")
    # It becomes part of a folder's name and of an experiment's, and is shown in titles.
    if isinstance(called, str) and (len(called) > LONGEST_NAME or not called.isprintable()):
        expected = f"a line of at most {LONGEST_NAME} printable characters"
        faults.append(Fault(None, "name", expected, shown(called)))
    if isinstance(about.get("task"), str) and about["task"] not in ("", task):
        faults.append(Fault(None, "task", f"{task}, as asked for", shown(about["task"])))
    if faults:
        raise DatasetError(str(folder / "dataset.json"), faults, _ADVICE)


def _manifest(folder: Path) -> Path:
    there = [p for suffix in FORMATS if (p := folder / f"manifest.{suffix}").is_file()]
    if len(there) != 1:
        expected = f"exactly one of {', '.join(f'manifest.{suffix}' for suffix in FORMATS)}"
        found = " and ".join(path.name for path in there) or "none"
        advice = "Keep one manifest in the folder."
        raise DatasetError(str(folder), [Fault(None, None, expected, found)], advice)
    return there[0]


def _checked(path: Path, kind: str, cells: Cells, judge: Judge | None = None) -> pd.DataFrame:
    items, faults = typed(str(path), kind, cells)
    items, in_audio = _with_digests(path.parent, items)
    faults += in_audio
    if judge is not None and len(items):
        faults += judge(items, {(each.row, each.column) for each in faults})
    faults = [replace(f, line=cells.line(f.row - 1)) if f.row else f for f in faults]
    if faults:
        raise DatasetError(str(path), sorted(faults, key=lambda each: each.row or 0), _ADVICE)
    return items


def _with_digests(folder: Path, items: pd.DataFrame) -> tuple[pd.DataFrame, list[Fault]]:
    """The items with every audio file's sha256, and what is wrong with the files."""
    audio = list(items["audio"])
    stated = list(items["audio_sha256"]) if "audio_sha256" in items else [None] * len(items)
    # Many turns may lie in one recording.
    distinct = list(dict.fromkeys(audio))
    found: dict[str | None, bytes | str | None] = {}
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(distinct), _TOGETHER):
            names = distinct[start : start + _TOGETHER]
            found.update(zip(names, pool.map(partial(_digest, folder), names), strict=True))
    digests = [found[name] for name in audio]
    faults = []
    for row, (name, said, digest) in enumerate(zip(audio, stated, digests, strict=True), start=1):
        if isinstance(digest, str):
            faults.append(Fault(row, "audio", digest, shown(name)))
        elif said is not None and said.lower() != (digest.hex() if digest else None):
            content = digest.hex() if digest else "no audio"
            faults.append(Fault(row, "audio_sha256", f"{said} for {name}", content))
    as_hex = {name: each.hex() for name, each in found.items() if isinstance(each, bytes)}
    column = [as_hex.get(name) for name in audio]
    rest = items.drop(columns="audio_sha256", errors="ignore")
    after_audio = list(rest.columns).index("audio") + 1
    rest.insert(after_audio, "audio_sha256", pd.Series(column, dtype=object))
    return rest, faults


def _digest(folder: Path, name: str | None) -> bytes | str | None:
    """A file's sha256; or the rule it breaks, as text; None where there is no audio."""
    if name is None:
        return None
    if reason := _unsafe(folder, name):
        return reason
    try:
        with (folder / name).open("rb") as stream:
            return file_digest(stream, "sha256").digest()
    except OSError as error:
        return f"a readable file ({(error.strerror or str(error)).lower()})"


def _unsafe(folder: Path, name: str) -> str | None:
    if reason := leads_out(folder, name):
        return reason
    target = folder / name
    try:
        if not target.exists():
            return "a file that is there"
    except OSError as error:
        return f"a file that is there ({(error.strerror or str(error)).lower()})"
    # A pipe or device would be read for ever.
    return None if target.is_file() else "a regular file"


def leads_out(folder: Path, name: str) -> str | None:
    """The rule that a file name from a table breaks by leaving its (resolved) folder, itself or
    through a link; None where it stays inside."""
    if "\0" in name or "\\" in name or ".." in PurePosixPath(name).parts:
        return "a path inside the folder, with / and without .."
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        return "a path relative to the folder"
    try:
        target = (folder / name).resolve()
    except (OSError, RuntimeError):
        return "a path that ends at a file"
    if not target.is_relative_to(folder):
        return "a file inside the folder, not a link out of it"
    return None


def check_inside(table: Path, names: Sequence[str]) -> None:
    """Refuse a table's audio files that lead out of its folder.

    Raises:
        DatasetError: naming every such row.
    """
    folder = table.resolve().parent
    faults = [
        Fault(row, "audio", reason, shown(name))
        for row, name in enumerate(names, start=1)
        if (reason := leads_out(folder, name))
    ]
    if faults:
        raise DatasetError(str(table), faults, _ADVICE)


def _counts(items: pd.DataFrame) -> dict[str, Any]:
    labels = items["label"].value_counts().sort_index()
    return {
        "items": len(items),
        "audio": int(items["audio"].notna().sum()),
        "labels": {str(label): int(count) for label, count in labels.items()},
    }


def _written(items: pd.DataFrame, suffix: str) -> bytes:
    if suffix == "parquet":
        buffer = io.BytesIO()
        items.to_parquet(buffer, index=False)
        return buffer.getvalue()
    names = list(items.columns)
    rows: Sequence[dict[Any, Any]] = items.to_dict("records")
    rows = [{n: None if is_nothing(row[n]) else row[n] for n in names} for row in rows]
    if suffix == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode()
    text = io.StringIO(newline="")
    # By default a lone carriage return is not quoted and would end the row.
    writer = csv.DictWriter(text, names, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _replace(path: Path, content: bytes) -> None:
    with replacing(path) as stream:
        stream.write(content)
