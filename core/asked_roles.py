"""Roles of speakers as a language model tells them: the question, and its answer checked.

One question a recording. The study asks Claude Sonnet 4.5 "based on conversational content
and turn-taking patterns"; it does not print its prompt, so the words are ours.

Source: CBT-Audio, section 3.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd

from core.prompts import fill, template
from core.roles import Roles
from core.turns import OTHER, PATIENT, THERAPIST

PROMPT = "roles/classify"
ROLES = (THERAPIST, PATIENT, OTHER)


def question(turns: pd.DataFrame) -> str:
    """The prompt for a recording's turns, every line with its speaker."""
    lines = [f"{name}: {text}" for name, text in zip(turns["speaker"], turns["text"], strict=True)]
    parts = fill(
        template(PROMPT),
        speakers=", ".join(speakers(turns)),
        conversation="\n".join(lines),
    )
    return "".join(part["text"] for part in parts)


def speakers(turns: pd.DataFrame) -> list[str]:
    """Names in alphabetical order."""
    return sorted(str(name) for name in set(turns["speaker"]))


def answer_schema(names: list[str]) -> dict[str, Any]:
    """JSON schema of an answer, for services that can be held to one."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "enum": list(ROLES)} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def told(answer: Any, names: list[str], by: str) -> Roles:
    """The roles an answer gives; refused with the reason where it gives none.

    Args:
        answer: an object, or text that holds one.
        by: who says so, e.g. a model's name.
    """
    if isinstance(answer, str):
        answer = _object(answer)
    if not isinstance(answer, dict):
        return _refused("the answer is no JSON object", by)
    if missing := [name for name in names if name not in answer]:
        return _refused(f"the answer gives {', '.join(missing)} no role", by)
    of = {name: answer[name] for name in names}
    if wrong := [name for name, role in of.items() if role not in ROLES]:
        return _refused(f"the answer says {wrong[0]} is {str(of[wrong[0]])[:40]!r}", by)
    notes = tuple(
        f"{count} speakers are {role}"
        for role in (THERAPIST, PATIENT)
        if (count := list(of.values()).count(role)) > 1
    )
    if len(names) != 2:
        notes += (f"{len(names)} speakers",)
    if absent := [role for role in (THERAPIST, PATIENT) if role not in of.values()]:
        return Roles({}, float("nan"), f"nobody is the {' or the '.join(absent)}", notes, {}, by)
    return Roles(of, float("nan"), None, notes, {}, by)


def _object(text: str) -> Any:
    # Models like to wrap their JSON in a fence or a sentence.
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        return json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return None


def _refused(reason: str, by: str) -> Roles:
    return Roles({}, float("nan"), reason, (), {}, by)
