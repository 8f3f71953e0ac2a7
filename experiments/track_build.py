"""A build of a dataset as an MLflow run: its card, its figures, its data report."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.datasets.turns_card import said
from experiments.experiment_names import BUILDS
from experiments.tracking import Record, how_to_look, tracked_run, write

if TYPE_CHECKING:
    from experiments.cbt_from_release import Made

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
                tags=_tags(dataset.synthetic),
                metrics={
                    "turns": card.turns,
                    "released": card.released,
                    "recordings": card.recordings,
                    "hours": card.hours,
                    "clip_seconds.mean": card.mean_s,
                    "clip_seconds.median": card.median_s,
                    **{f"labels/{level}": n for level, n in card.labels.items()},
                    **{f"lost/{loss.kind}": loss.turns for loss in card.losses},
                },
                note=text,
                files=Path(staging),
            ),
        )
    return f"look:  {how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)}"


def _tags(synthetic: bool) -> dict[str, str]:
    tags = {"synthetic": str(synthetic).lower()}
    if not os.environ.get("MLFLOW_RUN_ID"):
        tags["mlflow.source.name"] = PROGRAM
    return tags
