"""The same round as Label Studio projects: a labelling interface, tasks, and exports read back.

A project for each annotator and modality, since the community edition cannot give
tasks to people. What the answers mean is for `validation.annotation_answers`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from validation.annotation_answers import Answer, Problem, Read
from validation.annotation_design import MODALITIES, Modality
from validation.annotation_key import Shown, fingerprint

CHOICE = "manipulative"
QUESTION = "Does at least one speaker manipulate another in this conversation?"
_OBJECTS: dict[Modality, str] = {
    "text": '<Text name="conversation" value="$text"/>',
    "audio": '<Audio name="conversation" value="$audio"/>',
}


def interface(modality: Modality) -> str:
    """The labelling interface of a modality, for Settings > Labeling Interface > Code."""
    return f"""<View>
  <Header value="{QUESTION}"/>
  {_OBJECTS[modality]}
  <Choices name="{CHOICE}" toName="conversation" choice="single" required="true">
    <Choice value="YES" hotkey="1"/>
    <Choice value="NO" hotkey="0"/>
  </Choices>
</View>
"""


def tasks(
    annotator: str,
    modality: Modality,
    asked: Sequence[Shown],
    texts: Mapping[str, str],
    audio_url: str,
) -> list[dict[str, Any]]:
    """The tasks of one annotator's project, for Import; no label and no item id in them."""
    made = []
    for each in asked:
        shown = texts[each.item_id] if modality == "text" else audio_url + each.content
        # Not "annotator": the short form of an export puts its own user's number there.
        about = {"item": each.code, "assigned_to": annotator, "modality": modality}
        made.append({"data": {**about, modality: shown}})
    return made


def read_export(path: Path, annotators: Sequence[str]) -> Read:
    """The answers in an export of Label Studio, its JSON or its JSON-MIN.

    Args:
        annotators: who may own it, by the tasks' own `assigned_to`.
    """
    expected = "an export of Label Studio (JSON or JSON-MIN)"
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        return _refused(path, expected, f"no JSON ({error})")
    if not isinstance(said, list) or not said or not all(isinstance(each, dict) for each in said):
        return _refused(path, expected, "something other than a list of tasks")
    answers = []
    for number, task in enumerate(said, start=1):
        data = task.get("data", task)
        data = data if isinstance(data, dict) else {}
        owner, mode = data.get("assigned_to"), data.get("modality")
        place = f"task {number}" + (f" (id {task['id']})" if "id" in task else "")
        if owner not in annotators or mode not in MODALITIES:
            found = f"{owner!r}, {mode!r} in {place}"
            return _refused(path, "tasks made by annotate_export for one of its annotators", found)
        given, instead = _given(task)
        answers.append(_answer(path.name, data, place, given, instead))
    if not any("annotations" in task or CHOICE in task for task in said):
        note = f"{path.name}: not read; tasks as they were handed out, without an answer."
        return Read("", (), (), (), (note,))
    owners = list(dict.fromkeys(each.annotator for each in answers))
    if len(owners) > 1:
        return _refused(path, "the tasks of one annotator", " and ".join(owners))
    modes = tuple(dict.fromkeys(each.modality for each in answers))
    return Read(owners[0], modes, tuple(answers), (), ())


def _refused(path: Path, expected: str, found: str) -> Read:
    return Read("", (), (), (Problem(path.name, "", expected, found),), ())


def _answer(
    file: str, data: Mapping[str, Any], place: str, given: object, instead: str | None
) -> Answer:
    mode: Modality = "text" if data["modality"] == "text" else "audio"
    shown = str(data.get(mode, ""))
    # The address may have become a full one; the file's name is what stays.
    content = fingerprint(shown) if mode == "text" else PurePosixPath(shown).name
    code = str(data.get("item", "")).strip()
    return Answer(file, str(data["assigned_to"]), mode, code, given, place, place, content, instead)


def _given(task: Mapping[str, Any]) -> tuple[object, str | None]:
    """The choice of a task; or what is there instead of one."""
    if "annotations" not in task:
        return task.get(CHOICE), None
    drawn = [each for each in task["annotations"] or () if isinstance(each, dict)]
    standing = [each for each in drawn if not each.get("was_cancelled")]
    if not standing:
        return None, "a skipped task" if drawn else None
    if len(standing) > 1:
        return None, f"{len(standing)} annotations of one task"
    choices = [
        choice
        for result in standing[0].get("result") or ()
        if isinstance(result, dict) and result.get("from_name") == CHOICE
        for choice in (result.get("value") or {}).get("choices") or ()
    ]
    if len(choices) > 1:
        return None, f"{len(choices)} choices"
    return (choices[0] if choices else None), None
