"""A build of a dataset, or a stage of one, as an MLflow run: its card, figures and reports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.datasets.turns_card import said
from experiments.credentials import shown
from experiments.experiment_names import BUILDS
from experiments.store_place import is_here, stays_here
from experiments.tracking import Record, TrackedRun, how_to_look, tracked_run, write

if TYPE_CHECKING:
    from experiments.cbt_from_release import Made
    from experiments.stages import Stage

PROGRAM = "experiments.build_cbt"


def track_build(made: Made) -> str:
    """Write the run; returns where to look at it.

    Raises:
        TrackingError: the store cannot be used.
    """
    card, dataset = made.card, made.dataset
    text = said(card)
    with TemporaryDirectory(prefix="undertone-") as staging, tracked_run(BUILDS) as run:
        (Path(staging) / "card.md").write_text(text + "\n", encoding="utf-8")
        (Path(staging) / made.report_path.name).write_bytes(made.report_path.read_bytes())
        write(
            run,
            Record(
                name=f"{card.name} · {card.turns} of {card.released} turns",
                parameters={"dataset": card.name, "dataset_hash": dataset.hash},
                tags=_tags(PROGRAM, dataset.synthetic),
                metrics={
                    "turns": card.turns,
                    "released": card.released,
                    "recordings": card.recordings,
                    "hours": card.hours,
                    "clip_seconds.mean": card.mean_s,
                    "clip_seconds.median": card.median_s,
                    **{f"labels/{level}": n for level, n in card.labels.items()},
                    **{f"lost/{loss.kind}": loss.turns for loss in card.losses},
                    **{f"kept/{kind}": n for kind, n in card.kept_findings.items()},
                },
                note=text,
                files=Path(staging),
                dataset={
                    "name": card.name,
                    "digest": dataset.hash[:32],
                    "source": dataset.source,
                    "profile": f'{{"items": {card.turns}, "released": {card.released}}}',
                },
            ),
        )
    return f"look:  {how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)}"


def track_stages(stages: Sequence[Stage], program: str, track: str, note: str = "") -> str:
    """One run for these stages, each stage's figures under its name; returns what to print.

    Args:
        program: the command, for the run's name.
        track: "true" keeps words of the recordings out of a store on another machine,
            "words" does not.

    Raises:
        TrackingError: the store cannot be used.
    """
    with TemporaryDirectory(prefix="undertone-") as staging, tracked_run(BUILDS) as run:
        keep_words = track == "words" or keeps_words(run)
        for stage in stages:
            files = {**stage.files, **(stage.spoken if keep_words else {})}
            _staged(files, Path(staging) / stage.name)
        lines = [f"- {stage.name}: {stage.headline}" for stage in stages]
        datasets = [stage.dataset for stage in stages if stage.dataset]
        write(
            run,
            Record(
                name=f"{program} · {stages[-1].headline}",
                parameters={
                    f"undertone.{stage.name}.{name}": value
                    for stage in stages
                    for name, value in stage.parameters.items()
                },
                tags=_tags(f"experiments.{program}", any(stage.synthetic for stage in stages)),
                metrics={
                    f"{stage.name}/{name}": float(value)
                    for stage in stages
                    for name, value in stage.metrics.items()
                },
                note="\n".join([*lines, "", note]).strip(),
                files=Path(staging),
                tables={
                    f"{stage.name}/{name}": table
                    for stage in stages
                    for name, table in stage.tables.items()
                },
                dataset=dict(datasets[-1]) if datasets else None,
            ),
        )
    lines = [f"look:  {how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)}"]
    if not keep_words and any(stage.spoken for stage in stages):
        lines.insert(
            0,
            f"The store {shown(run.uri)} is not on this machine, so words of the recordings were "
            "not logged to it; track=words logs them.",
        )
    return "\n".join(lines)


def keeps_words(run: TrackedRun) -> bool:
    """Whether a run's figures and its artifacts are kept on this machine."""
    place = run.client.get_experiment(run.experiment_id).artifact_location
    return is_here(run.uri) and stays_here(run.uri, place)


def _staged(files: Mapping[str, Path], folder: Path) -> None:
    for name, path in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=_no_sound)
        else:
            shutil.copyfile(path, target)


def _no_sound(folder: str, names: list[str]) -> list[str]:
    """Locks, half-written files and sound stay where they are."""
    wanted = (".csv", ".json", ".parquet")
    return [
        name
        for name in names
        if (not name.endswith(wanted) or name.startswith("."))
        and not (Path(folder) / name).is_dir()
    ]


def _tags(program: str, synthetic: bool) -> dict[str, str]:
    tags = {"synthetic": str(synthetic).lower()}
    if not os.environ.get("MLFLOW_RUN_ID"):
        tags["mlflow.source.name"] = program
    return tags
