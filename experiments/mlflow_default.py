"""What `mlflow run` on this project does where its user did not say.

An MLflow plug-in (entry point `mlflow.default_experiment_provider`), loaded with
MLflow. For this project's folder, and no other, it

- runs the program in the environment `mlflow` itself runs in, which has the
  project installed, instead of building one with pyenv. `--env-manager` wins;
- opens the run in the experiment of its command: for `evaluate` that of its task and
  dataset, for the others see `experiment_names`. `--experiment-name` wins;
- names the run after its command, until the program knows better. `--run-name` wins;
- refuses a wrong value in one sentence, exit code 2, before a run is opened.

MLflow offers no setting for the first three. So its local backend is wrapped once it
is imported; should a new MLflow differ there, nothing is wrapped and MLflow behaves as ever.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.credentials import holds_credentials, take_login_out_of_the_store

PROJECT = "undertone"
BACKEND = "mlflow.projects.backend.local"
# What LocalBackend.run must take for us to know what we are changing.
EXPECTED = {"project_uri", "entry_point", "params", "backend_config", "experiment_id"}
ENV_MANAGER = "ENV_MANAGER"

_chosen_by_nobody = False


class UndertoneDefaults:
    """MLflow asks each provider for an experiment when its user named none."""

    def __init__(self) -> None:
        _wrap_backend_when_imported()

    def in_context(self) -> bool:
        """Always no: here it is not known yet what is to be run. That we were asked is the news."""
        global _chosen_by_nobody
        _chosen_by_nobody = True
        return False

    def get_experiment_id(self) -> None:
        """Not reached."""


def with_our_defaults(run: Callable[..., Any]) -> Callable[..., Any]:
    """`LocalBackend.run` that fills in our defaults for our project and passes on all else."""

    @wraps(run)
    def run_with_defaults(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(run).bind(*args, **kwargs)
        try:
            ours = is_this_project(str(call.arguments["project_uri"]))
        except Exception:
            ours = False
        if ours:
            from experiments.store import be_brief

            # Here and, since it is inherited, in the program.
            be_brief()
            _fill_in(call.arguments)
        submitted = run(*call.args, **call.kwargs)
        if ours:
            _name(submitted)
        return submitted

    return run_with_defaults


def is_this_project(uri: str) -> bool:
    """Whether a project URI is a local folder with this project in it."""
    folder = Path(uri.removeprefix("file://"))
    try:
        lines = (folder / "MLproject").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return f"name: {PROJECT}" in lines


def _fill_in(call: dict[str, Any]) -> None:
    folder = Path(str(call["project_uri"]).removeprefix("file://")).resolve()
    _choose_python(call["backend_config"])
    if "_mlflow_local_backend_run_id" in call["backend_config"]:
        return
    params = call["params"] or {}
    _refuse_credentials(params)
    _report_nothing()
    take_login_out_of_the_store()
    name = _experiment_of(str(call["entry_point"]), params, folder)
    _check_store()
    if _chosen_by_nobody:
        from experiments.store import default_experiment

        call["experiment_id"] = default_experiment(name)


def _refuse_credentials(params: Mapping[str, str]) -> None:
    """MLflow keeps every word of the command line where others read it."""
    for name, value in params.items():
        if holds_credentials(str(value)):
            raise _wrong_value(
                f"{name}: give the address alone, without a login or a key in it; "
                "docs/security.md says which variable takes it."
            )


def _report_nothing() -> None:
    # MLflow made up its mind when it was imported, which was before us.
    with suppress(Exception):
        import mlflow.telemetry

        told: Any = mlflow.telemetry
        told.set_telemetry_client()


def _wrong_value(said: str) -> Exception:
    import click

    class WrongValueError(click.ClickException):
        exit_code = 2

    return WrongValueError(said)


def _name(submitted: Any) -> None:
    # A comfort: no run fails for its name.
    with suppress(Exception):
        import mlflow

        from experiments.tracking import name_after_command

        name_after_command(mlflow.MlflowClient(), submitted.run_id)


def _check_store() -> None:
    import click
    import mlflow

    from experiments.store import TrackingError, check_reachable

    try:
        check_reachable(mlflow.get_tracking_uri())
    except TrackingError as error:
        raise click.ClickException(str(error)) from error


def _choose_python(config: dict[str, Any]) -> None:
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if config.get(ENV_MANAGER) in (None, "local"):
        config[ENV_MANAGER] = "local"
        # `.venv/bin/mlflow` works without activation only if its own python is the one found.
        folders = [str(Path(sys.executable).parent), *folders]
    else:
        # MLflow asks uv for exactly this Python; the one this environment was made from has
        # that version and need not be downloaded, but uv takes no environment's own.
        folders = [*folders, str(Path(sys.base_exec_prefix) / "bin")]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(folders))


def _experiment_of(entry_point: str, params: Mapping[str, str], folder: Path) -> str:
    if entry_point != "evaluate":
        from experiments.experiment_names import of_command

        return of_command(entry_point, params)
    from experiments.settings import SettingsError, experiment_name, settings_from
    from experiments.several import each_model

    try:
        # Several models are evaluated on one dataset: their runs meet in one experiment.
        words = each_model(params, root=folder)[0]
        return experiment_name(settings_from(words, base=folder, root=folder))
    except SettingsError as error:
        raise _wrong_value(str(error)) from error


def _wrap_backend_when_imported() -> None:
    if BACKEND in sys.modules:
        _wrap(sys.modules[BACKEND])
    elif not any(isinstance(finder, _WrappingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WrappingFinder())


def _wrap(module: ModuleType) -> None:
    try:
        run = module.LocalBackend.run
        if set(inspect.signature(run).parameters) >= EXPECTED:
            module.LocalBackend.run = with_our_defaults(run)
    except (AttributeError, TypeError, ValueError):
        return


class _WrappingFinder(importlib.abc.MetaPathFinder):
    """Leaves finding to the others; wraps the one module when it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != BACKEND:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            _wrap(module)

        spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec
