"""CBT-Audio's release: two CSVs, to turns of recordings that still have to be fetched and cut.

`data/labeled_patient_turns.csv` has a labelled turn a row, `data/source_recordings.csv`
a video a row; there is no sound in it. Reading settles types and ids; values are judged by
`validation.releases`, sound by `core.datasets.cutting`.

Source: CBT-Audio, section 6, and the columns of its release (CC BY-NC 4.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd

from core.faults import Fault, shown
from core.manifest import Cells, Column, DatasetError, read_cells, typed_as

TURNS_CSV = "labeled_patient_turns.csv"
RECORDINGS_CSV = "source_recordings.csv"
HUB_ID = "CodyWho/cbt-audio"
LICENCE = "CC BY-NC 4.0 for labels and transcripts; the recordings are their owners'"

# As published, section 3: what a complete release and a complete build come to.
PUBLISHED_TURNS = 1802
PUBLISHED_RECORDINGS = 96
PUBLISHED_HOURS = 7.3
PUBLISHED_MEAN_S = 14.6
PUBLISHED_MEDIAN_S = 9.8

_TEXT = Column("text", needed=True, nullable=False)
_NUMBER = Column("number", needed=True, nullable=False)
_INTEGER = Column("integer", needed=True, nullable=False)
TURN_COLUMNS: Mapping[str, Column] = {
    "global_id": _TEXT,
    "video_id": _TEXT,
    "turn_id": _INTEGER,
    "reference_label": _INTEGER,
    "patient_transcript": _TEXT,
    # A first turn has none.
    "context": Column("text", needed=True),
    "start_time_sec": _NUMBER,
    "end_time_sec": _NUMBER,
}
RECORDING_COLUMNS: Mapping[str, Column] = {
    "video_id": _TEXT,
    "youtube_url": _TEXT,
    "original_title": Column("text", needed=True),
}
_VIDEO_ID_DIGITS = 3


@dataclass(frozen=True)
class ReleaseTable:
    """One of the two files: `frame` typed, its rows numbered as in the file from 1.

    `faults` are cells that are not of their column's type; they are empty in `frame`.
    """

    path: Path
    frame: pd.DataFrame
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Release:
    """Both tables and the sha256 over both files' bytes."""

    turns: ReleaseTable
    recordings: ReleaseTable
    sha256: str


def read_release(folder: Path) -> Release:
    """Both files, from the folder or its `data/`.

    Columns beyond the known ones are not read. A video_id of digits is padded with zeros
    to three, which a spreadsheet may have taken away.

    Raises:
        DatasetError: a file that is not there, is not a table or lacks a column.
    """
    paths = [_found(folder, name) for name in (TURNS_CSV, RECORDINGS_CSV)]
    turns = _table(paths[0], TURN_COLUMNS)
    recordings = _table(paths[1], RECORDING_COLUMNS)
    known = set(recordings.frame["video_id"])
    unknown = [
        Fault(row, "video_id", f"a video_id of {RECORDINGS_CSV}", shown(video_id))
        for row, video_id in enumerate(turns.frame["video_id"], start=1)
        if video_id is not None and video_id not in known
    ]
    turns = ReleaseTable(turns.path, turns.frame, (*turns.faults, *unknown))
    hashed = sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
    return Release(turns, recordings, hashed)


def items_of(turns: pd.DataFrame) -> pd.DataFrame:
    """Release rows as turns to be cut: see `core.datasets.cutting.TO_CUT`."""
    return pd.DataFrame(
        {
            "item_id": turns["global_id"],
            "session_id": turns["video_id"],
            "turn_index": turns["turn_id"],
            "transcript": turns["patient_transcript"],
            "context": [context or "" for context in turns["context"]],
            "label": turns["reference_label"],
            "start_s": turns["start_time_sec"],
            "end_s": turns["end_time_sec"],
        }
    ).reset_index(drop=True)


def _found(folder: Path, name: str) -> Path:
    for path in (folder / "data" / name, folder / name):
        if path.is_file():
            return path
    fault = Fault(None, None, f"data/{name} or {name}", "neither")
    advice = f"Get the release's data folder ({HUB_ID} on the hub), or check the path."
    raise DatasetError(str(folder), [fault], advice)


def _table(path: Path, columns: Mapping[str, Column]) -> ReleaseTable:
    cells = read_cells(path)
    if not cells.rows:
        advice = "The file was cut: fetch it again."
        raise DatasetError(str(path), [Fault(None, None, "rows", "none")], advice)
    names = tuple(name for name in cells.columns if name in columns)
    known = Cells(names, [_settled(row, names) for row in cells.rows], cells.lines)
    frame, faults = typed_as(path.name, path.name, columns, known)
    return ReleaseTable(path, frame, tuple(faults))


def _settled(row: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    kept = {name: row[name] for name in names}
    video_id = kept.get("video_id", "").strip()
    if video_id.isdigit():
        kept["video_id"] = video_id.zfill(_VIDEO_ID_DIGITS)
    return kept
