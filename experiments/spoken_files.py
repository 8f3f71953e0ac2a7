"""The files between a recording and its labelled turns: tables of words, turns, roles, findings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import pandas as pd

from core.datasets.cutting import Finding
from core.datasets.spoken_session import SpokenSession
from core.parquet import read_frame
from core.replacing import replacing
from core.words import of_whisperx
from experiments.options import OptionError
from validation import spoken
from validation.releases import data_report
from validation.schemas import validated

REPORT = "data_report.csv"
_WORDS = (".parquet", ".csv", ".json")


def read_words(folder: Path) -> list[tuple[str, pd.DataFrame]]:
    """(session, words) of every table of words in the folder, or WhisperX's .json, by name.

    Raises:
        OptionError: there is none, two are of one session, or a .json is not WhisperX's.
        TableError: a table that is none of words.
    """
    paths = sorted(path for path in folder.iterdir() if path.suffix in _WORDS)
    if not paths:
        raise OptionError(f"words: {folder} has no table of words ({', '.join(_WORDS)}).")
    stems = [path.stem for path in paths]
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise OptionError(f"words: two files are of session {twice[0]!r}; keep one of them.")
    return [(path.stem, validated(_words(path), spoken.words(), str(path))) for path in paths]


def _words(path: Path) -> pd.DataFrame:
    if path.suffix != ".json":
        return read_table(path)
    try:
        return of_whisperx(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise OptionError(f"{path}: {error}") from error


def by_hand(path: Path) -> dict[str, dict[str, str]]:
    """session -> speaker -> role; raises TableError."""
    table = validated(read_table(path), spoken.roles_by_hand(), str(path))
    known: dict[str, dict[str, str]] = {}
    for row in table.to_dict("records"):
        known.setdefault(str(row["session_id"]), {})[str(row["speaker"])] = str(row["role"])
    return known


def read_table(path: Path) -> pd.DataFrame:
    """A parquet or CSV table; ids stay text, so that 001 is not 1.

    Raises:
        OptionError: not a table.
    """
    texts = ("item_id", "session_id", "speaker", "segment_speaker", "word", "description", "role")
    try:
        if path.suffix == ".parquet":
            return read_frame(path)
        header = pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns
        dtypes = {name: object for name in texts if name in header}
        # A word may be "null" or "NA".
        table = pd.read_csv(
            path, dtype=dtypes, keep_default_na=False, na_values=[""], encoding="utf-8-sig"
        )
    except (OSError, ValueError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise OptionError(f"{path}: not readable as a table ({first_line}).") from error
    return table


def write_sessions(folder: Path, sessions: Sequence[SpokenSession]) -> None:
    """turns/<session>.csv with every turn, roles.csv with who is who and why, rules.csv."""
    (folder / "turns").mkdir(exist_ok=True)
    roles, rules = [], []
    for session in sessions:
        checked = validated(
            session.turns.drop(columns="role"), spoken.spoken_turns(), session.session_id
        )
        turns = checked.assign(role=list(session.turns["role"]))
        write_table(folder / "turns" / f"{session.session_id}.csv", turns)
        told = session.roles
        for speaker in sorted(set(session.turns["speaker"])):
            roles.append(
                {
                    "session_id": session.session_id,
                    "speaker": speaker,
                    "role": told.of.get(speaker),
                    "by": told.by,
                    "confidence": told.confidence,
                    "refused": told.refused,
                    **dict(told.cues.get(speaker, {})),
                }
            )
        rules += [{"session_id": session.session_id, **asdict(rule)} for rule in session.rules]
    write_table(folder / "roles.csv", pd.DataFrame(roles))
    write_table(folder / "rules.csv", pd.DataFrame(rules))


def write_report(folder: Path, findings: Sequence[Finding]) -> pd.DataFrame:
    """data_report.csv, a finding a row."""
    rows = [{**asdict(one), "kept": "yes" if one.kept else "no"} for one in findings]
    columns = [field.name for field in fields(Finding)]
    report = validated(pd.DataFrame(rows, columns=columns), data_report(), REPORT)
    write_table(folder / REPORT, report)
    return report


def write_table(path: Path, table: pd.DataFrame) -> None:
    """A table as .csv or .parquet, whole or not at all."""
    with replacing(path) as stream:
        if path.suffix == ".parquet":
            table.to_parquet(stream, index=False)
        else:
            stream.write(table.to_csv(index=False).encode())
