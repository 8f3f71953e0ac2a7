"""A transcribed recording to the patient's turns that are asked about, without labels yet.

Settled words, merged turns, roles, rules and contexts in their order; what was odd on the
way is a finding. Labels and clips come after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from core.datasets.cutting import Finding
from core.roles import Roles, roles
from core.turns import OTHER, PATIENT, THERAPIST, Rule, context, merge, patient_turns
from core.words import settle

UNLABELLED = (
    "item_id",
    "session_id",
    "turn_index",
    "transcript",
    "context",
    "start_s",
    "end_s",
    "speaker",
)
"""Columns of turns that wait for a label."""

ROLES = (THERAPIST, PATIENT, OTHER)


@dataclass(frozen=True)
class SpokenSession:
    """What became of one recording.

    Attributes:
        turns: all of them, columns `core.turns.TURNS` and `role`.
        items: the patient's that are asked about, columns UNLABELLED.
        rules: how many turns each rule left.
    """

    session_id: str
    turns: pd.DataFrame
    items: pd.DataFrame
    roles: Roles
    rules: tuple[Rule, ...]
    findings: tuple[Finding, ...]


def spoken_session(
    session_id: str, words: pd.DataFrame, tell: Callable[[pd.DataFrame], Roles] = roles
) -> SpokenSession:
    """The turns of a recording and those of its patient.

    Args:
        words: columns `core.words.WORDS`.
        tell: gives the roles of a recording from its turns; by default the cues of
            `core.roles`.
    """
    settled = settle(words)
    turns = merge(settled.words)
    told = tell(turns)
    kept = patient_turns(turns, told.of)
    items = pd.DataFrame(
        [
            {
                "item_id": f"{session_id}_{turn['turn_index']:03d}",
                "session_id": session_id,
                "turn_index": turn["turn_index"],
                "transcript": turn["text"],
                "context": context(turns, told.of, turn["turn_index"]),
                "start_s": turn["start_s"],
                "end_s": turn["end_s"],
                "speaker": turn["speaker"],
            }
            for turn in kept.turns.to_dict("records")
        ],
        columns=list(UNLABELLED),
    )
    findings: list[Finding] = []

    def find(kind: str, found: str, count: int, is_kept: bool = True) -> None:
        findings.append(Finding(None, session_id, kind, found, count, is_kept))

    if settled.without_times:
        find("untimed_words", f"{settled.without_times} words put between others", len(turns))
    if settled.without_speaker:
        find("words_without_speaker", f"{settled.without_speaker} words", len(turns))
    for note in told.notes:
        find("odd_roles", note, len(turns))
    if told.refused:
        find("roles_refused", told.refused, len(turns), is_kept=False)
    elif items.empty:
        find("no_patient_turn", "no turn of the patient passes the rules", len(turns), False)
    named = turns.assign(role=[told.of.get(name, OTHER) for name in turns["speaker"]])
    return SpokenSession(session_id, named, items, told, kept.rules, tuple(findings))
