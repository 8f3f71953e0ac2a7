"""The plug-in: what it changes for this project, and that it leaves everything else alone."""

import importlib
import sys
from types import ModuleType

import click
import pytest

from experiments import mlflow_default
from experiments.mlflow_default import UndertoneDefaults, is_this_project, with_our_defaults
from experiments.settings import ROOT


def backend_run(project_uri, entry_point, params, version, backend_config, experiment_id):
    return {"config": backend_config, "experiment": experiment_id}


def started(project, entry_point="smoke", params=None, **config):
    run = with_our_defaults(backend_run)
    return run(str(project), entry_point, params, None, {"ENV_MANAGER": None} | config, "0")


@pytest.fixture(autouse=True)
def experiment_chosen(monkeypatch):
    """As with --experiment-name: none of these tests may write to a store of this folder."""
    monkeypatch.setattr(mlflow_default, "_chosen_by_nobody", False)


@pytest.fixture
def other_project(tmp_path):
    (tmp_path / "MLproject").write_text("name: somebody-elses\n")
    return tmp_path


def test_this_project_runs_where_it_is_installed(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")

    assert started(ROOT)["config"]["ENV_MANAGER"] == "local"


def test_our_own_python_is_the_one_found(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    started(ROOT)

    import shutil

    assert shutil.which("python").startswith(sys.prefix)


def test_an_environment_manager_that_was_asked_for_is_kept():
    assert started(ROOT, ENV_MANAGER="virtualenv")["config"]["ENV_MANAGER"] == "virtualenv"


def test_another_project_is_left_alone(other_project, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    result = started(other_project, entry_point="evaluate", params={"model": "nope"})

    assert result == {"config": {"ENV_MANAGER": None}, "experiment": "0"}


@pytest.mark.parametrize("uri", ["https://example.org/x.git", "/nowhere", "file:///nowhere"])
def test_a_uri_that_is_no_folder_of_ours_is_not_ours(uri):
    assert not is_this_project(uri)


def test_a_wrong_value_is_refused_before_a_run_is_opened():
    with pytest.raises(click.ClickException, match="did you mean 'null'") as refused:
        started(ROOT, entry_point="evaluate", params={"model": "nul"})

    assert refused.value.exit_code == 2


@pytest.mark.parametrize("value", ["http://me:secret@host/v1", "http://host/v1?api_key=secret"])
def test_a_secret_on_the_command_line_is_refused_before_mlflow_keeps_it(value):
    with pytest.raises(click.ClickException, match=r"^endpoint: give the address") as refused:
        started(ROOT, entry_point="cbt_describe", params={"turns": "x", "endpoint": value})

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("entry_point", "params", "experiment"),
    [
        ("agreement", {"ratings": "a/ratings.csv"}, "agreement/ratings"),
        ("weights", {"model": "voxtral"}, "undertone"),
        ("evaluate", {"model": "null"}, "distress/demo-distress"),
        ("evaluate", {"model": "null,baseline"}, "distress/demo-distress"),
    ],
)
def test_a_command_has_an_experiment_where_its_user_named_none(
    entry_point, params, experiment, monkeypatch
):
    monkeypatch.setattr("experiments.store.default_experiment", lambda name: name)
    assert started(ROOT, entry_point, params)["experiment"] == "0"

    UndertoneDefaults().in_context()

    assert started(ROOT, entry_point, params)["experiment"] == experiment


def test_the_provider_itself_never_chooses_an_experiment():
    assert UndertoneDefaults().in_context() is False


def test_a_backend_of_another_shape_is_not_wrapped():
    class LocalBackend:
        def run(self, everything):
            return everything

    module = ModuleType("backend")
    module.LocalBackend = LocalBackend
    before = LocalBackend.run
    mlflow_default._wrap(module)
    mlflow_default._wrap(ModuleType("backend without LocalBackend"))

    assert LocalBackend.run is before


def test_the_installed_mlflow_has_the_backend_we_know():
    backend = importlib.import_module(mlflow_default.BACKEND)

    assert hasattr(backend.LocalBackend.run, "__wrapped__")
