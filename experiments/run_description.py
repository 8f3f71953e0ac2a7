"""What a run was, in words: its parameters and tags, and `run.json` in its folder.

MLflow gets the first two; the file holds them and where the dataset lies, so that
whoever reads run folders (`browse`, `export`) needs no MLflow to know what they hold.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.file_hash import sha256_of
from experiments.run_folder import write_json

if TYPE_CHECKING:
    from core.prompts import Template
    from experiments.evaluation import Evaluation

SCHEMA = 1
_TABLE = "predictions.parquet"
PACKAGES = ("mlflow", "numpy", "pandas", "scipy", "soxr", "soundfile")


class RunDescriptionError(ValueError):
    """A run.json that is not one; names file and what to do."""


@dataclass(frozen=True)
class RunDescription:
    """A run.json that was read.

    Attributes:
        written: when the run's files were last written, ISO 8601, UTC.
        parameters, tags: as MLflow has them, parameters without their `undertone.`.
        dataset: name, hash, folder, licence, source, synthetic, items.
    """

    written: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    dataset: Mapping[str, Any]


def write_description(evaluation: Evaluation) -> None:
    """Leave run.json beside the predictions it is about."""
    dataset = evaluation.plan.dataset
    said = {
        "schema": SCHEMA,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": parameters(evaluation),
        "tags": tags(evaluation),
        "dataset": {
            "name": dataset.name,
            "hash": dataset.hash,
            "folder": str(dataset.folder),
            "licence": dataset.licence,
            "source": dataset.source,
            "synthetic": dataset.synthetic,
            "items": len(dataset.items),
        },
        "predictions": sha256_of(evaluation.plan.folder.predictions),
    }
    write_json(evaluation.plan.folder.description, said)


def read_description(path: Path) -> RunDescription:
    """A run.json.

    Raises:
        RunDescriptionError: a file that is not one, or predictions beside it that are not those
            it was written for.
    """
    try:
        said = json.loads(path.read_bytes())
        known = {name: said[name] for name in ("written", "parameters", "tags", "dataset")}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunDescriptionError(
            f"{path}: expected what a run says of itself, found {error!r}. Run the same "
            "`evaluate` again: its answers are kept and the file is written anew."
        ) from error
    table = path.with_name(_TABLE)
    # Figures of the run beside another table's rows would be two things under one name.
    if table.is_file() and said.get("predictions", now := sha256_of(table)) != now:
        raise RunDescriptionError(
            f"{table}: expected the table that the run wrote, found one that was changed after "
            "the run wrote it. Run the same `evaluate` again: its answers are kept."
        )
    return RunDescription(**known)


def parameters(evaluation: Evaluation) -> dict[str, str]:
    """Everything that was asked for, and what it was asked of."""
    plan, settings = evaluation.plan, evaluation.plan.settings
    return {
        "model": plan.card.name,
        "revision": _revision(evaluation),
        "precision": plan.precision,
        "device_map": settings.device_map,
        "runner": plan.runner_name,
        "endpoint": settings.endpoint or "none",
        "image": plan.image,
        "card": plan.card.digest,
        "task": plan.task.NAME,
        "conditions": ",".join(settings.conditions),
        "dataset": plan.dataset.name,
        "dataset_hash": plan.dataset.hash,
        "data": str(settings.data),
        "items": str(len(evaluation.items)),
        "limit": str(settings.limit or "all"),
        # Those of the conditions: what was asked beside them makes no other run.
        "prompts": _named(plan.task.prompts(plan.task_settings)),
        **plan.task_settings,
        **{f"beside.{name}": said for name, said in plan.beside.items()},
        **({"beside.templates": _named(evaluation.templates)} if plan.beside else {}),
        "exemplars": ",".join(plan.selection.exemplars["item_id"]),
        "excluded": str(len(plan.selection.excluded)),
        "seed": str(settings.seed),
        "resamples": str(settings.resamples),
        "offline": str(settings.offline).lower(),
        "output": str(plan.folder.results),
        "versions": ",".join(
            [f"python={platform.python_version()}", *(f"{p}={version(p)}" for p in PACKAGES)]
        ),
    }


def tags(evaluation: Evaluation) -> dict[str, str]:
    """What a reader filters by."""
    plan = evaluation.plan
    return {
        "model": plan.card.name,
        "family": plan.card.family,
        "revision": _revision(evaluation),
        "image": plan.image,
        "dataset": plan.dataset.name,
        "task": plan.task.NAME,
        "runner": plan.runner_name,
        "verified": plan.card.verified,
        "synthetic": str(plan.dataset.synthetic).lower(),
        "reused_answers": str(evaluation.reused),
    }


def _named(templates: Sequence[Template]) -> str:
    return ",".join(f"{template.id}:{template.sha256[:12]}" for template in templates)


def _revision(evaluation: Evaluation) -> str:
    return ",".join(repo.revision for repo in evaluation.plan.card.repos) or "none"
