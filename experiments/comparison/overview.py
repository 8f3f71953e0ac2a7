"""Which runs a report rests on, and conditions beyond the studies' three."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pandas as pd

from experiments.comparison.document import Section, table
from experiments.comparison.gathering import Gathered, card_of


def runs_section(gathered: Gathered) -> Section:
    """One row a run: model, weights, machine, when; enough to find it again."""
    rows = []
    for name, runs in gathered.runs.items():
        for run in runs:
            card = card_of(run.model)
            rows.append(
                {
                    "Row": name,
                    "Model": card.title if card else run.model,
                    "Revision": run.parameters.get("revision", ""),
                    "Precision": run.parameters.get("precision", ""),
                    "Runner": run.parameters.get("runner", ""),
                    "Verified": run.tags.get("verified", ""),
                    "Conditions": ", ".join(run.conditions),
                    "Items": run.parameters.get("items", ""),
                    "Seed": run.parameters.get("seed", ""),
                    "Evaluated": datetime.fromtimestamp(run.started / 1000, UTC).strftime(
                        "%Y-%m-%d %H:%M UTC"
                    ),
                    "MLflow run": run.id,
                }
            )
    section = Section("runs", "Runs compared", notes=list(gathered.notes))
    frame = pd.DataFrame(rows)
    shown = frame.assign(
        Revision=[_few(said) for said in frame["Revision"]],
        **{"MLflow run": frame["MLflow run"].str[:8]},
    )
    exhibit = table(
        "runs",
        "Runs",
        "Verified: “weights” was run with its real weights by this package's authors, “tiny” on a "
        "random checkpoint of the real class, “layout” checked against the vendor's code.",
        shown,
        words=11,
        numbers=frame,
    )
    section.exhibits.append(exhibit)
    first = next(iter(gathered.runs.values()))[0]
    section.text = (
        f"Dataset {gathered.dataset}, hash {gathered.dataset_hash}. Prompts "
        f"{first.parameters.get('prompts', 'unknown')}.",
    )
    return section


def _few(said: str) -> str:
    return ", ".join(part[:8] for part in said.split(","))


def variants_section(gathered: Gathered, loss: str) -> Section | None:
    """Coverage and error of conditions beyond AO, AT and TO; None where there are none."""
    if not gathered.variants:
        return None
    rows = []
    for (model, condition), of_cell in gathered.variants.items():
        answered = of_cell[of_cell["prediction"].notna()]
        rows.append(
            {
                "Model": model,
                "Condition": condition,
                f"Mean {loss}": _mean_error(answered),
                "Answered": len(answered),
                "Items": len(of_cell),
            }
        )
    section = Section(
        "variants",
        "Other conditions",
        (
            "Conditions beyond the studies' three. They are shown as they came, without intervals "
            "or tests, and are part of no ranking.",
        ),
    )
    section.exhibits.append(table("variants", "Other conditions", "", pd.DataFrame(rows), words=2))
    return section


def _mean_error(answered: pd.DataFrame) -> float:
    if not len(answered):
        return math.nan
    gold, said = answered["gold"], answered["prediction"]
    numbers = pd.to_numeric(gold, errors="coerce"), pd.to_numeric(said, errors="coerce")
    if numbers[0].notna().all():
        return float((numbers[0] - numbers[1]).abs().mean())
    return float((gold.astype(str) != said.astype(str)).mean())
