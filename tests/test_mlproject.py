"""MLproject hands on what each command takes: no option is out of reach of `mlflow run -P`."""

from importlib import import_module

import pytest
import yaml

from experiments import settings
from experiments.settings import ROOT

ENTRIES = yaml.safe_load((ROOT / "MLproject").read_text())["entry_points"]


def options_of(name):
    """What the command of an entry point takes; nothing where it takes no options."""
    if name == "evaluate":
        return settings.OPTIONS
    return getattr(import_module(f"experiments.{name}"), "OPTIONS", {})


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_every_option_is_a_parameter_and_handed_on(name):
    entry, options = ENTRIES[name], options_of(name)

    assert set(entry.get("parameters", {})) == set(options)
    assert all(f"--{option} {{{option}}}" in entry["command"] for option in options)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_default_is_the_one_of_the_command(name):
    told = {
        key: one["default"]
        for key, one in ENTRIES[name].get("parameters", {}).items()
        if "default" in one
    }

    assert told == {key: options_of(name)[key][0] for key in told}
