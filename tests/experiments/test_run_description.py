import pytest

from experiments.evaluation import carry_out, prepare
from experiments.run_description import RunDescriptionError, read_description
from experiments.run_folder import held
from experiments.settings import ROOT, settings_from


def test_a_run_says_in_its_folder_what_it_was(tmp_path):
    words = {"model": "null", "conditions": "TO", "limit": "2", "resamples": "1"}
    plan = prepare(settings_from({**words, "output": str(tmp_path)}))
    with held(plan.folder):
        carry_out(plan)
    said = read_description(plan.folder.results / "run.json")

    assert (said.parameters["model"], said.parameters["items"]) == ("null", "2")
    assert said.tags["family"] == plan.card.family
    assert said.dataset["folder"] == str(ROOT / "demo" / "distress")
    assert (said.dataset["licence"], said.dataset["synthetic"]) == ("CC0-1.0", True)


@pytest.mark.parametrize("content", ["", "[]", '{"written": "2026-11-30"}'])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path, content):
    (tmp_path / "run.json").write_text(content)

    with pytest.raises(RunDescriptionError, match=r"run\.json: .*`evaluate` again"):
        read_description(tmp_path / "run.json")
