"""The MLflow experiment each command's runs go to, whoever opens the run.

`mlflow run` opens one before our program starts (`mlflow_default` chooses then);
run directly, the program opens it. Both ask here, so both come to the same name.
`evaluate` is not among them: its experiment is of task and dataset (`settings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

CONTAINERS = "containers"
BUILDS = "builds"
# What leaves files or words, and no figures to compare.
OTHERS = "undertone"


def of_ratings(command: str, ratings: PurePath) -> str:
    """Experiment of agreement or validate_labels on one table: what can be compared."""
    return f"{command}/{ratings.stem}"


def of_command(command: str, parameters: Mapping[str, str]) -> str:
    """Experiment of a command of MLproject with these parameters."""
    if command in ("agreement", "validate_labels") and parameters.get("ratings"):
        return of_ratings(command, PurePath(parameters["ratings"]))
    if command == "compare":
        return f"compare/{parameters.get('task') or 'distress'}"
    if command == "build_container":
        return CONTAINERS
    stage = command.startswith("cbt_") and command != "cbt_check"
    return BUILDS if stage or command.startswith("build_") else OTHERS
