"""Written role-plays and dialogues of our own: TOML text to the rows of a manifest.

A session file holds one therapy role-play with a level for each patient turn; a
dialogues file holds short dialogues with label and techniques. Levels and labels are
the writer's, by construction: nobody rated the sound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from core.datasets.dialogue import TECHNIQUES, Dialogue

LEVELS = (1, 2, 3, 4, 5)
ROLES = ("therapist", "patient")
CONTEXT_TURNS = 3


class TextSourceError(ValueError):
    """A text source that is not written as described; names file, place, and what to do."""


@dataclass(frozen=True)
class RolePlayTurn:
    """One turn of a session.

    `level` is the intended distress 1-5 of a patient's turn; None for a therapist's, and for
    a patient's `closing` turn, which is heard in whole recordings alone.
    """

    role: str
    text: str
    level: int | None


@dataclass(frozen=True)
class Session:
    """One role-play; `arc` says how distress goes over it ("rising", "falling", ...)."""

    session_id: str
    arc: str
    patient_voice: str
    turns: tuple[RolePlayTurn, ...]

    def context(self, index: int) -> str:
        """Up to three turns before turn `index`, "Therapist: ..." and "Patient: ..." lines."""
        before = self.turns[max(0, index - CONTEXT_TURNS) : index]
        return "\n".join(f"{turn.role.capitalize()}: {turn.text}" for turn in before)


def read_sessions(folder: Path) -> list[Session]:
    """Every `session_*.toml` of a folder, by name.

    Raises:
        TextSourceError: no session, an unknown role, a level missing or out of 1-5.
    """
    sessions = [_session(path) for path in sorted(folder.glob("session_*.toml"))]
    if not sessions:
        raise TextSourceError(f"{folder}: expected session_*.toml files, found none.")
    return sessions


def read_dialogues(path: Path) -> list[Dialogue]:
    """Every dialogue of a file, in order.

    Raises:
        TextSourceError: missing fields, a repeated id, or techniques without manipulation.
    """
    dialogues = [_dialogue(path, entry) for entry in _table(path).get("dialogue", [])]
    ids = [dialogue.dialogue_id for dialogue in dialogues]
    if len(set(ids)) != len(ids):
        raise TextSourceError(f"{path}: a dialogue_id appears twice; give each its own.")
    return dialogues


def _session(path: Path) -> Session:
    table = _table(path)
    turns = tuple(
        _turn(f"{path}, turn {number}", entry)
        for number, entry in enumerate(table.get("turn", []), start=1)
    )
    return Session(
        _field(str(path), table, "session_id"),
        _field(str(path), table, "arc"),
        _field(str(path), table, "patient_voice"),
        turns,
    )


def _turn(where: str, entry: Mapping[str, Any]) -> RolePlayTurn:
    role, text = _field(where, entry, "role"), _field(where, entry, "text")
    level, closing = entry.get("level"), entry.get("closing", False)
    if role not in ROLES:
        raise TextSourceError(f"{where}: expected a role of {', '.join(ROLES)}, found {role!r}.")
    if closing is True and level is None:
        return RolePlayTurn(role, text, None)
    if role == "patient" and level not in LEVELS:
        raise TextSourceError(f"{where}: expected a level of 1 to 5, found {level!r}.")
    return RolePlayTurn(role, text, level if role == "patient" else None)


def _dialogue(path: Path, entry: Mapping[str, Any]) -> Dialogue:
    where = f"{path}, dialogue {entry.get('dialogue_id')!r}"
    manipulative = bool(_field(where, entry, "manipulative", bool))
    techniques: Sequence[str] = entry.get("techniques", [])
    if unknown := [name for name in techniques if name not in TECHNIQUES]:
        raise TextSourceError(f"{where}: expected techniques of MentalManip, found {unknown[0]!r}.")
    if techniques and not manipulative:
        raise TextSourceError(f"{where}: it is not manipulative, but names {techniques}.")
    turns = tuple((str(speaker), str(text)) for speaker, text in entry.get("turns", []))
    if not turns:
        raise TextSourceError(f"{where}: expected turns, found none.")
    return Dialogue(_field(where, entry, "dialogue_id"), manipulative, tuple(techniques), turns)


def _field(where: str, entry: Mapping[str, Any], name: str, kind: type = str) -> Any:
    found = entry.get(name)
    if not isinstance(found, kind) or found == "":
        raise TextSourceError(f"{where}: expected {name} ({kind.__name__}), found {found!r}.")
    return found


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TextSourceError(f"{path}: not readable as TOML ({error}).") from error
