import json
from xml.etree import ElementTree

import pytest

from experiments.annotation_tasks import interface, read_export, tasks
from validation.annotation_design import MODALITIES
from validation.annotation_key import Shown, fingerprint

WHO = ["annotator_1", "annotator_2"]
ASKED = [Shown("T1", "d1", "text", fingerprint("Person1: =1+1")), Shown("T2", "d2", "text", "")]
TEXTS = {"d1": "Person1: =1+1", "d2": "Person1: Hello."}


def made():
    return tasks("annotator_1", "text", ASKED, TEXTS, "/clips/")


def export(folder, annotations, form="full"):
    """What Label Studio gives back for the tasks above, one list of annotations a task."""
    said = []
    for number, (task, mine) in enumerate(zip(made(), annotations, strict=True), start=7):
        if form == "full":
            said.append({"id": number, **task, "annotations": mine, "predictions": []})
        else:
            said.append({"id": number, "annotator": 1, **task["data"], "manipulative": mine})
    path = folder / "project-1.json"
    path.write_text(json.dumps(said))
    return path


def chosen(*labels, **more):
    value = {"from_name": "manipulative", "to_name": "conversation", "type": "choices"}
    return {"completed_by": 1, "result": [{**value, "value": {"choices": list(labels)}}], **more}


def test_a_task_says_nothing_about_the_item_but_its_words():
    assert made()[0]["data"] == {
        "item": "T1",
        "assigned_to": "annotator_1",
        "modality": "text",
        "text": "Person1: =1+1",
    }
    audio = tasks("annotator_1", "audio", [Shown("A1", "d1", "audio", "f0.flac")], {}, "/clips/")
    assert audio[0]["data"]["audio"] == "/clips/f0.flac"


@pytest.mark.parametrize("modality", MODALITIES)
def test_the_interface_shows_the_task_s_own_field_and_two_choices(modality):
    root = ElementTree.fromstring(interface(modality))
    (shown,) = root.findall({"text": "Text", "audio": "Audio"}[modality])
    assert shown.get("value") == f"${modality}"
    assert root.find("Choices").get("toName") == shown.get("name")
    assert [choice.get("value") for choice in root.iter("Choice")] == ["YES", "NO"]


@pytest.mark.parametrize("form", ["full", "min"])
def test_both_forms_of_an_export_are_read(tmp_path, form):
    mine = [[chosen("YES")], [chosen("NO")]] if form == "full" else ["YES", "NO"]
    found = read_export(export(tmp_path, mine, form), WHO)
    assert (found.annotator, found.modalities, found.problems) == ("annotator_1", ("text",), ())
    assert [(each.code, each.given) for each in found.answers] == [("T1", "YES"), ("T2", "NO")]
    assert found.answers[0].content == ASKED[0].content
    assert found.answers[0].place == "task 1 (id 7)"


@pytest.mark.parametrize(
    ("annotations", "given", "instead"),
    [
        ([], None, None),
        ([chosen("YES", was_cancelled=True)], None, "a skipped task"),
        ([chosen("YES"), chosen("YES")], None, "2 annotations of one task"),
        ([chosen("YES", "NO")], None, "2 choices"),
        ([chosen("YES", was_cancelled=True), chosen("NO")], "NO", None),
        ([{"completed_by": 1, "result": []}], None, None),
    ],
)
def test_a_task_has_one_standing_choice_or_none(tmp_path, annotations, given, instead):
    found = read_export(export(tmp_path, [annotations, [chosen("NO")]]), WHO)
    assert (found.answers[0].given, found.answers[0].instead) == (given, instead)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("{", "no JSON"),
        ("{}", "something other than a list of tasks"),
        ("[]", "something other than a list of tasks"),
        ('[{"data": "x"}]', "None, None in task 1"),
        ('[{"data": {"assigned_to": "eve", "modality": "text"}}]', "'eve', 'text' in task 1"),
    ],
)
def test_a_file_that_is_no_export_of_this_round_is_one_problem(tmp_path, content, found):
    path = tmp_path / "x.json"
    path.write_text(content)
    (problem,) = read_export(path, WHO).problems
    assert problem.said().startswith("x.json: expected ")
    assert found in problem.said()


def test_tasks_of_two_annotators_in_one_file_are_refused(tmp_path):
    path = export(tmp_path, [[chosen("YES")], [chosen("NO")]])
    path.write_text(path.read_text().replace("annotator_1", "annotator_2", 1))
    (problem,) = read_export(path, WHO).problems
    assert "expected the tasks of one annotator" in problem.said()
