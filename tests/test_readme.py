"""What the README says of models and commands is what there is."""

import re

from containers.runtime.card import read_card
from experiments.settings import ROOT, models

README = (ROOT / "README.md").read_text()


def test_every_model_is_in_its_table_with_licence_gate_and_verification():
    rows = {
        cells[1].strip(" `"): [cell.strip() for cell in cells]
        for line in README.splitlines()
        if len(cells := line.split("|")) == 8
    }
    for name in models():
        card = read_card(ROOT / "containers" / name / "model.toml")
        gated = "yes" if any(repo.gated for repo in card.repos) else "no"

        assert rows[name][3:5] == [card.licence, gated], name
        assert rows[name][6] == card.verified, name


def test_every_command_is_an_entry_point():
    entries = set(re.findall(r"^  (\w+):$", (ROOT / "MLproject").read_text(), re.MULTILINE))
    named = set(re.findall(r"-e (\w+)", README))

    assert named
    assert named <= entries


def test_every_picture_and_page_it_links_to_is_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_no_part_is_left_to_fill_in():
    assert re.findall(r"^[A-Z0-9_]{4,}$", README, re.MULTILINE) == []
