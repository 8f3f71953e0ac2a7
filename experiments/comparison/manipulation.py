"""Study 2's own exhibits: Tables 3 to 5, differences between conditions, ROC, voices.

Source: SpeechMentalManip, sections 4.2 and 5, Tables 3 to 5.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.detection import tables as study_tables
from core.metrics.tactics import TACTICS, tactic_distribution
from core.modality import CONDITIONS
from core.stats.paired import Aligned, wrong_answer
from core.stats.proportion import wilson
from experiments.comparison import plots
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells, side_by_side
from experiments.comparison.document import (
    ALPHA,
    CONDITION_TITLES,
    Cell,
    Exhibit,
    Head,
    Layout,
    Section,
    by_cell,
    figure,
    interval,
    is_long,
    p_value,
    table,
    undefined_notes,
)
from experiments.comparison.drawing import dots
from experiments.comparison.gathering import Gathered
from experiments.comparison.manipulation_figures import counts_of, metric_frame, pair_frame

LOSS = "error rate"
TABLE_3 = (
    ("GT=YES", ("precision_yes", "recall_yes", "f1_yes")),
    ("GT=NO", ("precision_no", "recall_no", "f1_no")),
    ("Macro avg", ("macro_precision", "macro_recall", "macro_f1")),
    ("Weighted avg", ("weighted_precision", "weighted_recall", "weighted_f1")),
)
FIGURES = ("accuracy", "recall_yes", "specificity", "macro_f1", "auroc")


def cells_of(gathered: Gathered) -> Cells:
    """The runs side by side, their loss 1 for a wrong answer."""
    return side_by_side(gathered.predictions, _wrong, LOSS)


def _wrong(aligned: Aligned, over: str) -> NDArray[np.int8]:
    return np.stack([wrong_answer(aligned, cell, over) for cell in range(len(aligned.names))])


def sections(cells: Cells, asked: Asked) -> tuple[list[Section], pd.DataFrame]:
    """Results, what audio adds, tactics, ROC and voices; with every metric's frame."""
    metrics, pairs = metric_frame(cells, asked), pair_frame(cells, asked)
    results = Section(
        "results",
        "Results by model and condition",
        (
            "YES, manipulative, is the positive class. A metric is over the answered clips; how "
            "many that is stands under “What was not answered”.",
        ),
        [table_3(metrics, cells, asked), per_set(cells), _figures(metrics, cells, asked)],
    )
    results.notes += undefined_notes(metrics)
    everything = [results, _audio_section(pairs), _tactic_section(cells, asked)]
    everything += [_roc_section(cells, metrics, asked), _voice_section(cells)]
    return everything, metrics


def table_3(metrics: pd.DataFrame, cells: Cells, asked: Asked) -> Exhibit:
    """The classification report of each model and condition, a line each."""
    value = by_cell(metrics)
    rows = []
    for model, condition in cells.keys:
        n = int(counts_of(cells.frames[model, condition])[:, :2].sum())
        shown = [
            Cell(figure(value[model, condition, metric]["value"], 3))
            for _, three in TABLE_3
            for metric in three
        ]
        rows.append((Cell(model), Cell(condition), *shown, Cell(str(n))))
    if asked.published:
        printed: dict[tuple[str, str], dict[str, float]] = {}
        for entry in asked.published.figures:
            printed.setdefault((entry.model, entry.condition), {})[entry.metric] = entry.value
        for (model, condition), figures in printed.items():
            shown = [
                Cell(figure(figures[metric], 3) if metric in figures else "")
                for _, three in TABLE_3
                for metric in three
            ]
            who = Cell(f"{model}, published")
            rows.append((who, Cell(condition), *shown, Cell(str(asked.published.items))))
    heads = (
        (Head("", 2), *(Head(title, 3) for title, _ in TABLE_3), Head("")),
        (
            Head("Model"),
            Head("Cond."),
            *(Head(h) for _ in TABLE_3 for h in ("P", "R", "F1")),
            Head("N"),
        ),
    )
    return Exhibit(
        "table_3_classification",
        "Table 3, top: classification report",
        "Precision, recall and F1 of each gold set, their plain and their weighted mean. "
        "– undefined: the class was never predicted, or has no answered clip.",
        metrics,
        layout=Layout(heads, tuple(rows), words=2),
    )


def per_set(cells: Cells) -> Exhibit:
    """Predicted YES and NO and the accuracy of each gold set."""
    parts = []
    for model, condition in cells.keys:
        found = study_tables.per_set(counts_of(cells.frames[model, condition]))
        parts.append(found.assign(Model=model, Condition=condition))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[["Model", "Condition", *frame.columns.drop(["Model", "Condition"])]]
    return table(
        "table_3_per_set",
        "Table 3, bottom: per-set accuracy",
        "With Wilson's 95 % intervals; “Acc all” counts a clip without an answer as wrong.",
        frame,
        words=3,
        folded=is_long(parts),
    )


def _figures(metrics: pd.DataFrame, cells: Cells, asked: Asked) -> Exhibit:
    drawn = metrics[metrics["metric"].isin(FIGURES)].rename(
        columns={"model": "row", "metric": "panel", "condition": "series"}
    )
    order = {metric: at for at, metric in enumerate(FIGURES)}
    drawn = drawn.sort_values("panel", key=lambda names: names.map(order), kind="stable")
    printed = [
        {"row": model, "panel": metric, "series": f"published {condition}", "value": value}
        for metric in FIGURES
        for condition in CONDITIONS
        for model, (value, _) in asked.figures(metric, condition).items()
        if model in cells.models
    ]
    frame = pd.concat(
        [drawn[["row", "panel", "series", "value", "low", "high"]], pd.DataFrame(printed)],
        ignore_index=True,
    )
    frame["panel"] = frame["panel"].str.replace("_", " ")
    return Exhibit(
        "metrics_by_condition",
        "Metrics by condition",
        "With 95 % bootstrap intervals over clips. Recall of YES and specificity are the study's "
        "per-set accuracies." + (" Stars: as published." if printed else ""),
        frame,
        svg=dots(frame, "share, or area under the curve", limits=(-0.02, 1.02), same_x=True),
    )


def _audio_section(pairs: pd.DataFrame) -> Section:
    section = Section("audio", "What audio adds", ("Paired, over the clips both answered.",))
    if pairs.empty:
        section.notes.append(
            "No model was run in two conditions, so nothing can be said of what audio adds."
        )
        return section
    frame = pairs.rename(columns={"model": "row", "pair": "panel", "difference": "value"})
    frame["panel"] = frame["panel"].str.replace("-", " − ")
    frame = frame.assign(series="models")[["row", "panel", "series", "value", "low", "high"]]
    rows = tuple(
        (
            Cell(row["model"]),
            Cell(row["pair"].replace("-", " − ")),
            Cell(interval(row["difference"], row["low"], row["high"], 3)),
            Cell(f"{row['first_only']} : {row['second_only']}"),
            Cell(p_value(row["p"])),
            Cell(p_value(row["p_holm"]), bold=row["p_holm"] < ALPHA),
            Cell(f"{row['n']}/{row['n_total']}"),
        )
        for row in pairs.to_dict("records")
    )
    heads = ("Model", "Pair", "Difference of accuracy", "Only first : only second right")
    section.exhibits = [
        Exhibit(
            "forest",
            "Differences between conditions",
            "Accuracy of the first condition minus that of the second; right of the line the first "
            "is better. 95 % bootstrap intervals over clips.",
            frame,
            svg=dots(frame, "difference of accuracy", zero=0.0, same_x=True),
        ),
        Exhibit(
            "paired_tests",
            "Paired tests",
            "McNemar's exact test; Holm's adjustment is over the models of a pair of conditions "
            "(bold: below 0.05).",
            pairs,
            layout=Layout((tuple(map(Head, (*heads, "p", "p, Holm", "n"))),), rows, words=2),
            folded=is_long(rows),
        ),
    ]
    return section


def _tactic_section(cells: Cells, asked: Asked) -> Section:
    """Tables 4 and 5: tactics within the clips predicted YES, of each gold set."""
    section = Section(
        "tactics",
        "Tactics",
        ("Within clips predicted YES, per gold set; counts, with percentages in the CSV.",),
    )
    if not all("tactic" in rows for rows in cells.frames.values()):
        section.notes.append("The runs' predictions hold no tactics.")
        return section
    for number, gold in ((4, "YES"), (5, "NO")):
        section.exhibits.append(_tactics(cells, number, gold, asked))
    return section


def _tactics(cells: Cells, number: int, gold: str, asked: Asked) -> Exhibit:
    parts = []
    for (model, condition), rows in cells.frames.items():
        yes = rows[(rows["gold"] == gold) & (rows["prediction"] == "YES")]
        named = yes["tactic"].where(yes["tactic"].notna(), study_tables.NOT_NAMED)
        found = tactic_distribution(named.astype(str))
        low, high = wilson(found["Count"].to_numpy(), np.full(len(found), len(yes)))
        parts.append(
            found.assign(
                **{"% low": 100 * low, "% high": 100 * high},
                model=model,
                condition=condition,
                predicted_yes=len(yes),
                source="here",
            )
        )
    for entry in asked.published.tactics if asked.published else ():
        if entry.gold == gold:
            total = sum(entry.counts.values())
            said = [(name, count, 100 * count / total) for name, count in entry.counts.items()]
            parts.append(
                pd.DataFrame(said, columns=["Technique", "Count", "%"]).assign(
                    model=f"{entry.model}, published",
                    condition=entry.condition,
                    predicted_yes=total,
                    source=entry.where,
                )
            )
    frame = pd.concat(parts, ignore_index=True)
    known = [*TACTICS, *sorted(set(frame["Technique"]) - set(TACTICS))]
    keys = [*cells.keys]
    keys += [key for key in zip(frame["model"], frame["condition"], strict=True) if key not in keys]
    cell = frame.set_index(["model", "condition", "Technique"])["Count"].to_dict()
    yes_of = frame.set_index(["model", "condition"])["predicted_yes"].to_dict()
    lines = tuple(
        (
            Cell(model),
            Cell(condition),
            *(Cell(str(cell.get((model, condition, name), ""))) for name in known),
            Cell(str(yes_of.get((model, condition), 0))),
        )
        for model, condition in dict.fromkeys(keys)
    )
    heads = ("Model", "Cond.", *known, "Pred. YES")
    return Exhibit(
        f"table_{number}_tactics",
        f"Table {number}: predicted tactics, GT={gold}",
        f"Counts within clips of gold {gold} that were predicted YES (last column).",
        frame,
        layout=Layout((tuple(map(Head, heads)),), lines, words=2, steep=True),
    )


def _roc_section(cells: Cells, metrics: pd.DataFrame, asked: Asked) -> Section:
    from sklearn.metrics import roc_curve

    section = Section("roc", "Sensitivity and specificity")
    curves, points, value = [], [], by_cell(metrics)
    for (model, condition), rows in cells.frames.items():
        panel = CONDITION_TITLES[condition]
        scored = rows[(rows["status"] == "ok") & rows["expected"].notna()]
        if scored["gold"].nunique() == 2:
            x, y, _ = roc_curve(scored["gold"] == "YES", scored["expected"].astype(float))
            curves.append(pd.DataFrame({"row": model, "panel": panel, "x": x, "y": y}))
        sensitivity = value[model, condition, "recall_yes"]["value"]
        specificity = value[model, condition, "specificity"]["value"]
        points.append((model, panel, 1 - specificity, sensitivity))
    if not curves:
        section.notes.append("No model gave a p(YES) for clips of both classes: no ROC curve.")
        return section
    for condition in cells.conditions:
        hits = asked.figures("recall_yes", condition)
        quiet = asked.figures("specificity", condition)
        for model in hits.keys() & quiet.keys():
            named = f"published {model}"
            x = 1 - quiet[model][0]
            points.append((named, CONDITION_TITLES[condition], x, hits[model][0]))
    frame = pd.concat(curves, ignore_index=True)
    marked = pd.DataFrame(points, columns=["row", "panel", "x", "y"]).dropna()
    frame["kind"], marked["kind"] = "curve", "operating point"
    section.exhibits.append(
        Exhibit(
            "roc",
            "ROC curves and operating points",
            "Lines: every threshold of p(YES). Markers: the votes' own operating point"
            + (f"; star: {asked.published.study}'s." if asked.published else "."),
            pd.concat([frame, marked], ignore_index=True),
            svg=plots.curves(frame, marked, "false positive rate", "true positive rate"),
        )
    )
    return section


MOST_VOICE_ROWS = 8


def _voice_section(cells: Cells) -> Section:
    section = Section("voices", "Voices")
    parts = [
        study_tables.by_voice(condition, rows).assign(model=model)
        for (model, condition), rows in cells.frames.items()
        if "voices" in rows
    ]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if frame.empty:
        section.notes.append("The dataset names no voices.")
        return section
    best = cells.models[:MOST_VOICE_ROWS]
    for kind in ("voice", "accent"):
        of_kind = frame[(frame["By"] == kind) & frame["model"].isin(best)]
        if of_kind.empty:
            continue
        drawn = of_kind.rename(
            columns={
                "Value": "row",
                "model": "panel",
                "Condition": "series",
                "Acc": "value",
                "Acc low": "low",
                "Acc high": "high",
            }
        )
        left_out = len(cells.models) - len(best)
        more = (
            f" The best {len(best)} models; {left_out} others are in the CSV." if left_out else ""
        )
        section.exhibits.append(
            Exhibit(
                f"by_{kind}",
                f"Accuracy by {kind}",
                "A clip counts for each of its speakers; Wilson's 95 % intervals. Labels are not "
                "spread evenly over voices, so a difference may be that of the labels: accuracy "
                "within YES and within NO, and the number of clips, are in the CSV. TO hears no "
                "voice." + more,
                frame[frame["By"] == kind],
                svg=dots(
                    drawn[["row", "panel", "series", "value", "low", "high"]],
                    "accuracy",
                    bars=True,
                    columns=4,
                    limits=(0, 1),
                    same_x=True,
                ),
            )
        )
    return section
